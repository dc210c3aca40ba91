"""The time of a call: it stands still while a person is asked."""

from __future__ import annotations

import asyncio

import pytest

from handwork.tool.call_clock import CallClock


async def test_a_limit_ends_what_takes_longer() -> None:
    with pytest.raises(TimeoutError):
        async with CallClock().limit(0.01) as limit:
            await asyncio.Event().wait()
    assert limit.expired()


async def test_a_limit_does_not_run_while_the_clock_is_stopped_and_goes_on_with_what_was_left() -> None:
    clock = CallClock()
    async with clock.limit(50) as limit:
        whole = limit.when()
        with clock.stopped():
            assert limit.when() is None
            with clock.stopped():
                assert limit.when() is None
            assert limit.when() is None
        assert whole is not None
        assert (limit.when() or 0) >= whole


async def test_a_limit_that_begins_while_the_clock_is_stopped_has_all_its_time_afterwards() -> None:
    clock = CallClock()
    with clock.stopped():
        limits = clock.limit(50)
        limit = await limits.__aenter__()
        assert limit.when() is None
    assert (limit.when() or 0) > asyncio.get_running_loop().time() + 49
    await limits.__aexit__(None, None, None)


async def test_a_question_after_the_time_is_over_does_not_take_it_back() -> None:
    clock = CallClock()

    async def work() -> None:
        async with clock.limit(0.01) as limit:
            try:
                await asyncio.Event().wait()
            finally:
                with clock.stopped():
                    assert limit.expired()

    with pytest.raises(TimeoutError):
        await work()


async def test_a_limit_can_be_given_its_whole_time_again_also_while_the_clock_stands() -> None:
    clock, loop = CallClock(), asyncio.get_running_loop()
    async with clock.limit(100) as limit:
        limit.reschedule(loop.time() + 1)
        clock.restart(limit, 50)
        assert 49 < (limit.when() or 0) - loop.time() <= 50
        with clock.stopped():
            clock.restart(limit, 200)
            assert limit.when() is None
        assert 199 < (limit.when() or 0) - loop.time() <= 200
    clock.restart(limit, 10)  # of one that is over, nothing comes
