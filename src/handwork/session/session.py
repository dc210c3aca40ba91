"""What outlives a run, opened and closed as one: journal scope, sandbox, resources, grants, budget and the two doors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from handwork.config import Settings, load_settings
from handwork.config.folder_name import storable
from handwork.config.own_keys import Masks
from handwork.errors import HandworkError, JournalError, SessionBusy, Waiting
from handwork.events import Event, FanOut, Listener, Notice, ToolCallFinished, ToolCallStarted
from handwork.sandbox.base import Sandbox
from handwork.schema import JSON, Approve, Artifact, Ask, Budget, Image, Mode, Question
from handwork.session.doors import check_doors
from handwork.session.grants import Grants
from handwork.session.hosts import Hosts
from handwork.session.place import Place
from handwork.session.saving import Saving
from handwork.session.servers import Servers
from handwork.session.spending import Purse, check
from handwork.store.keep import keep_open
from handwork.store.past import Past
from handwork.store.sqlite import Store
from handwork.tool.call_clock import CallClock

R = TypeVar("R")
_RUN_PATIENCE = 3.0
"""Seconds that a run has to end when its session is closed under it."""
_PATIENCE = 1.0
"""Seconds that async listeners have to take the last events of a run or session."""


class Session:
    """One conversation and all that it holds, over any number of runs and processes.

    `async with Session.open(...) as session:` closes it at the end. Opening needs a running event loop and takes the session's
    writer lock; sandbox, shell and kernel start at their first use.

    Args of `open`:
        settings: None looks them up as the command line does.
        workspace: the folder that tools may change; None is the current one.
        id: a session to go on with (made if `create`); None makes a new one.
        ask, approve: the doors to the human; None means that nobody is there.
        listeners: told every event, in order.
        past: what an earlier Session of this id knew, so that only newer events are read.

    Raises SessionBusy, SessionNotFound, JournalError, ConfigError.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        workspace: Path,
        store: Store,
        id: str | None,
        create: bool,
        ask: Ask | None,
        approve: Approve | None,
        listeners: Iterable[Listener],
        past: Past | None,
    ) -> None:
        self.settings, self.workspace, self.ask_door, self.approve_door = settings, workspace, ask, approve
        self._store = store
        self.grants = Grants(settings, workspace)  # a rule that cannot be used: before anything is locked
        self._journal = store.begin(id, workspace=str(workspace), create=create)
        self.id = self._journal.session_id
        self.past = self._caught_up(past)
        self.grants.recall(self.past.granted)
        self.budget = Budget()
        self.purse: Purse | None = None
        """What it shares with other sessions, beside its own budget."""
        self.door = asyncio.Lock()
        """Held while a question or an approval is with the human: one at a time, in the order in which they queued."""
        self.clock = CallClock()
        self.artifacts = settings.home.artifacts / self.id
        self._saving = Saving(self.artifacts)
        self._runs: asyncio.Event | None = None
        self._run_over = asyncio.Event()
        self._fan_out = FanOut(self._listener_failed)
        for listener in listeners:
            self._fan_out.add(listener)
        self._closers: list[Callable[[], Awaitable[None]]] = []
        self._resources: dict[str, Any] = {}
        self._blobs: set[str] = set()
        self._masks = Masks((*settings.hidden, *settings.keys.readable()))
        self._hosts = Hosts(self, settings.sandbox.allow_net)
        self._voice: tuple[str, str, str | None] = ("", "", None)
        self.place = Place(self, self._hosts)
        """Where tools work: what the sandbox is opened to."""
        self._servers: Servers | None = None
        self._notices = [("warning", text) for text in settings.keys.take_notices()]
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    def open(
        cls,
        settings: Settings | None = None,
        workspace: str | Path | None = None,
        id: str | None = None,
        ask: Ask | None = None,
        approve: Approve | None = None,
        listeners: Iterable[Listener] = (),
        *,
        create: bool = True,
        past: Past | None = None,
    ) -> Session:
        """Open a session; see the class. Raises TypeError for a door that cannot be called."""
        check_doors(ask, approve)
        settings = settings or load_settings(workspace=Path(workspace) if workspace else None)
        folder = storable(Path(workspace) if workspace else Path.cwd())
        store = Store.open(settings.store_path, synchronous=settings.store.synchronous)
        try:
            keep_open(store, settings.store_path, synchronous=settings.store.synchronous)
            return cls(
                settings=settings,
                workspace=folder.absolute(),
                store=store,
                id=id,
                create=create,
                ask=ask,
                approve=approve,
                listeners=listeners,
                past=past,
            )
        except BaseException:
            store.close()
            raise

    def _caught_up(self, past: Past | None) -> Past:
        if past is None or past.session_id != self.id or past.seq > self._journal.seq:
            past = Past(session_id=self.id)
        for event in self._journal.replay(after=past.seq):
            past.read(event, self._store.get_blob)
        return past

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    # ---- events

    def emit(self, event: Event, *, run_id: str = "", agent: str = "", parent_call: str | None = None) -> None:
        """Stamp an event, put it into the journal's buffer and what it says into `past`, then tell the listeners.

        Never waits, so that a pair of events is closed whatever is being cancelled.
        """
        fields = event.__dict__  # frozen for everybody else: the envelope is written once, here
        fields["session_id"], fields["run_id"], fields["agent"] = self.id, run_id, agent
        fields["parent_call"], fields["ts"] = parent_call, datetime.now(UTC).isoformat()
        if event.journaled:
            fields["seq"] = self._journal.seq + 1
            self._journal.append(event)
            self.past.take(event)
        self._fan_out.tell(event)

    def _listener_failed(self, listener: Listener, error: BaseException) -> None:
        self.emit(Notice(level="warning", text=f"A listener failed and was dropped: {type(error).__name__}: {error}"))

    @asynccontextmanager
    async def listening(self, listener: Listener | None) -> AsyncIterator[None]:
        """Have a listener told every event for a while."""
        if listener is None:
            yield
            return
        self._fan_out.add(listener)
        try:
            yield
        finally:
            await self._fan_out.remove(listener, _PATIENCE)

    @property
    def heard(self) -> bool:
        """Whether anybody listens: what is not journaled need not be made otherwise."""
        return bool(self._fan_out)

    def notify(self, level: str, text: str) -> None:
        """How parts below events report: kept until a run begins or comes to its next gate, where it becomes a notice."""
        self._notices.append((level, text))

    async def gate(self, *, run_id: str = "", agent: str = "", parent_call: str | None = None) -> None:
        """All that was emitted is in the journal when this returns. Raises JournalError, and keeps what could not be written."""
        if run_id:
            self._voice = run_id, agent, parent_call
        self.report(run_id=run_id, agent=agent, parent_call=parent_call)
        await self._journal.commit()

    def tell(self, event: Event) -> None:
        """Emit what happens beside a run's own work as a part of the run that came to a gate last."""
        run_id, agent, parent_call = self._voice
        self.emit(event, run_id=run_id, agent=agent, parent_call=parent_call)

    async def commit(self) -> None:
        """Have what was emitted on disk. Raises JournalError."""
        await self._journal.commit()

    def report(self, *, run_id: str = "", agent: str = "", parent_call: str | None = None) -> None:
        """Tell what `notify` kept."""
        pending, self._notices = self._notices, []
        for level, text in pending:
            notice = Notice.model_validate({"level": level, "text": self.masked(text)})
            self.emit(notice, run_id=run_id, agent=agent, parent_call=parent_call)

    def write_soon(self) -> None:
        """Have what was emitted written in this turn of the loop; a gate reached meanwhile shares the transaction."""
        self._journal.commit_soon()

    def details(self, *, after: int = 0) -> Iterator[tuple[str, dict[str, JSON]]]:
        """(tool's name, details of one of its results), in order, of this session's own calls that began after an event: what
        `Tool.restore` is fed with."""
        names: dict[str, str] = {}
        for event in self._journal.replay(after=after):
            match event:
                case ToolCallStarted() if event.parent_call is None:
                    names[event.call.id] = event.call.function.name
                case ToolCallFinished() if event.details and event.ending == "done" and event.call_id in names:
                    yield names[event.call_id], event.details

    def keep_images(self, images: Iterable[Image]) -> None:
        """Put pictures into the store, once each; the events refer to them by hash."""
        for image in images:
            if image.data and image.hash not in self._blobs:
                self._store.put_blob(image.hash, image.data.encode())
                self._blobs.add(image.hash)

    # ---- runs

    @asynccontextmanager
    async def taken(self, stop: asyncio.Event) -> AsyncIterator[None]:
        """One run at a time has the conversation; raises SessionBusy for a second. Closing the session sets `stop` and waits."""
        if self._runs is not None:
            raise SessionBusy(
                f"Session {self.id}: another run of it goes on in this program", hint="give each agent its own session"
            )
        self._runs, self._run_over = stop, asyncio.Event()
        try:
            yield
        finally:
            self._runs = None
            self._run_over.set()

    @property
    def at_work(self) -> bool:
        """Whether a run goes on."""
        return self._runs is not None

    def withdraw_questions(self) -> None:
        """A run ends: what programs in the sandbox and servers asked for is not put to the human any more."""
        self._hosts.withdraw()
        if self._servers is not None:
            self._servers.withdraw()

    def check_budget(self) -> None:
        """Raise BudgetExceeded if nothing may be spent any more."""
        if self.purse is not None:
            self.purse.check()
        check(self.budget, self.past)

    # ---- what tools reach

    @property
    def sandbox(self) -> Sandbox:
        """The session's sandbox; it starts at its first use. Raises ConfigError for a workspace that cannot be one."""
        return self.place.sandbox

    @property
    def servers(self) -> Servers:
        """The MCP servers of this session; nothing is made before somebody asks for them."""
        if self._servers is None:
            self._servers = Servers(self)
            self.on_close(self._servers.close)
        return self._servers

    @property
    def mode(self) -> Mode:
        """Who approves calls: as set, else auto inside a sandbox and ask on the host."""
        if self.settings.policy.approve is not None:
            return self.settings.policy.approve
        return Mode.ASK if self.settings.sandbox.backend == "host" else Mode.AUTO

    def resource(self, key: str, make: Callable[[], R], /) -> R:
        """The session's own shell, kernel … of that key; made at the first use, closed with the session."""
        if key not in self._resources:
            self._resources[key] = made = make()
            if close := getattr(made, "close", None):
                self.on_close(close)
        found: R = self._resources[key]
        return found

    async def save_artifact(
        self, name: str, data: bytes, *, title: str = "", media_type: str = "application/octet-stream"
    ) -> Artifact:
        """Write a file for people (and, read-only, for the agent) beside the store; the name is made safe and unique."""
        path = self._saving.save(name, data)
        return Artifact(path=str(path), title=self.masked(title or name), media_type=media_type)

    async def ask(self, question: Question) -> str:
        """Put a question to the human; raises Waiting when nobody is there."""
        if self.ask_door is None:
            raise Waiting(f"Waiting for an answer to: {question.text}")
        async with self.door:
            return await self.ask_door(question)

    def hide(self, secrets: Iterable[str]) -> None:
        """Have these masked from now on: keys that are known only when they are needed."""
        self._masks.hide(secrets)

    def masked(self, value: JSON) -> Any:
        """A text, or the texts in a JSON value, without our own keys; done before anything is remembered, journaled or shown."""
        return self._masks.masked(value)

    def said(self, text: str) -> str:
        """What a human says, or files that go along with it, without our own keys; that one was taken out is told."""
        if text == (masked := self.masked(text)):
            return text
        self.notify("warning", "One of your keys stood in what was said: the model reads *** in its place.")
        return str(masked)

    # ---- the end

    def on_close(self, closer: Callable[[], Awaitable[None]]) -> None:
        """Have something closed with the session; the last one added is closed first."""
        self._closers.append(closer)

    async def close(self) -> None:
        """Close all that the session holds; an error in one part never hides another and is only told.

        Cancelling the caller does not stop the closing.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name=f"close session {self.id}")
        await asyncio.shield(self._closing)

    @property
    def intact(self) -> bool:
        """Whether everything that was emitted is on disk."""
        return not self._journal.pending

    async def _close(self) -> None:
        if self._runs is not None:
            self._runs.set()
            with suppress(TimeoutError):  # a run that closes its own session would wait for itself
                await asyncio.wait_for(self._run_over.wait(), _RUN_PATIENCE)
        try:
            while self._closers:
                await self.close_part(self._closers.pop())
            await self.close_part(self.place.close)
            await self.close_part(self.gate)
            await self._fan_out.close(_PATIENCE)
        finally:
            if not self.intact:
                self.past.session_id = ""  # nobody may go on from what never reached the disk
            self._journal.close()
            self._store.close()

    async def close_part(self, closer: Callable[[], Awaitable[None]]) -> None:
        """Close one thing; what it raises becomes a notice."""
        try:
            await closer()
        except asyncio.CancelledError as error:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            self._not_closed(error)  # the part's own, not ours
        except Exception as error:  # one cleanup is a named boundary
            self._not_closed(error)

    def _not_closed(self, error: BaseException) -> None:
        detail = str(error) if isinstance(error, HandworkError) else f"{type(error).__name__}: {error}"
        if not isinstance(error, JournalError):
            self.notify("warning", f"Closing a part of the session failed: {detail}")
