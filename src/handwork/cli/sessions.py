"""`handwork sessions`: the list, and one session's story."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from handwork import events as ev
from handwork.cli.clean import clean_for_terminal, json_for_terminal, one_line
from handwork.cli.columns import padded, width
from handwork.cli.lines import Screen, columns_of
from handwork.cli.render import Renderer
from handwork.cli.screen import is_terminal, open_screen
from handwork.cli.workspace import real_folder
from handwork.config import load_settings
from handwork.errors import SessionNotFound
from handwork.schema import Role
from handwork.store.facts import SessionInfo
from handwork.store.sqlite import Store

MANY = 1_000_000
"""All sessions, as the limit of a list."""
_HEAD = ("ID", "WHEN", "STATUS", "AGENT", "STEPS", "COST", "TITLE")
_LESS = ("AGENT", "STEPS", "COST", "STATUS")
"""Cells that are left out first where the terminal is narrow."""
_TITLE = 24
"""Columns below which a title says too little."""


def print_sessions(config: Path | None, workspace: Path | None, limit: int, as_json: bool) -> None:
    """Print the list of sessions: a table, or one JSON object a line."""
    with _store(config) as store:
        folder = str(real_folder(workspace)) if workspace else None
        found = store.sessions(limit=limit, workspace=folder) if store else []
    if as_json:
        for info in found:
            cost = info.cost if info.cost is not None and math.isfinite(info.cost) else None
            print(json_for_terminal(json.dumps({**asdict(info), "cost": cost}, ensure_ascii=False)))
        return
    if not found:
        print(
            "There are no sessions yet." if workspace is None else "There are no sessions of that workspace.",
            file=sys.stderr,
        )
        return
    _print_table([_HEAD, *map(_row, found)])


def _print_table(rows: list[tuple[str, ...]]) -> None:
    """On a terminal no line is broken: the title is cut, and where nothing would be left of it, cells that matter less go."""
    room = columns_of(sys.stdout) if is_terminal(sys.stdout) else 10_000
    left_out: set[str] = set()
    for name in ("", *_LESS):
        left_out.add(name)
        shown = [[cell for head, cell in zip(_HEAD, row, strict=True) if head not in left_out] for row in rows]
        widths = [max(map(width, column)) for column in zip(*(row[:-1] for row in shown), strict=True)]
        if (title := room - sum(widths) - 2 * len(widths)) >= _TITLE:
            break
    for row in shown:
        cells = [padded(cell, columns) for cell, columns in zip(row[:-1], widths, strict=True)]
        print("  ".join((*cells, one_line(row[-1], max(title, 10)))).rstrip())


def _row(info: SessionInfo) -> tuple[str, ...]:
    cost = _cost(info.cost, info.model)
    cells = (info.id, _when(info.updated), info.status or "new", info.agent, str(info.steps), cost)
    return (*(one_line(cell, 100) for cell in cells), info.title)


def _cost(cost: float | None, model: str) -> str:
    if cost is None:
        return "–"
    if math.isinf(cost):
        return "unknown"
    if cost == 0 and model.startswith("local:"):
        return "free"
    return f"${cost:.4f}" if 0 < cost < 1 else f"${cost:.2f}"


def print_session(config: Path | None, id: str, as_json: bool) -> None:
    """Print one session's events: as a story, or as they are stored. Raises SessionNotFound."""
    with _store(config) as store:
        if store is None:
            raise SessionNotFound(f"There is no session {id!r}; there are no sessions at all yet")
        rows = store.events(id)
        if as_json:
            shown = is_terminal(sys.stdout)
            for _, raw in rows:
                line = json_for_terminal(raw.decode(errors="replace")).encode() if shown else raw
                sys.stdout.buffer.write(line + b"\n")
            return
        story = Story(open_screen(sys.stdout, spins=False))
        for _, raw in rows:
            story.tell(ev.read_event(raw))
        story.end(running=any(info.id == id and info.status == "running" for info in store.sessions(limit=MANY)))


class Story:
    """Draws stored events one after another; what a killed run left open is closed as interrupted."""

    def __init__(self, screen: Screen) -> None:
        self._screen, self._renderer = screen, Renderer(screen)
        self._open = False

    def tell(self, event: ev.Event) -> None:
        """Draw what a person should see of one event."""
        if isinstance(event, ev.RunResumed | ev.QuestionAsked | ev.QuestionAnswered):
            self._renderer.close()
        match event:
            case ev.RunStarted() if event.parent_call is None:
                self.end(running=False)
                self._open = True
                self._screen.line(
                    f"── {_when(event.ts, seconds=True)} · {one_line(event.agent, 60)} · {one_line(event.model, 60)}",
                    "bold",
                )
                if event.request:
                    self._screen.line("> " + clean_for_terminal(event.request).replace("\n", "\n  "), "green")
            case ev.RunResumed() if event.settled:
                self._screen.line(f"· went on; {len(event.settled)} unfinished call(s) settled", "dim")
            case ev.QuestionAsked():
                self._screen.line(f"? {clean_for_terminal(event.question.text)}", "magenta")
            case ev.QuestionAnswered():
                self._screen.line(f"> {clean_for_terminal(event.answer)}", "green")
            case ev.RunFinished() if event.parent_call is None:
                self._renderer.close()
                self._open = False
                why = f": {clean_for_terminal(event.error.message)}" if event.error else ""
                self._screen.line(
                    f"── {event.status.value} after {event.steps} step{'' if event.steps == 1 else 's'}{why}\n", "bold"
                )
            case ev.MessageAdded(message=message) if message.role is Role.USER and message.content:
                pass  # the request, which the run's first line shows
            case _:
                self._renderer(event)

    def end(self, *, running: bool) -> None:
        """No event of the last run follows: unless a process is still `running` it, it was interrupted."""
        self._renderer.close()
        self._renderer.forget_calls()
        if self._open and not running:
            self._screen.line("── interrupted\n", "bold")
        self._open = False


@contextmanager
def _store(config: Path | None) -> Iterator[Store | None]:
    """The store, or None while there is none: looking must not make one."""
    settings = load_settings(config)
    if not settings.store_path.exists():
        yield None
        return
    store = Store.open(settings.store_path, synchronous=settings.store.synchronous)
    try:
        yield store
    finally:
        store.close()


def _when(ts: str, *, seconds: bool = False) -> str:
    """A moment of UTC in the local time zone."""
    try:
        moment = datetime.fromisoformat(ts).astimezone()
    except ValueError:
        return one_line(ts, 40)
    return f"{moment:%Y-%m-%d %H:%M:%S}" if seconds else f"{moment:%Y-%m-%d %H:%M}"
