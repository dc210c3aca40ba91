"""One call of a client while it is served: what it is asked meanwhile, and the progress that it hears."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from handwork.schema import JSON

Action: TypeAlias = Literal["accept", "decline", "cancel"]
_KEPT = 4000
"""Characters of progress that wait for a client which is slow to take them; older ones are left out."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the client's human did with a question: `content` are the fields of the form, if it was accepted."""

    action: Action
    content: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Form:
    """A question for the client's human: the text, and the JSON Schema of the answer (flat, as elicitation wants it)."""

    message: str
    schema: Mapping[str, JSON]
    reply: asyncio.Future[Reply]


class Exchange:
    """Between the work that a call is and whoever speaks with the client: no wire is known here.

    The work calls `ask` and `tell`; the other side waits for `stirred`, takes `form` and `progress`, and gives replies.
    `can_ask` says whether the client can put a question to its human.
    """

    def __init__(self, *, can_ask: bool) -> None:
        self.can_ask = can_ask
        self.stirred = asyncio.Event()
        self.form: Form | None = None
        self.told = 0
        """Notifications of progress that were sent."""
        self._progress = ""
        self._one_at_a_time = asyncio.Lock()

    async def ask(self, message: str, schema: Mapping[str, JSON]) -> Reply:
        """Have the client's human asked; one question at a time."""
        async with self._one_at_a_time:
            self.form = form = Form(message, schema, asyncio.get_running_loop().create_future())
            self.stirred.set()
            try:
                return await form.reply
            finally:
                self.form = None
                self.stirred.set()

    def answer(self, form: Form, reply: Reply) -> None:
        """Give the reply to a question, if it still waits for one."""
        if not form.reply.done():
            form.reply.set_result(reply)

    def tell(self, text: str) -> None:
        """Say how far the work is; what the client has not taken yet is joined."""
        self._progress = (self._progress + text)[-_KEPT:]
        self.stirred.set()

    def take_progress(self) -> str:
        """What was told since the last time."""
        text, self._progress = self._progress, ""
        return text
