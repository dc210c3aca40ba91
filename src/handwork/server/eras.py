"""One connection in the era of the protocol that its client settles on: who only asked what there is may still begin anew."""

from __future__ import annotations

import asyncio
from typing import Any

_DISCOVER, _HANDSHAKE, _CANCELLED = "server/discover", "initialize", "notifications/cancelled"


async def serve_in_an_era(server: Any, incoming: Any, outgoing: Any) -> None:
    """Serve until `incoming` ends.

    The SDK's server holds a client to the era of its first request. Some clients ask `server/discover`, do not wait long for the
    answer of a program that is just starting, and then begin as in 2025: for them that question has settled nothing.
    """
    part, undecided = _Part(server, outgoing), True
    try:
        async for item in incoming:
            asked = _asked(item.message)
            if undecided and asked == _HANDSHAKE and part.asked:
                await part.end()
                part = _Part(server, outgoing)
            undecided = undecided and asked in ("", _DISCOVER)
            await part.give(item)
        await part.hang_up()
    finally:
        await part.close()
        incoming.close()
        outgoing.close()


def _asked(message: Any) -> str:
    """The method of a request; '' for what is none."""
    return str(getattr(message, "method", "")) if hasattr(message, "id") else ""


class _Part:
    """A run of the SDK's server over a part of the messages."""

    def __init__(self, server: Any, outgoing: Any) -> None:
        import anyio

        self._into, reading = anyio.create_memory_object_stream[Any](0)
        self._open = set[str]()
        self._answered = asyncio.Event()
        self.asked = False
        """Whether it was given a request."""
        writing = _Answers(outgoing.clone(), self._is_answered)
        running = server.run(reading, writing, server.create_initialization_options())
        self._run: asyncio.Task[None] = asyncio.create_task(running, name="part of a connection")

    async def give(self, item: Any) -> None:
        """Hand over a message. Raises what the run has failed with."""
        import anyio

        if _asked(message := item.message):
            self.asked = True
            self._open.add(str(message.id))
        elif getattr(message, "method", "") == _CANCELLED:  # it is never answered
            self._is_answered((message.params or {}).get("requestId"))
        try:
            await self._into.send(item)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._run

    def _is_answered(self, id: Any) -> None:
        self._open.discard(str(id))
        self._answered.set()

    async def end(self) -> None:
        """Wait for the answers that are under way, and end."""
        while self._open and not self._run.done():
            self._answered.clear()
            answered = asyncio.ensure_future(self._answered.wait())
            try:
                await asyncio.wait({answered, self._run}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                answered.cancel()
        await self.hang_up()

    async def hang_up(self) -> None:
        """Nothing more comes: end, and raise what the run has failed with."""
        self._into.close()
        await self._run

    async def close(self) -> None:
        """End in any case."""
        self._into.close()
        self._run.cancel()
        await asyncio.gather(self._run, return_exceptions=True)


class _Answers:
    """The stream that a run writes to; `told` hears the id of each answer that is on its way."""

    def __init__(self, target: Any, told: Any) -> None:
        self._target, self._told = target, told

    async def send(self, item: Any) -> None:
        await self._target.send(item)
        if not hasattr(item.message, "method"):
            self._told(item.message.id)

    async def aclose(self) -> None:
        await self._target.aclose()

    async def __aenter__(self) -> _Answers:
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.aclose()
