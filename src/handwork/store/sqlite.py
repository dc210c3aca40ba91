"""The journal in one SQLite file: one connection a process and loop, one transaction a gate."""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from threading import Lock
from weakref import WeakKeyDictionary

from handwork.errors import ConfigError, JournalCorrupt, JournalError, SessionBusy, SessionNotFound
from handwork.schema import Notify
from handwork.store import connection as opening
from handwork.store import recovery, rows
from handwork.store.encode import MAX_ROW
from handwork.store.facts import Facts, SessionInfo, since
from handwork.store.faults import StoreLocked, corrupt, journal_error
from handwork.store.gate import Gate
from handwork.store.ids import check_id, new_id
from handwork.store.journal import Journal
from handwork.store.locks import LockFile
from handwork.store.presence import Presence
from handwork.store.wal import Checkpointer

_PAGE = 100
"""Rows read at once: a reader holds no transaction open between them."""


class Store:
    """All sessions of a user. Made by `open`; belongs to the thread and loop that opened it."""

    def __init__(self, path: Path, connection: sqlite3.Connection, locks: LockFile, notify: Notify | None) -> None:
        self.path = path
        self._connection, self._locks = connection, locks
        self._present = Presence(path)
        self._users = 1
        self._journals: dict[str, Journal] = {}
        self._blobs: dict[str, bytes] = {}
        self._gate: Gate[Journal] = Gate(self._write)
        self._checkpointer = Checkpointer(path, lambda text: notify("warning", text) if notify else None)

    @classmethod
    def open(
        cls, path: Path, *, synchronous: str = "normal", notify: Notify | None = None, recover: bool = False
    ) -> Store:
        """Open (or make) the store; a second open in the same running loop returns the same object, to be closed as often.

        `synchronous`: normal survives the death of the program, full also a power cut (one disk flush a commit). With
        `recover` a damaged file is set aside and what can be read of it goes into a new one; `notify` hears about it.
        An object whose files were deleted since is left to those who use it, and a new store is made.
        Raises JournalCorrupt for a damaged file, JournalError for one that cannot be used.
        """
        if synchronous not in ("normal", "full"):
            raise ConfigError(f"[store] synchronous is {synchronous!r}: it must be normal or full")
        path = Path(os.path.realpath(path.expanduser()))
        lock, stores = _open_stores()
        with lock:
            mine = stores.setdefault(loop, {}) if (loop := _running_loop()) else {}
            if (store := mine.get(path)) and store._users and not store._present.is_gone():
                store._present.check()
                store._users += 1
                if synchronous == "full":
                    opening.set_synchronous(store._connection, synchronous)
                return store
            store = mine[path] = cls._opened(path, synchronous, notify, recover)
            return store

    @classmethod
    def _opened(cls, path: Path, synchronous: str, notify: Notify | None, recover: bool) -> Store:
        opening.prepare(path)
        locks = LockFile(recovery.lock_path(path))
        try:
            if not locks.use():
                raise StoreLocked(
                    f"The store {path} is being recovered by another process: try again when that is done"
                )
            try:
                connection = opening.connect(path, synchronous=synchronous)
            except JournalCorrupt:
                if not recover:
                    raise
                report = recovery.replace(path, locks)
                connection = opening.connect(path, synchronous=synchronous)
                if notify:
                    notify("warning", report)
        except BaseException:
            locks.close()
            raise
        try:
            return cls(path, connection, locks, notify)
        except BaseException:
            connection.close()
            locks.close()
            raise

    def close(self) -> None:
        """Give the store back; the last user's close writes what is still buffered and closes the file.

        Raises JournalError if that could not be written; the file is closed all the same.
        """
        if self._users == 0:
            return
        self._users -= 1
        if self._users:
            return
        lock, stores = _open_stores()
        with lock:
            mine = stores.get(loop, {}) if (loop := _running_loop()) else {}
            if mine.get(self.path) is self:
                del mine[self.path]
        self._gate.stop()
        try:
            self._checkpointer.close()
            self._connection.execute("PRAGMA busy_timeout = 2000")
            self._write(list(self._journals.values()))
        finally:
            for journal in list(self._journals.values()):
                journal.close()
            self._connection.close()
            self._locks.close()

    # ---- sessions

    def begin(self, session_id: str | None, *, workspace: str, create: bool) -> Journal:
        """Become the one writer of a session; None makes a new one, `create` one of this id if there is none.

        Nothing is written before the first commit. Raises SessionNotFound (naming the nearest), SessionBusy (naming who
        writes, and since when), ConfigError for an id that cannot be one.
        """
        self._check_open()
        if session_id is None:
            session_id = new_id()
            while self._row(session_id) or not self._locks.take(session_id):
                session_id = new_id()
            return self._begun(Journal(self, session_id, Facts(workspace)))
        row = self._row(session_id)
        if row is None and session_id not in self._journals:
            if not create:
                raise self._not_found(session_id)
            check_id(session_id)
        if session_id in self._journals or not self._locks.take(session_id):
            raise self._busy(session_id)
        try:
            row = self._row(session_id)  # again: what the last writer did is complete only now
            last = self._read(rows.LAST_SEQ, (row.number,))[0][0] if row else 0
        except JournalError:
            self._locks.free(session_id)
            raise
        if row is None:
            return self._begun(Journal(self, session_id, Facts(workspace)))
        facts = Facts(row.workspace, row.title, row.agent, row.model, row.status, row.steps, row.cost)
        journal = self._begun(Journal(self, session_id, facts, number=row.number, seq=last or 0))
        if _running_loop():
            self._gate.enlist(journal)  # with this turn's commits, so that whoever finds it busy learns by whom
        return journal

    def _begun(self, journal: Journal) -> Journal:
        self._journals[journal.session_id] = journal
        return journal

    def release(self, journal: Journal) -> None:
        """For Journal.close: its buffered events are dropped and the session is free."""
        if self._journals.get(journal.session_id) is journal:
            self._gate.withdraw(journal)
            del self._journals[journal.session_id]
            self._locks.free(journal.session_id)

    def latest(self, workspace: str) -> str | None:
        """The session of this workspace that was active last."""
        found = self._read(rows.LATEST, (workspace,))
        return str(found[0][0]) if found else None

    def sessions(self, *, limit: int = 50, workspace: str | None = None) -> list[SessionInfo]:
        """What is known of each session, the last active first; `workspace` keeps those of one."""
        found = self._read(rows.LIST, {"limit": limit, "workspace": workspace})
        return [self._info(rows.SessionRow(*row)) for row in found]

    def _info(self, row: rows.SessionRow) -> SessionInfo:
        dead = row.status == "running" and row.id not in self._journals and not self._locks.is_held(row.id)
        return row.info("interrupted" if dead else row.status)

    def _row(self, session_id: str) -> rows.SessionRow | None:
        found = self._read(rows.FIND, (session_id,))
        return rows.SessionRow(*found[0]) if found else None

    def _not_found(self, session_id: str) -> SessionNotFound:
        known = [str(name) for (name,) in self._read(rows.RECENT_IDS, ())]
        near = [name for name in known if session_id and session_id in name][:3] or get_close_matches(
            session_id, known, 3
        )
        hint = f"the nearest: {', '.join(near)}" if near else "there is none like it"
        return SessionNotFound(f"There is no session {session_id!r}; {hint}")

    def _busy(self, session_id: str) -> SessionBusy:
        if mine := self._journals.get(session_id):
            who = f"this process (pid {os.getpid()} on {socket.gethostname()}), {since(mine.since)}"
        else:
            row = self._row(session_id)
            who = (row.writer() if row else "") or "another process"
        return SessionBusy(
            f"Session {session_id} is in use by {who}",
            hint="end it there first, or begin another session without --session and -c",
        )

    # ---- events and pictures

    def events(self, session_id: str, *, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """The committed rows (seq, JSON) after a number, in order. Raises SessionNotFound, JournalCorrupt for a gap."""
        row = self._row(session_id)
        if row is None:
            if session_id in self._journals:
                return
            raise self._not_found(session_id)
        while page := self._read(rows.EVENTS, (row.number, after, _PAGE)):
            for seq, data in page:
                if seq != after + 1:
                    raise corrupt(self.path, f"event {after + 1} of session {session_id} is missing")
                after = seq
                yield seq, data

    def put_blob(self, hash: str, data: bytes) -> None:
        """Keep bytes under their hash; they reach the disk with the next commit of any session."""
        self._check_open()
        if len(data) > MAX_ROW:
            raise JournalError(f"A picture of {len(data):,} bytes is too large to be stored; the limit is {MAX_ROW:,}")
        self._blobs[hash] = data

    def get_blob(self, hash: str) -> bytes | None:
        """The bytes kept under a hash, committed or not; None if there are none."""
        if (data := self._blobs.get(hash)) is not None:
            return data
        found = self._read(rows.GET_BLOB, (hash,))
        return bytes(found[0][0]) if found else None

    # ---- writing

    async def commit(self, journal: Journal) -> None:
        """For Journal.commit: return when its pending events, and all pictures, are on disk."""
        if not journal.pending and not self._blobs:
            return
        self._check_open()
        await self._gate.pass_through(journal)

    def commit_soon(self, journal: Journal) -> None:
        """For Journal.commit_soon."""
        self._check_open()
        self._gate.enlist(journal)

    def _write(self, journals: Collection[Journal]) -> None:
        """Everything buffered of these journals in one transaction, or JournalError and all stays buffered."""
        due = [journal for journal in journals if journal.pending or (journal.number and not journal.claimed)]
        if not due and not self._blobs:
            return
        self._present.check()
        try:
            numbers = rows.write(self._connection, due, self._blobs)
        except sqlite3.Error as error:
            raise journal_error(error, self.path) from error
        size = sum(map(len, self._blobs.values()))
        self._blobs.clear()
        for journal, number in zip(due, numbers, strict=True):
            size += sum(map(len, journal.pending)) + rows.OVERHEAD
            journal.number, journal.claimed = number, True
            journal.facts.dirty = journal.facts.moved = False
            journal.pending.clear()
        self._checkpointer.wrote(size)

    def _read(self, sql: str, values: rows.Values) -> list[rows.Row]:
        self._check_open()
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise journal_error(error, self.path) from error

    def _check_open(self) -> None:
        if self._users == 0:
            raise JournalError(f"The store {self.path} is closed")


@cache
def _open_stores() -> tuple[Lock, WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, Store]]]:
    """Which stores each loop has open: the one place of the process that must know, or every agent had a connection."""
    return Lock(), WeakKeyDictionary()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
