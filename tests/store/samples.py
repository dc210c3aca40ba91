"""Events as a run writes them, and programs that hold a store from another process."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from handwork.events import (
    Event,
    Notice,
    RunFinished,
    RunStarted,
    StepFinished,
    ToolCallFinished,
    UsageReported,
    read_event,
)
from handwork.schema import Limits, Status, Usage
from handwork.store.journal import Journal
from handwork.store.sqlite import Store

STAMP = "2026-11-30T11:00:00.000Z"


def notice(journal: Journal, text: str = "hello") -> Event:
    return Notice(session_id=journal.session_id, seq=journal.seq + 1, ts=STAMP, level="info", text=text)


def started(journal: Journal, request: str | None = "do it", workspace: str = "/w", parent: str | None = None) -> Event:
    return RunStarted(
        session_id=journal.session_id,
        seq=journal.seq + 1,
        ts=STAMP,
        agent="manus",
        parent_call=parent,
        request=request,
        model="scripted:m",
        workspace=workspace,
        limits=Limits(),
    )


def finished(journal: Journal, status: Status = Status.FINISHED, parent: str | None = None) -> Event:
    return RunFinished(
        session_id=journal.session_id,
        seq=journal.seq + 1,
        parent_call=parent,
        status=status,
        output="done",
        steps=1,
        usage=Usage(),
        cost_usd=None,
    )


def step(journal: Journal, number: int = 1, parent: str | None = None) -> Event:
    return StepFinished(seq=journal.seq + 1, parent_call=parent, step=number, result="ok")


def usage(journal: Journal, cost: float | None) -> Event:
    return UsageReported(seq=journal.seq + 1, input=1, cached=0, written=0, output=1, reasoning=0, cost_usd=cost)


def result(journal: Journal, observation: str = "ok", details: dict[str, object] | None = None) -> Event:
    return ToolCallFinished(seq=journal.seq + 1, call_id="c1", observation=observation, details=details)


def begin(store: Store, session_id: str | None = None, *, workspace: str = "/w") -> Journal:
    return store.begin(session_id, workspace=workspace, create=True)


def texts(store: Store, session_id: str) -> list[str]:
    """The texts of a session's notices, read through the rows."""
    events = [read_event(raw) for _, raw in store.events(session_id)]
    return [event.text for event in events if isinstance(event, Notice)]


_PRELUDE = """
import asyncio, os, sys
from pathlib import Path
from handwork.errors import *
from handwork.events import Notice
from handwork.store.sqlite import Store
path = Path(sys.argv[1])

def notice(journal, text="hello"):
    return Notice(session_id=journal.session_id, seq=journal.seq + 1, level="info", text=text)

def say(*words):
    print(*words, flush=True)
"""


@contextmanager
def program(body: str, path: Path, *args: str) -> Iterator[subprocess.Popen[str]]:
    """Another Python process that runs `body` as a coroutine; killed (-9) and reaped at the end."""
    code = f"{_PRELUDE}\nasync def main():\n{textwrap.indent(textwrap.dedent(body), '    ')}\nasyncio.run(main())\n"
    command = [sys.executable, "-c", code, str(path), *args]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def heard(child: subprocess.Popen[str]) -> str:
    """The next line that the process says."""
    assert child.stdout is not None
    return child.stdout.readline().strip()
