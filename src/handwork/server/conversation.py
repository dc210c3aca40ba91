"""One request of a client while its call is served: progress and questions out, replies in, the answer at the end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from handwork.server.answer import Answer
from handwork.server.described import request_of, result_of
from handwork.server.exchange import Action, Exchange, Form, Reply
from handwork.server.parked import Parked

_PAUSE = 0.1
"""Seconds between two notifications of progress: what is told meanwhile is joined."""
_QUESTION = "question"


async def converse(
    context: Any, work: asyncio.Task[Answer], exchange: Exchange, parked: Parked, handle: str | None
) -> Any:
    """Serve a call until it is done or wants to know something that only the client's next request can bring.

    When the request is cancelled, the call is.
    """
    try:
        while not work.done():
            await _stirred(work, exchange)
            await _tell(context, work, exchange)
            if (form := exchange.form) is None or form.reply.done() or work.done():
                continue
            if not context.session.can_send_request:
                return _wanted(form, parked.put(work, exchange, form, handle))
            await _elicit(context, work, exchange, form)
    except BaseException:
        work.cancel()
        raise
    if work.cancelled():
        return result_of(Answer("Error: the call was ended by the server", is_error=True), handle=handle)
    return result_of(work.result(), handle=handle)


def replied(responses: Any) -> Reply:
    """The reply that a client's next request brings."""
    return _reply((responses or {}).get(_QUESTION))


async def _stirred(work: asyncio.Task[Answer], exchange: Exchange) -> None:
    stirred = asyncio.ensure_future(exchange.stirred.wait())
    try:
        await asyncio.wait({work, stirred}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stirred.cancel()
    exchange.stirred.clear()


async def _tell(context: Any, work: asyncio.Task[Answer], exchange: Exchange) -> None:
    """Tell how far the call is, and not again at once; what a call that is done has said stands in its answer."""
    if not work.done() and (text := exchange.take_progress()):
        exchange.told += 1
        await context.session.report_progress(exchange.told, message=text.rstrip("\n"))
        await asyncio.wait({work}, timeout=_PAUSE)


def _wanted(form: Form, state: str) -> Any:
    import mcp_types as types

    return types.InputRequiredResult(input_requests={_QUESTION: request_of(form)}, request_state=state)


async def _elicit(context: Any, work: asyncio.Task[Answer], exchange: Exchange, form: Form) -> None:
    """Ask in a request of our own; the call may come to its end without the answer."""
    asking = asyncio.ensure_future(_form_reply(context, form))
    try:
        ends: set[asyncio.Future[Any]] = {work, asking, form.reply}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            exchange.answer(form, asking.result())
    finally:
        if not asking.done():
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking


async def _form_reply(context: Any, form: Form) -> Reply:
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    try:
        return _reply(
            await context.session.elicit_form(form.message, dict(form.schema), related_request_id=context.request_id)
        )
    except (MCPError, ValidationError):  # the client cannot ask after all, or answers without sense
        return Reply("cancel")


def _reply(result: Any) -> Reply:
    action: Action = getattr(result, "action", "cancel")
    return Reply(action, getattr(result, "content", None) or {})
