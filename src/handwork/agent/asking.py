"""Asking the model: one request out, its stream told as events, one reply back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from handwork import events as ev
from handwork import schema as sc
from handwork.agent.context import RequestKey
from handwork.agent.held import HeldText
from handwork.agent.run import Run
from handwork.errors import BrokenStreamError, TokenLimitExceeded
from handwork.llm.asking import goes_to
from handwork.llm.base import Model
from handwork.llm.tokens import TokenMeter
from handwork.llm.written.calls import with_written_calls


class Asker:
    """Asks a model for one agent; keeps what makes the next request cheap to describe and its tokens easy to guess."""

    def __init__(self, meter: TokenMeter | None = None, *, quiet: bool = False) -> None:
        self._key = RequestKey()
        self._meter = meter or TokenMeter()
        self._quiet = self._told = quiet
        """Quiet: what the model says is no part of the conversation, so it is not told. Told: whether the user knows that a
        budget in USD cannot be held."""

    @property
    def meter(self) -> TokenMeter:
        """Guesses tokens, the better the more replies came."""
        return self._meter

    async def ask(self, run: Run, model: Model, request: sc.Request, memory: sc.Memory) -> sc.Reply:
        """Send a request and return the reply; deltas, retries and usage become events.

        The request is journaled before it leaves. Raises ModelError and BudgetExceeded.
        """
        run.session.check_budget()
        key = self._key

        async def announce(name: str) -> None:
            run.emit(
                ev.RequestSent(
                    model=name,
                    key=key.of(name, request.system, request.tools, memory),
                    tail=request.tail.text if request.tail else "",
                    tools=key.tools(request.tools),
                )
            )
            await run.gate()

        await announce(goes_to(model, request))
        reply = await _listen(run, model, request, announce, quiet=self._quiet)
        run.go_on()
        if reply.usage is not None:
            self._meter.observe(request, reply.usage.input)
        run.spend(reply.usage or self._meter.guess(request, reply), reply.cost_usd)
        if reply.cost_usd is None and run.session.budget.usd is not None and not self._told:
            self._told = True
            run.notice("warning", f"No price is known for {model.name}: the budget in USD cannot be held.")
        return reply


async def _listen(
    run: Run, model: Model, request: sc.Request, announce: Callable[[str], Awaitable[None]], *, quiet: bool
) -> sc.Reply:
    """Tell a stream's items as events; the reply is its last. `announce` is told another model's name before it is asked."""
    heard = run.session.heard and not quiet
    text = HeldText(request, lambda item: run.emit(_event(item)))
    stream: Any = model.stream(request)  # usually a generator, which must be closed at once when we leave early
    async with aclosing(stream) as items:
        async for item in items:
            if isinstance(item, _DELTAS):
                if heard:
                    text.take(item)
            elif isinstance(item, sc.Reply):
                return _read(run, item, request, text)
            elif isinstance(item, sc.Rerouted):
                await announce(item.model)
            else:
                run.emit(_event(item))
    raise BrokenStreamError("the model's stream ended without a reply", provider=model.name)


def _read(run: Run, reply: sc.Reply, request: sc.Request, text: HeldText) -> sc.Reply:
    """The reply, and of one that wrote its calls as text, the calls."""
    read = with_written_calls(reply, request)
    if read is None:
        text.release()
        return reply
    if text.shown:
        run.emit(ev.ReplyDiscarded())
    names = ", ".join(call.function.name for call in read.tool_calls)
    run.notice("info", f"The model wrote a call as text; it is read as that call: {names}")
    return read


_DELTAS = (sc.TextDelta, sc.ThinkingDelta, sc.ToolArgsDelta, sc.Discarded)


def _event(item: sc.StreamItem) -> ev.Event:
    match item:
        case sc.TextDelta(text):
            return ev.TextDelta(text=text)
        case sc.ThinkingDelta(text):
            return ev.ThinkingDelta(text=text)
        case sc.ToolArgsDelta(index, id, name, text):
            return ev.ToolArgsDelta(index=index, call_id=id, name=name, text=text)
        case sc.Retrying(error, wait, attempt):
            info = sc.ErrorInfo(type=type(error).__name__, message=str(error))
            return ev.RetryScheduled(error=info, wait=wait, attempt=attempt)
        case sc.Discarded():
            return ev.ReplyDiscarded()
        case sc.ModelNotice(level, text):
            return ev.Notice.model_validate({"level": level, "text": text})
    raise TypeError(f"a model's stream yielded {item!r}, which is no stream item")


def token_limit(error: BaseException | None) -> TokenLimitExceeded | None:
    """The TokenLimitExceeded that an error is, or that it was raised from (CONTRACT B5, B18)."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, TokenLimitExceeded):
            return error
        seen.add(id(error))
        error = error.__cause__
    return None
