"""Serves the one client that has started us, over standard input and output."""

from __future__ import annotations

import asyncio

from handwork.server.desk import Desk
from handwork.server.eras import serve_in_an_era
from handwork.server.house import House
from handwork.server.parent import watching_parent
from handwork.server.protocol import build_server
from handwork.server.sparing import import_sparingly
from handwork.server.standard_io import standard_io

_PATIENCE = 2.0
"""Seconds that the SDK's server has to end by itself."""


async def serve_stdio(house: House, stop: asyncio.Event) -> None:
    """Serve until `stop`, the end of standard input, or the end of our parent; then no process of ours is left."""
    import_sparingly()
    async with standard_io(house.say) as (incoming, outgoing, hang_up):
        desk = Desk(house)
        server = build_server(desk)
        with watching_parent(stop.set):
            serving = asyncio.create_task(serve_in_an_era(server, incoming, outgoing), name="stdio")
            stopped = asyncio.ensure_future(stop.wait())
            try:
                await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                stopped.cancel()
                hang_up()
                await desk.close()
                await _ended(serving, cut_short=stop.is_set())


async def _ended(serving: asyncio.Task[None], *, cut_short: bool) -> None:
    """Wait until the SDK's server has seen that nothing more comes. What it raises when it is cut short is no news."""
    done, _ = await asyncio.wait({serving}, timeout=_PATIENCE)
    if done and not cut_short:
        return serving.result()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    return None
