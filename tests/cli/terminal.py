"""A pseudo-terminal with the command on it, for what only a person at a terminal sees."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import struct
import termios
from pathlib import Path
from typing import Self

from tests.cli.command import COMMAND


class Terminal:
    """A terminal of 24 × 80, unless told otherwise; `seen` is everything that the command wrote to it."""

    def __init__(self, process: asyncio.subprocess.Process, master: int) -> None:
        self.process, self._master = process, master
        self.seen = ""
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(master, self._read)

    @classmethod
    async def run(cls, *arguments: str, cwd: Path, rows: int = 24, columns: int = 80, **environ: str) -> Self:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *arguments,
            cwd=cwd,
            env={**os.environ, "TERM": "xterm-256color", **environ},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        return cls(process, master)

    def _read(self) -> None:
        try:
            data = os.read(self._master, 65536)
        except OSError:  # nobody has the other side open any more
            data = b""
        if not data:
            self._loop.remove_reader(self._master)
        self._take(data)
        self._changed.set()

    def _take(self, data: bytes) -> None:
        self.seen += data.decode(errors="replace")

    async def expect(self, text: str) -> None:
        """Wait until this was written since the last expectation was met."""
        async with asyncio.timeout(30):
            while text not in self.seen[self._met :]:
                self._changed.clear()
                await self._changed.wait()
        self._met = self.seen.index(text, self._met) + len(text)

    _met = 0

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    async def end(self) -> int:
        """Wait for the command's end; its exit code."""
        code = await asyncio.wait_for(self.process.wait(), 30)
        await asyncio.sleep(0)
        self._loop.remove_reader(self._master)
        self._drain()
        os.close(self._master)
        return code

    def _drain(self) -> None:
        os.set_blocking(self._master, False)
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:
                return
            self._take(data)

    @property
    def plain(self) -> str:
        """What was written, without colours and without the lines that a spinner wrote over."""
        text = re.sub(r"\r\x1b\[2K[^\r\n]*(?=\r\x1b\[2K)", "", self.seen)
        return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).replace("\r", "")
