"""One aiohttp session a running loop, shared by all models on it, closed with its last user or with the loop."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator
from typing import Any


class _Shared:
    """A session, who uses it, and the generator whose end closes it."""

    def __init__(self, session: Any, keeper: AsyncGenerator[None, None]) -> None:
        self.session, self.keeper = session, keeper
        self.users: weakref.WeakSet[object] = weakref.WeakSet()


# Sessions belong to loops, and a loop has no place of its own to keep one; entries leave when their loop ends.
_by_loop: dict[asyncio.AbstractEventLoop, _Shared] = {}


async def session_for(user: object) -> Any:
    """The running loop's ClientSession; `user` counts as one of its users until `leave`, or until it is gone."""
    loop = asyncio.get_running_loop()
    shared = _by_loop.get(loop)
    if shared is None or shared.session.closed:
        shared = await _open(loop)
    shared.users.add(user)
    return shared.session


async def leave(user: object) -> None:
    """End this user's use on the running loop; the last one closes the session and its connections."""
    shared = _by_loop.get(asyncio.get_running_loop())
    if shared is None:
        return
    shared.users.discard(user)
    if not shared.users:
        await shared.keeper.aclose()


async def _open(loop: asyncio.AbstractEventLoop) -> _Shared:
    import aiohttp

    for old in [old for old in _by_loop if old.is_closed()]:  # a loop that was closed without its generators
        del _by_loop[old]
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),  # the default of 100 makes 200 agents wait for each other
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("User-Agent",),
    )
    keeper = _keeper(loop, session)
    shared = _by_loop[loop] = _Shared(session, keeper)
    await anext(keeper)
    return shared


async def _keeper(loop: asyncio.AbstractEventLoop, session: Any) -> AsyncGenerator[None, None]:
    """Stands open as long as the session: loops close the generators that are left at their end, as asyncio.run does."""
    try:
        yield
    finally:
        _by_loop.pop(loop, None)
        await session.close()
