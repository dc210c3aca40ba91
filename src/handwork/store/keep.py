"""Keeps a store open as long as its event loop: opening and closing the file costs more than a whole short run writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import cache
from pathlib import Path
from weakref import WeakKeyDictionary

from handwork.store.sqlite import Store

_Keeper = AsyncGenerator[None, None]


def keep_open(store: Store, path: Path, *, synchronous: str) -> None:
    """Use the store once more on behalf of the running loop, if that does not yet; it is given back when the loop ends."""
    kept = _kept().setdefault(asyncio.get_running_loop(), {})
    if store.path in kept:
        return
    keeper = kept[store.path] = _keeper(Store.open(path, synchronous=synchronous), kept)
    try:
        keeper.__anext__().send(None)  # loops close the generators that are begun and left at their end
    except StopIteration:
        return


async def _keeper(store: Store, kept: dict[Path, _Keeper]) -> _Keeper:
    try:
        yield
    finally:
        kept.pop(store.path, None)
        store.close()


@cache
def _kept() -> WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, _Keeper]]:
    """What each loop keeps open: the loop itself has no place for it."""
    return WeakKeyDictionary()
