"""The line to a kernel's bridge inside the sandbox: one process, requests to it, and what it says, in order."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from pydantic_core import from_json, to_json

from handwork.errors import SandboxError
from handwork.sandbox.base import Process, Sandbox

_START_SECONDS = 60
_ENVIRONMENT = {"TERM": "dumb", "PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "DEBIAN_FRONTEND": "noninteractive"}
_BRIDGE = "import sys; sys.path.append(sys.argv.pop(1)); from kernel_inside.bridge import main; main()"
_NEEDS = (
    "python_execute needs Python 3.11 or newer with the packages ipykernel and jupyter_client there "
    "(pip install ipykernel jupyter_client); until then bash can be used."
)


class Link:
    """A kernel that runs. `generation` is the sandbox's when it was started."""

    def __init__(self, process: Process, generation: int) -> None:
        self.process, self.generation = process, generation
        self.over = False
        """Whether the bridge, and so the kernel, is gone."""
        self._said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, sandbox: Sandbox) -> Link:
        """Start bridge and kernel, and wait until code can run. Errors: SandboxError, with what the kernel said."""
        argv = [sandbox.python, "-P", "-c", _BRIDGE, f"{sandbox.package}/tool"]
        try:
            process = await sandbox.spawn(argv, env=_ENVIRONMENT, stdin=True)
        except OSError as error:
            raise SandboxError(
                f"There is no Python in the sandbox ({sandbox.name}) at {sandbox.python}: {error.strerror}. {_NEEDS}"
            ) from error
        link = cls(process, sandbox.generation)
        try:
            async with asyncio.timeout(_START_SECONDS):
                first = await link.hear()
        except TimeoutError:
            first = {"kind": "failed", "error": f"it was not ready after {_START_SECONDS} s"}
        except asyncio.CancelledError:
            await link.close()
            raise
        if first["kind"] != "ready":
            await link.close()
            why = " ".join(str(first.get(name) or "") for name in ("error", "log")).strip()
            raise SandboxError(
                f"The Python kernel did not start in the sandbox ({sandbox.name}): {why or 'it said nothing'}"
                + (f" {_NEEDS}" if "No module named" in why else "")
            )
        return link

    async def say(self, **request: Any) -> None:
        """Send a request; a bridge that is gone is noticed by `hear`."""
        with contextlib.suppress(OSError):
            await self.process.write(to_json(request) + b"\n")

    async def hear(self) -> dict[str, Any]:
        """The next message; kind `over` when there will be none any more."""
        if self.over and self._said.empty():
            return {"kind": "over"}
        return await self._said.get()

    async def close(self) -> None:
        """Kill the kernel with all that it started."""
        with contextlib.suppress(OSError, SandboxError):
            await self.process.kill()
        self._reader.cancel()
        await asyncio.wait({self._reader})

    async def _read(self) -> None:
        pieces: list[bytes] = []
        log = ""
        try:
            with contextlib.suppress(OSError, SandboxError):
                while chunk := await self.process.read():
                    *lines, rest = chunk.split(b"\n")
                    for line in lines:
                        log = self._line(b"".join([*pieces, line])) or log
                        pieces = []
                    pieces.append(rest)
        finally:
            self.over = True
            self._said.put_nowait({"kind": "over", "log": log})

    def _line(self, line: bytes) -> str:
        """Take one line; what is no message (a warning of the interpreter) is returned as text."""
        try:
            message = from_json(line, allow_inf_nan=False)
        except ValueError:
            return line.decode("utf-8", "replace")[:1000]
        if isinstance(message, dict) and "kind" in message:
            self._said.put_nowait(message)
        return ""
