"""Serves the one client that has started us, over standard input and output."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from handwork.server.desk import Desk
from handwork.server.house import House
from handwork.server.parent import watching_parent
from handwork.server.protocol import build_server
from handwork.server.standard_io import standard_io


async def serve_stdio(house: House, stop: asyncio.Event) -> None:
    """Serve until `stop`, the end of standard input, or the end of our parent; then no process of ours is left."""
    async with standard_io(house.say) as (incoming, outgoing):
        desk = Desk(house)
        server = build_server(desk)
        with watching_parent(stop.set):
            serving = asyncio.create_task(
                server.run(incoming, outgoing, server.create_initialization_options()), name="stdio"
            )
            stopped = asyncio.ensure_future(stop.wait())
            try:
                await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                stopped.cancel()
                serving.cancel()
                await desk.close()
                with suppress(asyncio.CancelledError):
                    await serving
