"""One bash: how a command is handed to it, and how its end is known without trusting what the command prints."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from dataclasses import dataclass

from handwork.errors import SandboxError
from handwork.sandbox.base import Process, Sandbox
from handwork.sandbox.capture import Capture
from handwork.tool.terminal_text import Fresh

_KEPT = 400_000
"""Bytes of one command's output that are kept."""
_ENVIRONMENT = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
}
# The shell reads our lines as its script. Its own output goes to /dev/null, so that what `set -x` and traps say about
# our lines is not seen; descriptor 19 is the real output, given to each command as 1 and 2 and closed under that number.
_OPENING = 'exec 19>&1 1>/dev/null 2>&1\nshopt -s expand_aliases\n__handwork_status() { return "$1"; }\n'


def frame(command: str, last_status: int, token: str) -> str:
    """The lines that run a command and then print `<token> <status> <folder>NUL`.

    The command is one quoted word, so nothing in it can end early or swallow what follows. The token stands in a later line of the
    script, which the shell has not read while the command runs: the command cannot print it, and all that it wrote before
    its end comes before it. `$?` is restored first, as a person would expect from a shell.
    """
    quoted = "'" + command.replace("'", "'\\''") + "'"
    run = f"\\builtin eval {quoted} 0</dev/null 1>&19 2>&1 19>&-"
    if last_status:
        run = f"__handwork_status {last_status} || {run}"
    return f'LINENO=0\n{run}\n\\builtin printf \'%s %s %s\\0\' {token} "$?" "${{PWD::3000}}" 1>&19\n'


@dataclass(frozen=True, slots=True)
class End:
    """How a command ended: its status, and the folder in which it left the shell."""

    status: int
    folder: str


class Bash:
    """A running bash. Its output is read all the time, so that a background job never blocks on a full pipe."""

    def __init__(self, process: Process, generation: int) -> None:
        self.process = process
        self.generation = generation
        self.status = 0
        self.over = False
        """Whether the shell has ended."""
        self.end: End | None = None
        self.between = Capture(_KEPT)
        """What background jobs wrote while no command ran."""
        self.capture = Capture(_KEPT)
        self.fresh = Fresh()
        self._token = b""
        self._held = b""
        self._woken = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, sandbox: Sandbox) -> Bash:
        """Start one in the workspace."""
        process = await sandbox.spawn(["bash", "--noprofile", "--norc"], env=_ENVIRONMENT, stdin=True)
        bash = cls(process, sandbox.generation)
        await bash._write(_OPENING)
        return bash

    async def begin(self, command: str) -> None:
        """Hand a command over; `follow` it then."""
        token = secrets.token_hex(16)
        self.end, self._token = None, token.encode()
        self.capture, self.between, self.fresh = Capture(_KEPT), Capture(_KEPT), Fresh()
        await self._write(frame(command, self.status, token))

    @property
    def done(self) -> bool:
        """Whether the command (or the shell itself) has ended."""
        return self.over or self.end is not None

    async def changed(self) -> None:
        """Wait until there is more output, or the end."""
        if not self.done:
            await self._woken.wait()
            self._woken.clear()

    async def settled(self, seconds: float) -> bool:
        """Wait at most this long for the end; whether it came."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.done:
                    await self.changed()
        return self.done

    def finish(self) -> Capture:
        """Take what the command wrote; from now on output belongs to background jobs."""
        self.capture.feed(self._held)
        self._token = self._held = b""
        if self.end:
            self.status = self.end.status
        return self.capture

    async def close(self) -> None:
        """Kill the shell with all that it started."""
        with contextlib.suppress(SandboxError, OSError):
            await self.process.kill()
        self._reader.cancel()
        await asyncio.wait({self._reader})

    async def _write(self, text: str) -> None:
        # A shell that is gone is noticed by the reader.
        with contextlib.suppress(OSError):
            await self.process.write(text.encode("utf-8", "surrogateescape"))

    async def _read(self) -> None:
        try:
            with contextlib.suppress(OSError, SandboxError):
                while chunk := await self.process.read():
                    self._take(chunk)
                    self._woken.set()
        finally:
            self.over = True
            self._woken.set()

    def _take(self, chunk: bytes) -> None:
        if not self._token:
            self.between.feed(chunk)
            return
        data, self._held = self._held + chunk, b""
        at = data.find(self._token)
        if at < 0:
            at = len(data) - _overlap(data, self._token)
        stop = data.find(b"\0", at)
        self.capture.feed(data[:at])
        self.fresh.add(data[:at])
        if stop < 0 or not data.startswith(self._token, at):
            self._held = data[at:]
            return
        _, status, folder = data[at:stop].split(b" ", 2)
        self.end, self._token = End(int(status), folder.decode("utf-8", "replace")), b""
        self.between.feed(data[stop + 1 :])


def _overlap(data: bytes, token: bytes) -> int:
    """How many bytes at the end of the data may be the beginning of the token."""
    for size in range(min(len(token) - 1, len(data)), 0, -1):
        if data.endswith(token[:size]):
            return size
    return 0
