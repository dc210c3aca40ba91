"""A pipe of its own for a command that may leave background jobs: so their output is told apart from all that comes later."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets

from handwork.errors import SandboxError
from handwork.sandbox.base import Process, Sandbox
from handwork.tool.shell_output import Output

# An & that is no part of &&, >&, <&, &> or |&. In quotes it costs three milliseconds and no more.
_BACKGROUND = re.compile(r"(?<![&<>|])&(?![&>])|\bcoproc\b")
# The shell opens the pipe by its name, which nobody can guess and which is gone as soon as both sides have it.
_RELAY = 'p=${TMPDIR:-/tmp}/.out-$1; mkfifo -m 600 "$p" || exit; echo "$p"; exec < "$p"; rm "$p"; exec cat'
_START_SECONDS = 5.0


def may_leave_jobs(command: str) -> bool:
    """Whether a command looks as if it started something in the background."""
    return bool(_BACKGROUND.search(command))


class Slot:
    """The pipe, with the small program inside the sandbox that passes on what comes through it."""

    def __init__(self, process: Process, path: str, woken: asyncio.Event, output: Output, pause: float) -> None:
        self.path = path
        self.output = output
        self._pause = pause
        self._process, self._woken = process, woken
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def open(
        cls, sandbox: Sandbox, woken: asyncio.Event, output: Output | None = None, *, pause: float = 0
    ) -> Slot | None:
        """Make one, which feeds `output`; `woken` is set when something came. Where nobody waits for it, a `pause` of so many
        seconds after each read takes much at once. None where the sandbox has no room or no programs for it."""
        process: Process | None = None
        try:
            async with asyncio.timeout(_START_SECONDS):
                process = await sandbox.spawn(["sh", "-c", _RELAY, "sh", secrets.token_hex(16)])
                line = b""
                while not line.endswith(b"\n"):
                    if not (chunk := await process.read()):
                        raise BrokenPipeError
                    line += chunk
        except (OSError, SandboxError, TimeoutError, asyncio.CancelledError) as error:
            if process:
                await _end(process)
            if isinstance(error, asyncio.CancelledError):
                raise
            return None
        return cls(process, line.decode().rstrip("\n"), woken, output or Output(), pause)

    async def close(self) -> None:
        """End the program that passes things on; whoever still writes is told so by the system."""
        await _end(self._process)
        self._reader.cancel()
        await asyncio.wait({self._reader})

    async def _read(self) -> None:
        try:
            with contextlib.suppress(OSError, SandboxError):
                while chunk := await self._process.read():
                    self.output.feed(chunk)
                    self._woken.set()
                    if self._pause:
                        await asyncio.sleep(self._pause)
        finally:
            self.output.closed = True
            self._woken.set()


async def _end(process: Process) -> None:
    with contextlib.suppress(OSError, SandboxError):
        await process.kill()
