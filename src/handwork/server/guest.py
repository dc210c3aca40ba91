"""One client: the session that its calls share, the sessions of its tasks, and the end of both."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import Any

from handwork import events as ev
from handwork.errors import ArgumentsError, HandworkError, SessionNotFound
from handwork.schema import JSON, Function, ToolCall
from handwork.server.answer import Answer, of_error, of_outcome
from handwork.server.caller import Caller
from handwork.server.doors import doors
from handwork.server.exchange import Exchange
from handwork.server.house import House
from handwork.server.task import RunTask, Task
from handwork.session import Session, uncancelled
from handwork.tool.arguments import prepare
from handwork.tool.collection import ToolCollection

_PATIENCE = 3.0
"""Seconds that calls have to end in when their client is gone."""
MOST = 32
"""Calls of one client that may be open at a time."""
_MOST_OF_ALL = 128
"""Calls of all clients that come to one guest, as those without sessions do with their tasks."""
_own: ContextVar[Exchange | None] = ContextVar("the exchange that a call belongs to", default=None)


class Guest:
    """A client that is connected. Its session opens at its first call and is closed by `close`, or by `rest` until the next one.

    `label` is what the client calls itself.
    """

    def __init__(self, house: House, label: str) -> None:
        self._house = house
        self.label = re.sub(r"[^\w.-]+", "-", label)[:40].strip("-") or "client"
        self._tools = ToolCollection(*house.tools)
        self._session: Session | None = None
        self._session_id: str | None = None
        self._caller: Caller | None = None
        self._changing = asyncio.Lock()
        self._exchanges: dict[str, Exchange] = {}
        self._occupied, self._calls = AsyncExitStack(), 0
        self._works: dict[asyncio.Task[Answer], str] = {}
        """The calls that are open, and whose each is."""
        self._tasks: set[str] = set()
        """Sessions of tasks that this client may go on with."""
        self.used = time.monotonic()
        """When the last call ended."""
        self.files: dict[str, str] = {}
        """Files that were linked to in answers, by their path: their media types."""

    # ---- calls

    def begin(
        self, name: str, arguments: Mapping[str, JSON], exchange: Exchange, who: str = ""
    ) -> asyncio.Task[Answer]:
        """Begin a call; cancelling the task ends it with all that it has started. `who` tells apart the clients that share a guest."""
        is_task = name == RunTask.name and name in self._house.names
        if (refusal := self._no_room(who)) is not None:
            work = refusal
        else:
            work = self._run_task(arguments, exchange) if is_task else self._call(name, arguments, exchange)
        task = asyncio.create_task(self._answered(work), name=f"call of {self.label}: {name}")
        self._works[task] = who
        task.add_done_callback(self._over)
        return task

    def _no_room(self, who: str) -> Coroutine[Any, Any, Answer] | None:
        if list(self._works.values()).count(who) >= MOST:
            return _too_many(f"{MOST} calls")
        return _too_many(f"{_MOST_OF_ALL} calls of all clients") if len(self._works) >= _MOST_OF_ALL else None

    def _over(self, work: asyncio.Task[Answer]) -> None:
        self._works.pop(work, None)
        self.used = time.monotonic()
        if not work.cancelled():
            work.exception()  # whoever waits for it has it; nobody may be left

    @property
    def busy(self) -> bool:
        """Whether calls are open."""
        return bool(self._works)

    async def _answered(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        try:
            answer = await work
        except HandworkError as error:
            answer = of_error(error)
        for artifact in answer.artifacts:
            self.files[artifact.path] = artifact.media_type
        return answer

    async def _call(self, name: str, arguments: Mapping[str, JSON], exchange: Exchange) -> Answer:
        call = ToolCall(id=f"call_{secrets.token_hex(6)}", function=Function(name, json.dumps(arguments)))
        self._exchanges[call.id] = exchange
        _own.set(exchange)
        try:
            async with self._working(exchange) as caller:
                return of_outcome(name, await caller.call(call))
        finally:
            del self._exchanges[call.id]

    async def _run_task(self, arguments: Mapping[str, JSON], exchange: Exchange) -> Answer:
        try:
            given = prepare(RunTask(), json.dumps(arguments))
        except ArgumentsError as error:
            return Answer(f"Error: Invalid arguments for {RunTask.name}: {error.message}", is_error=True)
        wanted: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        if (session := wanted.get("session")) is not None and session not in self._tasks:
            raise SessionNotFound(
                f"There is no session {session!r} of this client", hint="leave it out to begin a new one"
            )
        ask, approve = doors(lambda: exchange) if exchange.can_ask else (None, None)
        task = Task(self._house.settings, self._house.workspace, self._house.purse, **wanted)
        answer = await task.run(ask, approve, exchange)
        if answer.structured:
            self._tasks.add(str(answer.structured["session"]))
        return answer

    # ---- the session of the calls

    @asynccontextmanager
    async def _working(self, exchange: Exchange) -> AsyncIterator[Caller]:
        """The session is open, and has somebody who could be asked."""
        async with self._changing:
            caller = self._caller or await self._open(exchange)
            session = self._session
            assert session is not None
            if not self._calls:
                await self._occupied.enter_async_context(session.taken(asyncio.Event()))
            self._calls += 1
        try:
            yield caller
        finally:
            self._calls -= 1
            if not self._calls:
                session.withdraw_questions()
                await self._occupied.aclose()

    async def _open(self, exchange: Exchange) -> Caller:
        ask, approve = doors(self._asked) if exchange.can_ask else (None, None)
        house = self._house
        session = Session.open(house.settings, house.workspace, self._session_id, ask, approve, [self._hear])
        self._session, self._session_id = session, session.id
        caller = self._caller = Caller(
            name=f"mcp:{self.label}", session=session, settings=house.settings, available_tools=self._tools
        )
        caller.begin()
        return caller

    def _asked(self) -> Exchange | None:
        """Whom a question belongs to: the call that it comes from, else (a program wants to reach a host) the newest one."""
        return _own.get() or next(reversed(self._exchanges.values()), None)

    def _hear(self, event: ev.Event) -> None:
        match event:
            case ev.ToolOutputDelta() if exchange := self._exchanges.get(event.call_id):
                exchange.tell(event.text)
            case ev.Notice() if event.level != "info":
                self._house.say(f"{event.level}: {event.text}")

    async def rest(self) -> None:
        """Close what is held open if no call goes on; the next one opens it again, with the same session."""
        async with self._changing:
            if not self.busy:
                await self._close_session()

    async def close(self) -> None:
        """The client is gone: end its calls and close its session."""
        for work in list(self._works):
            work.cancel()
        if self._works:
            await asyncio.wait(set(self._works), timeout=_PATIENCE)
        async with self._changing:
            await self._close_session()

    async def _close_session(self) -> None:
        session, caller = self._session, self._caller
        self._session = self._caller = None
        if session is None or caller is None:
            return
        caller.end()
        await uncancelled(session.close())
        if not session.intact:
            self._house.say(f"error: The last calls of session {session.id} are not on disk: is it full, or read-only?")


async def _too_many(calls: str) -> Answer:
    return Answer(f"Error: {calls} are open already; wait until one of them has ended", is_error=True)
