"""The search itself: reads what is wanted from standard input, writes one page of what was found to standard output, as JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterable
from typing import Any

from .lines import Unsearchable, matches, shown
from .query import Query, name_query
from .ripgrep import Sieve, find
from .walk import Found, Walk, above, joined

_NEVER = ("/proc", "/sys", "/dev")
_MOST_FILES = 500_000
_MOST_MATCHES = 10_000
_PER_FILE = 20
"""Matching lines that are shown of one file among others."""
_PAGE_ITEMS, _PAGE_SIZE = 100, 8000
_PER_FILE_SECONDS = 3.0
_TICK = 0.25


class TimeUp(Exception):
    """The time for the search has passed."""


class TooSlow(Exception):
    """The time for one file has passed: some expressions take for ever on a line of a million characters."""


class Page:
    """Collects what is found, and keeps one page of it."""

    def __init__(self, wanted: int) -> None:
        self._wanted, self._page, self._items, self._size = wanted, 1, 0, 0
        self.shown: list[dict[str, Any]] = []

    @property
    def last(self) -> int:
        """The page that is being filled."""
        return self._page

    def add(self, file: str, line: list[Any] | None) -> None:
        """A line of a file, or a file by itself."""
        size = (len(line[1]) + 8 if line else 0) + (0 if self._is_same(file) else len(file) + 2)
        if self._items and (self._items >= _PAGE_ITEMS or self._size + size > _PAGE_SIZE):
            self._page, self._items, self._size = self._page + 1, 0, 0
        self._items, self._size = self._items + 1, self._size + size
        if self._page == self._wanted:
            if not self._is_same(file):
                self.shown.append({"file": file, "lines": [], "more": 0})
            if line:
                self.shown[-1]["lines"].append(line)

    def more(self, file: str, count: int) -> None:
        """That a file has more lines than are shown."""
        if self._is_same(file):
            self.shown[-1]["more"] = count

    def _is_same(self, file: str) -> bool:
        return bool(self.shown) and self.shown[-1]["file"] == file


class Search:
    """One search; `report` is what is known of it at any time, so that one that is stopped has a result, too."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        self._root, self._workspace = wanted["root"], wanted["workspace"]
        self._names = wanted["kind"] == "name"
        self.query = (name_query if self._names else Query)(wanted["query"])
        self._by_path = "/" in wanted["query"]
        self._page = Page(wanted["page"])
        self._walk = Walk(self._root, above(self._top(), self._root), () if self._root.startswith(_NEVER) else _NEVER)
        self._sieve = Sieve(find(self._workspace) if wanted["ripgrep"] else None, self.query, self._root)
        self._counts = {"matches": 0, "files": 0, "binary": 0, "unreadable": 0, "slow": 0}
        self._alone = wanted["alone"]
        self.ended = "done"
        self.reading_since: float | None = None
        """When the file was begun that is being read."""

    def _top(self) -> str:
        """The highest folder whose words count: the workspace, else the repository around."""
        if (self._root + "/").startswith(self._workspace.rstrip("/") + "/"):
            return str(self._workspace)
        folder = self._root
        while folder != "/" and not os.path.lexists(joined(folder, ".git")):
            folder = folder.rpartition("/")[0] or "/"
        return str(self._root) if folder == "/" else folder

    def run(self) -> None:
        """Search until all is found, or enough."""
        if self._names:
            self._find_names([Found("", "file")] if self._alone else self._walk)
        elif self._alone:
            self._read(self._root)
        else:
            self._find_lines()

    def _find_names(self, among: Iterable[Found]) -> None:
        for number, found in enumerate(among):
            path = found.path or self._root
            text = path if self._by_path else path.rpartition("/")[2]
            if self.query.pattern.search(text):
                self._counts["matches"] += 1
                self._page.add(self._named(found), None)
            if self._is_enough(number):
                return

    def _find_lines(self) -> None:
        files: list[str] = []
        for number, found in enumerate(self._walk):
            files += [found.path] if found.kind == "file" else []
            if number >= _MOST_FILES:
                self.ended = "files"
                break
        for batch in self._sieve.batches(files):
            for file in self._sieve.keep(batch):
                self._read(joined(self._root, file))
                if self._is_enough(0):
                    return

    def _is_enough(self, number: int) -> bool:
        if number >= _MOST_FILES:
            self.ended = "files"
        if self._counts["matches"] >= _MOST_MATCHES:
            self.ended = "matches"
        return self.ended != "done"

    def _read(self, path: str) -> None:
        name, count = self._relative(path), 0
        most = _MOST_MATCHES if self._alone else _PER_FILE
        self.reading_since = time.monotonic()
        try:
            for match in matches(path, self.query):
                count += 1
                self._counts["files"] += count == 1
                self._counts["matches"] += 1
                if count <= most:
                    self._page.add(name, [match.number, match.text])
                if self._counts["matches"] >= _MOST_MATCHES:
                    break
        except Unsearchable as error:
            self._counts[str(error)] += 1
        except TooSlow:
            self._counts["slow"] += 1
        finally:
            self.reading_since = None
        if count > most:
            self._page.more(name, count - most)

    def _named(self, found: Found) -> str:
        sign = {"folder": "/", "link": "@"}.get(found.kind, "")
        return self._relative(joined(self._root, found.path) if found.path else self._root) + sign

    def _relative(self, path: str) -> str:
        base = self._workspace.rstrip("/") + "/"
        return shown(path[len(base) :] if path.startswith(base) else path, "\\n")

    @property
    def report(self) -> dict[str, Any]:
        walk = self._walk
        return {
            **self._counts,
            "shown": self._page.shown,
            "pages": self._page.last,
            "unreadable": self._counts["unreadable"] + walk.unreadable,
            "ignored": walk.ignored,
            "hidden": walk.hidden,
            "ended": self.ended,
            "notes": self.query.notes,
            "ripgrep": self._sieve.used,
        }


def main() -> None:
    """Search for at most `seconds`; what was found until then is told."""
    wanted = json.load(sys.stdin)
    search, end = Search(wanted), time.monotonic() + wanted["seconds"]

    def tick(_number: int, _frame: object) -> None:
        now = time.monotonic()
        if now >= end:
            raise TimeUp
        if search.reading_since is not None and now - search.reading_since >= _PER_FILE_SECONDS:
            raise TooSlow

    signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, min(_TICK, wanted["seconds"]), _TICK)
    try:
        search.run()
    except (TimeUp, TooSlow):
        search.ended = "time"
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.stdout.write(json.dumps(search.report))
