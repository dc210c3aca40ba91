"""What outlives a run, opened and closed as one: journal scope, sandbox, resources, grants, budget and the two doors."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from handwork.config import Settings, load_settings
from handwork.errors import HandworkError, Waiting
from handwork.events import Event, Listener, Notice
from handwork.llm.budget import Ledger
from handwork.sandbox.base import Sandbox
from handwork.sandbox.open import open_sandbox
from handwork.schema import Approve, Artifact, Ask, Budget, Message, Mode, Question
from handwork.store.keep import keep_open
from handwork.store.recorded import Recorded
from handwork.store.sqlite import Store

R = TypeVar("R")
_SECRET_NAMES = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")


class Session:
    """One conversation and all that it holds, over any number of runs and processes.

    `async with Session.open(...) as session:` closes it at the end. Opening needs a running event loop and takes the session's
    writer lock; sandbox, shell and kernel start at their first use.

    Args of `open`:
        settings: None looks them up as the command line does.
        workspace: the folder that tools may change; None is the current one.
        id: a session to go on with (made if `create`); None makes a new one.
        ask, approve: the doors to the human; None means that nobody is there.
        listeners: called with every event, in order.

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
    ) -> None:
        self.settings, self.workspace, self.ask_door, self.approve_door = settings, workspace, ask, approve
        self._store = store
        self._journal = store.begin(id, workspace=str(workspace), create=create)
        self.id = self._journal.session_id
        self.recorded = Recorded.fold(self._journal.replay(), store.get_blob)
        self.ledger = Ledger(self.recorded.spent, self.recorded.cost)
        self.grants: set[object] = set()
        self.door = asyncio.Lock()
        """Held while a question or an approval is with the human: one at a time, in the order in which they queued."""
        self._listeners = list(listeners)
        self._order = asyncio.Lock()
        self._closers: list[Callable[[], Awaitable[None]]] = []
        self._resources: dict[str, Any] = {}
        self._notices: list[tuple[str, str]] = []
        self._blobs: set[str] = set()
        self._closed = False
        self._secrets = tuple(sorted(_secrets(settings), key=len, reverse=True))
        self.artifacts = settings.home.artifacts / self.id
        self._sandbox: Sandbox | None = None

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
    ) -> Session:
        """Open a session; see the class."""
        settings = settings or load_settings()
        folder = Path(workspace) if workspace else Path.cwd()
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
            )
        except BaseException:
            store.close()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    # ---- events

    async def emit(self, event: Event, *, run_id: str = "", agent: str = "", parent_call: str | None = None) -> None:
        """Stamp an event, put it into the journal's buffer, then tell the listeners, in one order for all."""
        self._stamp(event, run_id, agent, parent_call)
        if self._listeners:
            async with self._order:
                for listener in tuple(self._listeners):
                    await self._tell(listener, event)

    def _stamp(self, event: Event, run_id: str, agent: str, parent_call: str | None) -> None:
        fields = event.__dict__  # frozen for everybody else: the envelope is written once, here
        fields["session_id"], fields["run_id"], fields["agent"] = self.id, run_id, agent
        fields["parent_call"], fields["ts"] = parent_call, datetime.now(UTC).isoformat()
        if event.journaled:
            fields["seq"] = self._journal.seq + 1
            self._journal.append(event)

    async def _tell(self, listener: Listener, event: Event) -> None:
        try:
            if inspect.isawaitable(waiting := listener(event)):
                await waiting
        except Exception as error:  # a listener is a named boundary: the run goes on without it
            if listener in self._listeners:
                self._listeners.remove(listener)
            notice = Notice(level="warning", text=f"A listener failed and was dropped: {type(error).__name__}: {error}")
            self._stamp(notice, event.run_id, event.agent, event.parent_call)
            for other in tuple(self._listeners):
                await self._tell(other, notice)

    @contextmanager
    def listening(self, listener: Listener | None) -> Iterator[None]:
        """Have a listener told every event for a while."""
        if listener is not None:
            self._listeners.append(listener)
        try:
            yield
        finally:
            if listener is not None and listener in self._listeners:
                self._listeners.remove(listener)

    @property
    def heard(self) -> bool:
        """Whether anybody listens: what is not journaled need not be made otherwise."""
        return bool(self._listeners)

    def masked(self, text: str) -> str:
        """The text without our own keys; done once, before memory and journal."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, "***")
        return text

    def notify(self, level: str, text: str) -> None:
        """How parts below events report: kept until the next gate, where it becomes a notice."""
        self._notices.append((level, text))

    async def gate(self, *, run_id: str = "", agent: str = "", parent_call: str | None = None) -> None:
        """All that was emitted is in the journal when this returns. Raises JournalError, and keeps what could not be written."""
        if self._notices:
            pending, self._notices = self._notices, []
            for level, text in pending:
                notice = Notice.model_validate({"level": level, "text": text})
                await self.emit(notice, run_id=run_id, agent=agent, parent_call=parent_call)
        await self._journal.commit()

    def write_soon(self) -> None:
        """Have what was emitted written in this turn of the loop; a gate reached meanwhile shares the transaction."""
        self._journal.commit_soon()

    def keep_images(self, message: Message) -> None:
        """Put a message's pictures into the store, once each."""
        for image in message.images:
            if image.data and image.hash not in self._blobs:
                self._store.put_blob(image.hash, image.data.encode())
                self._blobs.add(image.hash)

    # ---- what tools reach

    @property
    def sandbox(self) -> Sandbox:
        """The session's sandbox; it starts at its first use."""
        if self._sandbox is None:
            self._sandbox = open_sandbox(
                self.settings.sandbox,
                workspace=self.workspace,
                artifacts=self.artifacts,
                notify=self.notify,
                hide=_own_files(self.settings),
            )
        return self._sandbox

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
        self.artifacts.mkdir(parents=True, exist_ok=True, mode=0o700)
        safe = re.sub(r"[^\w.-]+", "_", name).lstrip(".")[:100] or "artifact"
        path, number = self.artifacts / safe, 1
        while path.exists():
            number += 1
            path = self.artifacts / f"{Path(safe).stem}-{number}{Path(safe).suffix}"
        path.write_bytes(data)
        return Artifact(path=str(path), title=title or name, media_type=media_type)

    async def ask(self, question: Question) -> str:
        """Put a question to the human; raises Waiting when nobody is there."""
        if self.ask_door is None:
            raise Waiting(f"Waiting for an answer to: {question.text}")
        async with self.door:
            return await self.ask_door(question)

    def set_budget(self, budget: Budget | None) -> None:
        """A new total for the whole session tree, spent money included."""
        if budget is not None:
            self.ledger.budget = budget

    # ---- the end

    def on_close(self, closer: Callable[[], Awaitable[None]]) -> None:
        """Have something closed with the session; the last one added is closed first."""
        self._closers.append(closer)

    async def close(self) -> None:
        """Close all that the session holds; an error in one part never hides another and is only told."""
        if self._closed:
            return
        self._closed = True
        try:
            while self._closers:
                await self._close_one(self._closers.pop())
            if self._sandbox is not None:
                await self._close_one(self._sandbox.close)
            await self._close_one(self.gate)
        finally:
            self._journal.close()
            self._store.close()

    async def _close_one(self, closer: Callable[[], Awaitable[None]]) -> None:
        try:
            await closer()
        except Exception as error:  # one cleanup is a named boundary
            detail = str(error) if isinstance(error, HandworkError) else f"{type(error).__name__}: {error}"
            self.notify("warning", f"Closing a part of the session failed: {detail}")


def _secrets(settings: Settings) -> set[str]:
    """Our own keys: those of the settings, and what the environment holds under a name that says so."""
    keys = {llm.api_key for llm in settings.llm.values()}
    keys |= {value for name, value in settings.environ.items() if name.upper().endswith(_SECRET_NAMES)}
    return {key for key in keys if len(key) >= 8 and not key.startswith("env:")}


def _own_files(settings: Settings) -> list[Path]:
    """What nothing in the sandbox may see: the store, wherever it is, and the folders of data and configuration."""
    store = [settings.store_path.with_name(settings.store_path.name + end) for end in ("", "-wal", "-shm", "-lock")]
    return [settings.home.data, settings.home.config, *store]
