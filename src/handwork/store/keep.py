"""Keeps a store open as long as its event loop: opening and closing the file costs more than a whole short run writes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable
from functools import cache
from pathlib import Path
from weakref import WeakKeyDictionary

from handwork.errors import JournalError
from handwork.store.sqlite import Store

_Keeper = AsyncGenerator[None, None]
_Kept = dict[Path, tuple[Store, _Keeper]]


def keep_open(store: Store, path: Path, *, synchronous: str) -> None:
    """Use the store once more on behalf of the running loop, if that does not yet; it is given back when the loop ends."""
    kept = _kept().setdefault(asyncio.get_running_loop(), {})
    if store.path in kept:
        old, keeper = kept[store.path]
        if old is store:
            return
        # Its files were deleted: whoever wrote to them was told, and what nobody waited for cannot be written any more.
        with contextlib.suppress(JournalError):
            _step(keeper.aclose())
    keeper = _keeper(store := Store.open(path, synchronous=synchronous), kept)
    kept[store.path] = store, keeper
    _step(keeper.__anext__())  # loops close the generators that are begun and left at their end


def _step(move: Awaitable[None]) -> None:
    """Take a generator on to where it next rests: ours never wait."""
    for _ in move.__await__():
        raise AssertionError("a keeper waits for nothing")


async def _keeper(store: Store, kept: _Kept) -> _Keeper:
    try:
        yield
    finally:
        del kept[store.path]
        store.close()


@cache
def _kept() -> WeakKeyDictionary[asyncio.AbstractEventLoop, _Kept]:
    """What each loop keeps open: the loop itself has no place for it."""
    return WeakKeyDictionary()
