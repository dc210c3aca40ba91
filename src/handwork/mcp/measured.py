"""A stream of a server's events that ends where a message holds more values than any may."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from handwork.mcp.amount import MOST_VALUES, Amount, TooMany


def measured(response: Any) -> Any:
    """The response with its stream measured: past the end the library gives up the call, as with an event that is too long."""
    from httpx2 import AsyncByteStream, SSEError

    stream = response.stream

    class Measured(AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            amount = Amount(events=True)
            async for piece in stream:
                try:
                    amount.feed(piece)
                except TooMany as error:
                    raise SSEError(f"an event held more than {MOST_VALUES:,} values") from error
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    response.stream = Measured()
    return response
