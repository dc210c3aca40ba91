"""A connection to a supervisor elsewhere: the local end of the relay, and the end of all that was made for it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable

from handwork.sandbox.connection import Connection
from handwork.sandbox.inside import wire
from handwork.sandbox.inside.frames import PING, Broken, Lines, Plain, frame
from handwork.sandbox.inside.relay import Relay
from handwork.sandbox.remote.stream import Stream
from handwork.schema import Notify

_PING_SECONDS = 15.0
_TERMINALS = 128
"""Only terminals, and contents of files, come from over there."""


class Link:
    """Between a Connection's socket and the stream, until one of them ends; then `finish` frees what runs over there."""

    def __init__(self, stream: Stream, *, text: bool, finish: Callable[[], Awaitable[None]]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stream, self._code, self._finish = stream, Lines() if text else Plain(), finish
        self._exit, self._exit_end = os.pipe()
        self._errors = os.memfd_create("errors", os.MFD_CLOEXEC)
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._relay = Relay(
            self._loop,
            theirs,
            self._send,
            first=0,
            largest=2 * wire.LARGEST,
            most=_TERMINALS,
            ended=self._end,
            crowded=stream.pause,
        )
        self._ending: asyncio.Task[None] | None = None
        self._pinging = self._loop.call_later(_PING_SECONDS, self._ping)
        stream.hear, stream.held, stream.lost = self._hear, self._relay.hold, self._end

    def connect(self, after: bytes, notify: Notify) -> Connection:
        """The connection; `after` is what came over the stream already."""
        connection = Connection(self._ours, self, self._exit, self._errors, notify)
        if after:
            self._hear(after)
        if self._stream.over:
            self._end()
        return connection

    # ---- as the child of a connection

    def kill(self) -> None:
        """Its end takes too long: it goes on in the background, and nobody waits for it any more."""
        self._close_exit()

    def wait(self) -> None:
        """The end was told by the descriptor."""

    # ---- the stream

    def _hear(self, data: bytes) -> None:
        try:
            self._relay.feed(self._code.decode(data))
        except (Broken, OSError) as error:
            self._say(f"what came from the sandbox makes no sense: {error}".encode())
            self._end()

    def _send(self, data: bytes) -> None:
        self._stream.write(self._code.encode(data))

    def _ping(self) -> None:
        self._send(frame(PING, 0))
        self._pinging = self._loop.call_later(_PING_SECONDS, self._ping)

    # ---- the end

    def _end(self) -> None:
        if self._ending is not None:
            return
        self._pinging.cancel()
        self._say(self._stream.said)
        self._relay.end()
        self._stream.close()
        self._ending = self._loop.create_task(self._clean(), name="sandbox end")

    async def _clean(self) -> None:
        try:
            await self._finish()
        finally:
            self._close_exit()

    def _say(self, text: bytes) -> None:
        if self._exit_end >= 0:
            os.write(self._errors, text)

    def _close_exit(self) -> None:
        if self._exit_end >= 0:
            end, self._exit_end = self._exit_end, -1
            os.close(end)
