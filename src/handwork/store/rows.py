"""The statements on sessions, events and pictures, and the one transaction that writes them."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from handwork.store.facts import SessionInfo, now, since
from handwork.store.journal import Journal

Row: TypeAlias = tuple[Any, ...]
Values: TypeAlias = Sequence[Any] | Mapping[str, Any]

OVERHEAD = 16 << 10
"""About how many bytes a session's commit adds to the log beyond its events."""

_COLUMNS = "number, id, created, updated, workspace, title, agent, model, status, steps, cost, pid, host, since"
FIND = f"SELECT {_COLUMNS} FROM sessions WHERE id = ?"
LIST = f"""SELECT {_COLUMNS} FROM sessions WHERE :workspace IS NULL OR workspace = :workspace
    ORDER BY turn DESC LIMIT :limit"""
LATEST = "SELECT id FROM sessions WHERE workspace = ? AND agent NOT LIKE 'mcp:%' ORDER BY turn DESC LIMIT 1"
"""Not the sessions of `mcp serve`: what another program calls is no conversation to go on with."""
RECENT_IDS = "SELECT id FROM sessions ORDER BY turn DESC LIMIT 1000"
LAST_SEQ = "SELECT max(seq) FROM events WHERE session = ?"
EVENTS = "SELECT seq, data FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?"
GET_BLOB = "SELECT data FROM blobs WHERE hash = ?"

_ADD_EVENT = "INSERT INTO events (session, seq, data) VALUES (?, ?, ?)"
_ADD_BLOB = "INSERT OR IGNORE INTO blobs (hash, data) VALUES (?, ?)"
_ADD_SESSION = """INSERT INTO sessions
    (turn, id, workspace, created, updated, title, agent, model, status, steps, cost, pid, host, since)
    VALUES ((SELECT coalesce(max(turn), 0) + 1 FROM sessions), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
# What an UPDATE names it writes anew in every index: only moving names the indexed columns.
_MOVE = "UPDATE sessions SET workspace = ?, turn = (SELECT max(turn) + 1 FROM sessions) WHERE number = ?"
_UPDATE_SESSION = """UPDATE sessions
    SET updated = ?, title = ?, agent = ?, model = ?, status = ?, steps = ?, cost = ? WHERE number = ?"""
_CLAIM = "UPDATE sessions SET pid = ?, host = ?, since = ? WHERE number = ?"


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A row of `sessions`, in the order of the columns."""

    number: int
    id: str
    created: str
    updated: str
    workspace: str
    title: str
    agent: str
    model: str
    status: str
    steps: int
    cost: float | None
    pid: int | None
    host: str | None
    since: str | None

    def info(self, status: str) -> SessionInfo:
        """What the list of sessions shows, with this status."""
        return SessionInfo(
            id=self.id,
            created=self.created,
            updated=self.updated,
            workspace=self.workspace,
            title=self.title,
            agent=self.agent,
            model=self.model,
            status=status,
            steps=self.steps,
            cost=self.cost,
        )

    def writer(self) -> str:
        """Who wrote last, if they can be the one who holds the session now; else ''."""
        if not self.pid or (self.host == socket.gethostname() and not _lives(self.pid)):
            return ""
        return f"process {self.pid} on {self.host}, {since(self.since)}"


def write(connection: sqlite3.Connection, journals: Sequence[Journal], blobs: Mapping[str, bytes]) -> list[int]:
    """Write what these journals and `blobs` hold in one transaction; returns the journals' numbers. Raises sqlite3.Error."""
    connection.execute("BEGIN IMMEDIATE")  # at once: to become a writer later can fail for good
    try:
        numbers = [_number(connection, journal) for journal in journals]
        connection.executemany(_ADD_EVENT, _events(journals, numbers))
        if blobs:
            connection.executemany(_ADD_BLOB, blobs.items())
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return numbers


def _number(connection: sqlite3.Connection, journal: Journal) -> int:
    """The session's number, its row being inserted or brought up to date as needed."""
    facts, number = journal.facts, journal.number
    told = (facts.title, facts.agent, facts.model, facts.status, facts.steps, facts.cost)
    if number is None:
        who = (os.getpid(), socket.gethostname(), journal.since)
        moment = now()
        return (
            connection.execute(
                _ADD_SESSION, (journal.session_id, facts.workspace, moment, moment, *told, *who)
            ).lastrowid
            or 0
        )
    if not journal.claimed:
        connection.execute(_CLAIM, (os.getpid(), socket.gethostname(), journal.since, number))
    if facts.moved:
        connection.execute(_MOVE, (facts.workspace, number))
    if facts.dirty:
        connection.execute(_UPDATE_SESSION, (now(), *told, number))
    return number


def _events(journals: Sequence[Journal], numbers: Sequence[int]) -> Iterator[tuple[int, int, bytes]]:
    for journal, number in zip(journals, numbers, strict=True):
        for seq, data in enumerate(journal.pending, journal.seq - len(journal.pending) + 1):
            yield number, seq, data


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is another user's
    return True
