"""The MCP servers of a session: one connection each, in the session's surroundings, closed with it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol

from handwork.config import MCPServerSettings, Settings
from handwork.config.masking import VARIABLE
from handwork.config.own_keys import keys_in
from handwork.errors import Waiting
from handwork.events import Event, QuestionAnswered, QuestionAsked
from handwork.mcp.connection import Connection
from handwork.mcp.offer import Offer
from handwork.mcp.programs import installed_argv, program_paths
from handwork.mcp.surroundings import Surroundings
from handwork.sandbox.base import Process, Sandbox
from handwork.sandbox.beside import Beside
from handwork.schema import Approve, Ask, Question
from handwork.session.definitions import Definitions
from handwork.session.place import Place
from handwork.tool.call_clock import CallClock

_BESIDE = "The MCP server {name} runs beside the sandbox, with your rights."
_OPENED = "For the MCP server {name} the sandbox can also {what}."
_TOO_LATE = "The sandbox was opened before the MCP server {name} was named: it cannot {what}."
_NO_LIST = "The MCP server {name} cannot reach {hosts}: this sandbox cannot open the network for chosen hosts alone."
_ENDED = "the run has ended before anybody answered"
_ENOUGH = "There is more to say about the MCP server {name}: it goes on like this, and is not told of any more in this session."
_MOST_NOTICES = 5
"""Of one server: what they say is partly the server's to choose, and a new one each step would bury what matters."""


class Holds(Protocol):
    """What this needs of its session."""

    settings: Settings
    workspace: Path
    artifacts: Path
    place: Place
    clock: CallClock
    door: asyncio.Lock
    ask_door: Ask | None
    approve_door: Approve | None

    @property
    def sandbox(self) -> Sandbox: ...

    @property
    def at_work(self) -> bool: ...

    def notify(self, level: str, text: str) -> None: ...

    def tell(self, event: Event) -> None: ...

    def hide(self, secrets: Iterable[str]) -> None: ...

    def masked(self, value: str) -> str: ...

    async def commit(self) -> None: ...


class Servers:
    """The connections of one session; `definitions` says what of an offer may be shown and called."""

    def __init__(self, session: Holds) -> None:
        self._session = session
        self.clock = session.clock
        self._connections: list[Connection] = []
        self._declared: dict[str, MCPServerSettings] = {}
        self._asking: set[asyncio.Task[str]] = set()
        self._beside: Beside | None = None
        self._said: dict[str, set[str]] = {}
        self._ends = 0
        """How many runs have ended."""
        self.definitions = Definitions(session)

    # ---- before anything starts

    def declare(self, servers: Mapping[str, MCPServerSettings]) -> None:
        """Name the servers that will be used: the sandbox is opened to their paths and hosts, and what that means is said, once."""
        for name, settings in servers.items():
            if self._declared.get(name) != settings:
                self._declared[name] = settings
                self._session.hide(_secrets(settings))
                self._open_place(name, settings)

    def _open_place(self, name: str, settings: MCPServerSettings) -> None:
        session, place = self._session, self._session.place
        if settings.type != "stdio":
            return
        if not settings.sandbox:
            session.notify("info", _BESIDE.format(name=name))
            return
        hosts = () if place.settings.network else settings.allow_net
        if hosts and not place.keeps_a_list:
            session.notify("warning", _NO_LIST.format(name=name, hosts=", ".join(hosts)))
            hosts = ()
        late, own = place.is_open, program_paths(settings, session.settings.home)
        if own and not late:
            place.open_to(own, ())
        if what := _what((*settings.paths, *(own if late else ())), hosts):
            session.notify("warning" if late else "info", (_TOO_LATE if late else _OPENED).format(name=name, what=what))
            if not late:
                place.open_to(settings.paths, hosts)

    # ---- connections

    def connection(self, name: str, settings: MCPServerSettings) -> Connection:
        """The session's connection to a server; made at the first use, and anew where the last one is closed or gone for good."""
        self._connections = [each for each in self._connections if each.state not in ("closed", "gone")]
        for known in self._connections:
            if known.name == name and known.settings == settings:
                return known
        self.declare({name: settings})
        made = Connection(name, settings, self._surroundings(name, settings))
        self._connections.append(made)
        return made

    async def approved(self, connection: Connection) -> Offer:
        """What may be shown and called of what a server offers; a person is asked about what it changed, if a run goes on.

        Raises MCPUnavailable where nothing is known of it: it was never connected.
        """
        return await self.definitions.approved(connection)

    async def drop(self, connection: Connection) -> None:
        """Close a connection; the next use of the server makes another."""
        if connection in self._connections:
            self._connections.remove(connection)
        await connection.close()

    def withdraw(self) -> None:
        """The run ends: what servers asked is not put to the human any more."""
        self._ends += 1
        for asking in self._asking:
            asking.cancel()

    async def close(self) -> None:
        """End all connections together. The first error is raised when all are closed."""
        self.withdraw()
        closing, self._connections = self._connections, []
        ends = await asyncio.gather(*(each.close() for each in closing), return_exceptions=True)
        if self._beside is not None:
            await self._beside.close()
        for error in ends:
            if isinstance(error, BaseException):
                raise error

    # ---- what they get of the session

    def _surroundings(self, name: str, settings: MCPServerSettings) -> Surroundings:
        session = self._session
        contained = settings.type == "stdio" and settings.sandbox
        return Surroundings(
            spawn=partial(self._spawn, name),
            workspace=session.sandbox.workspace if contained else str(session.workspace),
            home=session.settings.home.config / "mcp",
            notify=partial(self._notify, name),
            ask=self._ask if session.ask_door is not None else None,
            clock=session.clock,
            environ=session.settings.environ,
            hide=session.hide,
        )

    def _notify(self, name: str, level: str, text: str) -> None:
        """What was said of a server once is not said again when it is connected anew, and it gives no more to say than a few things."""
        said = self._said.setdefault(name, set())
        if text in said or len(said) > _MOST_NOTICES:
            return
        said.add(text)
        self._session.notify(level, text if len(said) <= _MOST_NOTICES else _ENOUGH.format(name=name))

    async def _spawn(
        self, name: str, argv: Sequence[str], *, cwd: str | None, env: Mapping[str, str], contained: bool
    ) -> Process:
        argv = installed_argv(name, argv, self._session.settings.home)
        if contained:
            return await self._session.sandbox.spawn(argv, cwd=cwd, env=env, stdin=True, apart=True)
        return await self._place_beside().spawn(argv, cwd=cwd, env=env, stdin=True, apart=True)

    def _place_beside(self) -> Beside:
        """Where servers run that are not in the sandbox; made with the first one."""
        session = self._session
        if self._beside is None:
            environ = session.settings.environ
            self._beside = Beside(session.workspace, session.artifacts, session.notify, environ=environ)
        return self._beside

    async def _ask(self, text: str) -> str:
        """Put a server's question to the human, with the limits of calls standing still. Raises Waiting where nobody answers."""
        session, ends = self._session, self._ends
        question = Question(id=f"mcp-{secrets.token_hex(8)}", text=session.masked(text))
        answer = ""
        session.tell(QuestionAsked(id=question.id, question=question))
        try:
            await session.commit()
            if ends != self._ends:
                raise Waiting(_ENDED)
            with session.clock.stopped():
                answer = session.masked(await self._answer(question))
        finally:  # one that stayed open would take the next request for its answer
            session.tell(QuestionAnswered(id=question.id, answer=answer))
        return answer

    async def _answer(self, question: Question) -> str:
        session, door = self._session, self._session.ask_door
        assert door is not None

        async def put() -> str:
            async with session.door:
                return await door(question)

        asking = asyncio.create_task(put(), name=f"ask for an MCP server: {question.id}")
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        try:
            await asyncio.wait({asking})
        finally:
            asking.cancel()
        with suppress(asyncio.CancelledError):
            return asking.result()
        raise Waiting(_ENDED)


def _secrets(settings: MCPServerSettings) -> set[str]:
    """What others in the sandbox could read of a server's environment: what has a secret's name, or is looked up as one (`env:NAME`)."""
    named = [name for name, text in settings.written.env.items() if VARIABLE.fullmatch(text)]
    return {*keys_in(settings.env), *(settings.env[name].rpartition(" ")[2] for name in named)}


def _what(paths: Sequence[str], hosts: Sequence[str]) -> str:
    parts = [f"{verb} {', '.join(them)}" for verb, them in (("read", paths), ("reach", hosts)) if them]
    return " and ".join(parts)
