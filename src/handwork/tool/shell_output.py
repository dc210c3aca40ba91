"""One pipe that commands write on: what belongs to the running command, how it ended, and what came after it."""

from __future__ import annotations

from dataclasses import dataclass

from handwork.sandbox.capture import Capture
from handwork.tool.terminal_text import Fresh

KEPT = 400_000
"""Bytes of one command's output that are kept."""


@dataclass(frozen=True, slots=True)
class End:
    """How a command ended: its status, the folder in which it left the shell, and the shell's table of jobs."""

    status: int
    folder: str
    table: str


class Output:
    """See the module. A command's end is known by its token, which the command cannot know."""

    def __init__(self) -> None:
        self.end: End | None = None
        self.capture = Capture(KEPT)
        self.fresh = Fresh()
        self.after = Capture(KEPT)
        """What came while no command was running: background jobs."""
        self.closed = False
        """Whether nobody holds the pipe any more."""
        self._token = b""
        self._held = b""

    def expect(self, token: str) -> None:
        """A command begins."""
        self.end, self._token = None, token.encode()
        self.capture, self.fresh = Capture(KEPT), Fresh()

    def feed(self, chunk: bytes) -> None:
        """Take in what was read."""
        if not self._token:
            self.after.feed(chunk)
            return
        data, self._held = self._held + chunk, b""
        at = data.find(self._token)
        if at < 0:
            at = len(data) - _overlap(data, self._token)
        self.capture.feed(data[:at])
        self.fresh.add(data[:at])
        parts = data[at:].split(b"\0", 2)
        if len(parts) < 3 or not data.startswith(self._token, at):
            self._held = data[at:]
            return
        _, status, folder = parts[0].split(b" ", 2)
        self.end = End(int(status), folder.decode("utf-8", "replace"), parts[1].decode("utf-8", "replace"))
        self._token = b""
        self.after.feed(parts[2])

    def finish(self) -> Capture:
        """Take what the command wrote; from now on output belongs to background jobs."""
        self.capture.feed(self._held)
        self._token = self._held = b""
        return self.capture

    def take_after(self) -> Capture:
        """What background jobs wrote since the last time."""
        after, self.after = self.after, Capture(KEPT)
        return after


def _overlap(data: bytes, token: bytes) -> int:
    """How many bytes at the end of the data may be the beginning of the token."""
    for size in range(min(len(token) - 1, len(data)), 0, -1):
        if data.endswith(token[:size]):
            return size
    return 0
