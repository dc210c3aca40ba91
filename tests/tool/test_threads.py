from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
import time

import pytest

from handwork.errors import ToolError
from handwork.tool.threads import ThreadPool, run_in_thread


async def test_calls_overlap() -> None:
    barrier = threading.Barrier(4, timeout=20)
    await asyncio.gather(*(run_in_thread(barrier.wait) for _ in range(4)))


async def test_the_result_and_the_error_come_back() -> None:
    assert await run_in_thread(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(divmod, 7, 0)


async def test_context_variables_are_seen_and_changes_stay_inside() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("outside")

    def look() -> str:
        seen = variable.get()
        variable.set("inside")
        return seen

    assert await run_in_thread(look) == "outside"
    assert variable.get() == "outside"


async def test_threads_are_daemons_and_are_used_again() -> None:
    pool = ThreadPool()
    threads = {await pool.run(threading.current_thread) for _ in range(20)}
    assert len(threads) == 1
    assert threads.pop().daemon


async def test_the_pool_grows_to_its_limit_and_the_rest_wait_their_turn() -> None:
    pool = ThreadPool(limit=3)
    barrier, names = threading.Barrier(3, timeout=20), set()

    def meet() -> None:
        names.add(threading.get_ident())
        barrier.wait()

    await asyncio.gather(*(pool.run(meet) for _ in range(9)))
    assert len(names) == 3


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()])
async def test_what_would_end_the_program_becomes_a_tool_error(raised: BaseException) -> None:
    def end() -> None:
        raise raised

    with pytest.raises(ToolError, match=type(raised).__name__):
        await run_in_thread(end)


async def test_stop_iteration_does_not_hang_the_caller() -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await run_in_thread(next, iter(()))


async def test_a_cancelled_call_is_left_behind_at_once_and_said_so() -> None:
    pool, begun, go, left = ThreadPool(limit=1), asyncio.Event(), threading.Event(), []
    loop = asyncio.get_running_loop()

    def hang() -> None:
        loop.call_soon_threadsafe(begun.set)
        go.wait(30)

    call = asyncio.create_task(pool.run(hang, lambda: left.append(True)))
    await begun.wait()
    waiting = asyncio.create_task(pool.run(lambda: "ran"))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert left == [True]
    # the hung thread no longer counts: both the call that waited and a new one get through
    assert await asyncio.wait_for(waiting, 20) == "ran"
    assert await asyncio.wait_for(pool.run(lambda: "too"), 20) == "too"
    go.set()


async def test_a_call_cancelled_before_it_began_never_runs() -> None:
    pool, begun, go, ran, left = ThreadPool(limit=1), asyncio.Event(), threading.Event(), [], []
    loop = asyncio.get_running_loop()

    def hold() -> None:
        loop.call_soon_threadsafe(begun.set)
        go.wait(30)

    holding = asyncio.create_task(pool.run(hold))
    await begun.wait()
    call = asyncio.create_task(pool.run(lambda: ran.append(True), lambda: left.append(True)))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    go.set()
    await holding
    assert await pool.run(lambda: "next") == "next"
    assert (ran, left) == ([], [])


async def test_a_time_limit_around_a_call_is_a_timeout() -> None:
    go = threading.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await run_in_thread(go.wait, 30)
    go.set()


def test_a_hung_call_never_holds_up_the_exit() -> None:
    program = (
        "import asyncio, time\n"
        "from handwork.tool.threads import run_in_thread\n"
        "async def main():\n"
        "    task = asyncio.create_task(run_in_thread(time.sleep, 60))\n"
        "    await asyncio.sleep(0.05)\n"
        "asyncio.run(main())\n"
    )
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
    assert time.monotonic() - begun < 20


def test_the_pool_works_again_in_another_loop_and_after_a_loop_was_closed_under_a_running_call() -> None:
    go = threading.Event()

    async def leave() -> None:
        asyncio.get_running_loop().create_task(run_in_thread(go.wait, 30))
        await asyncio.sleep(0.01)

    asyncio.run(leave())
    go.set()
    assert asyncio.run(run_in_thread(lambda: 5)) == 5


async def test_many_calls_at_once_all_come_back() -> None:
    pool = ThreadPool(limit=8)
    results = await asyncio.gather(*(pool.run(lambda n=n: n * n) for n in range(2000)))
    assert results == [n * n for n in range(2000)]
