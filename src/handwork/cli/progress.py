"""How far a download is: a bar on a terminal, a line every tenth elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from handwork.cli.screen import is_terminal


@contextmanager
def download_progress(stream: TextIO) -> Iterator[Callable[[int, int], None]]:
    """Yields progress(done, total), in bytes."""
    with _bar(stream) if is_terminal(stream) else _lines(stream) as show:
        yield show


@contextmanager
def _bar(stream: TextIO) -> Iterator[Callable[[int, int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=stream), transient=True) as bar:
        task = bar.add_task("", total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


@contextmanager
def _lines(stream: TextIO) -> Iterator[Callable[[int, int], None]]:
    told = 0

    def show(done: int, total: int) -> None:
        nonlocal told
        if total and (tenth := done * 10 // total) > told:
            told = tenth
            print(f"  {tenth * 10} % of {total / 1e6:.0f} MB", file=stream, flush=True)

    yield show
