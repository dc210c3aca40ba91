"""Retries: what is asked again, how often, how long after, and what the listeners see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from handwork.errors import (
    AuthenticationError,
    BadRequestError,
    BrokenStreamError,
    ContentFilterError,
    ModelConnectionError,
    ModelError,
    ModelNotFoundError,
    ModelTimeoutError,
    OverloadedError,
    PermissionDeniedError,
    QuotaError,
    RateLimitError,
    ServerError,
    TokenLimitExceeded,
    TransientModelError,
)
from handwork.llm.asking import asking
from handwork.llm.retry import Retry
from handwork.llm.scripted import Line, ScriptedModel
from handwork.schema import Discarded, Message, Reply, Request, Retrying, StreamItem, TextDelta

ASK = Request([Message.user_message("x")])


class Half:
    """A model that says half a text and then fails, a number of times; then answers."""

    name = "half"

    def __init__(self, *errors: ModelError) -> None:
        self.errors = list(errors)

    async def stream(self, request: Request) -> AsyncIterator[StreamItem]:
        yield TextDelta("half")
        if self.errors:
            raise self.errors.pop(0)
        yield Reply(content="half and whole")


def retry(script: list[Line], waits: list[float], **options: Any) -> tuple[Retry, ScriptedModel]:
    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    model = ScriptedModel(script)
    return Retry(model, sleep=sleep, random=lambda: 1.0, clock=lambda: 1000.0, **options), model


async def items_of(model: Any, request: Request = ASK) -> list[StreamItem]:
    return [item async for item in model.stream(request)]


@pytest.mark.parametrize(
    "error",
    [
        RateLimitError(),
        OverloadedError(),
        ServerError(),
        ModelConnectionError(),
        ModelTimeoutError(),
        BrokenStreamError(),
        TransientModelError(),
    ],
)
async def test_what_can_pass_is_asked_again(error: ModelError) -> None:
    waits: list[float] = []
    model, scripted = retry([error, "fine"], waits)
    items = await items_of(model)
    assert items[0] == Retrying(error, 1.0, 1)
    assert isinstance(items[-1], Reply)
    assert (waits, len(scripted.requests)) == ([1.0], 2)


@pytest.mark.parametrize(
    "error",
    [
        BadRequestError(),
        AuthenticationError(),
        PermissionDeniedError(),
        ModelNotFoundError(),
        TokenLimitExceeded(),
        QuotaError(),
        ContentFilterError(),
    ],
)
async def test_what_cannot_pass_is_asked_once(error: ModelError) -> None:
    waits: list[float] = []
    model, scripted = retry([error, "fine"], waits)
    with pytest.raises(type(error)):
        await items_of(model)
    assert (waits, len(scripted.requests)) == ([], 1)


async def test_after_six_tries_the_last_error_is_raised() -> None:
    waits: list[float] = []
    model, scripted = retry([ServerError(str(n)) for n in range(9)], waits)
    with pytest.raises(ServerError, match="5"):
        await items_of(model)
    assert (waits, len(scripted.requests)) == ([1.0, 2.0, 4.0, 8.0, 16.0], 6)


async def test_the_wait_is_random_below_a_window_that_grows_to_half_a_minute() -> None:
    waits: list[float] = []
    model, _ = retry([ServerError()] * 9, waits, retries=8)
    with pytest.raises(ServerError):
        await items_of(model)
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


async def test_what_the_provider_asks_is_the_least_wait() -> None:
    waits: list[float] = []
    model, _ = retry([RateLimitError(retry_after=7.5), "fine"], waits)
    await items_of(model)
    assert waits == [7.5]


@pytest.mark.parametrize("seconds", [120.5, 1e12, float("inf")])
async def test_a_wait_over_the_limit_ends_at_once(seconds: float) -> None:
    waits: list[float] = []
    model, scripted = retry([RateLimitError(retry_after=seconds), "fine"], waits)
    with pytest.raises(RateLimitError):
        await items_of(model)
    assert (waits, len(scripted.requests)) == ([], 1)


async def test_a_wait_longer_than_the_run_has_left_ends_at_once() -> None:
    for left, expected in ((5.0, []), (9.0, [7.0])):
        waits: list[float] = []
        model, _ = retry([RateLimitError(retry_after=7.0), "fine"], waits)
        request = Request(ASK.messages, deadline=1000.0 + left)
        if expected:
            await items_of(model, request)
        else:
            with pytest.raises(RateLimitError):
                await items_of(model, request)
        assert waits == expected


async def test_a_retry_after_visible_deltas_is_preceded_by_discarded() -> None:
    async def sleep(seconds: float) -> None:
        pass

    error = BrokenStreamError()
    items = await items_of(Retry(Half(error, error), sleep=sleep, random=lambda: 0.0))
    kinds = [type(item).__name__ for item in items]
    assert kinds == ["TextDelta", "Discarded", "Retrying", "TextDelta", "Discarded", "Retrying", "TextDelta", "Reply"]


async def test_without_visible_deltas_nothing_is_discarded() -> None:
    model, _ = retry([ServerError(), "fine"], [])
    assert not [item for item in await items_of(model) if isinstance(item, Discarded)]


async def test_an_error_that_ends_it_after_deltas_discards_nothing_by_itself() -> None:
    with pytest.raises(BadRequestError):
        await items_of(Retry(Half(BadRequestError())))


async def test_retrying_is_told_before_the_wait() -> None:
    waits: list[float] = []
    model, _ = retry([ServerError(), "fine"], waits)
    async with asking(model, ASK) as items:
        assert isinstance(await anext(items), Retrying)
        assert waits == []


async def test_a_stream_without_a_reply_is_broken_and_asked_again() -> None:
    waits: list[float] = []
    model, scripted = retry([[TextDelta("x")], "fine"], waits)
    items = await items_of(model)
    assert isinstance(items[-1], Reply)
    assert len(scripted.requests) == 2


async def test_cancelling_during_the_wait_ends_it() -> None:
    started = asyncio.Event()

    async def sleep(seconds: float) -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(items_of(Retry(ScriptedModel([ServerError()]), sleep=sleep)))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
