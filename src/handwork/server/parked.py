"""Calls that wait for an answer which comes with the client's next request (MCP 2026-07-28: input_required)."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass

from handwork.server.answer import Answer
from handwork.server.exchange import Exchange, Form, Reply

PATIENCE = 600.0
"""Seconds after which a question that nobody came back to counts as dismissed."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that goes on as soon as its form has a reply."""

    work: asyncio.Task[Answer]
    exchange: Exchange
    form: Form
    handle: str | None
    end: asyncio.TimerHandle


class Parked:
    """The calls that wait, each by a name which cannot be guessed and works once."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._waiting: dict[str, Waiting] = {}

    def put(self, work: asyncio.Task[Answer], exchange: Exchange, form: Form, handle: str | None) -> str:
        """Keep a call; returns the name that the client sends back."""
        name = secrets.token_urlsafe(24)
        end = asyncio.get_running_loop().call_later(self._patience, self._dismiss, name)
        self._waiting[name] = Waiting(work, exchange, form, handle, end)
        work.add_done_callback(lambda _: self.take(name))
        return name

    def take(self, name: str) -> Waiting | None:
        """The call of that name, which waits here no longer."""
        waiting = self._waiting.pop(name, None)
        if waiting is not None:
            waiting.end.cancel()
        return waiting

    def _dismiss(self, name: str) -> None:
        if (waiting := self.take(name)) is not None:
            waiting.exchange.answer(waiting.form, Reply("cancel"))
