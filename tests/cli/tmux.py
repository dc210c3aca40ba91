"""A real terminal emulator (tmux) with a shell in it: what a person sees, row by row, and what was written to it."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Self


class Tmux:
    """One window of its own tmux server. `seen` is all that was written to it, escape sequences included."""

    def __init__(self, folder: Path, columns: int, rows: int) -> None:
        self._folder, self._size = folder, (columns, rows)
        self._socket = str(folder / "tmux.socket")
        self._changed = asyncio.Event()
        self._pipe = -1
        self.seen = b""

    async def open(self, cwd: Path, environ: dict[str, str]) -> Self:
        """Start a shell in the window, with this environment and no other."""
        columns, rows = self._size
        settings = [f"{name}={value}" for name, value in environ.items()]
        shell = ["env", "-i", *settings, "bash", "--noprofile", "--norc"]
        size = ["-x", str(columns), "-y", str(rows)]
        self._tmux("-f", "/dev/null", "new-session", "-d", "-s", "main", *size, "-c", str(cwd), *shell)
        fifo = self._folder / "output"
        os.mkfifo(fifo)
        self._pipe = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
        self._tmux("pipe-pane", "-O", "-t", "main", f"exec cat > '{fifo}'")
        asyncio.get_running_loop().add_reader(self._pipe, self._read)
        return self

    async def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pipe)
        os.close(self._pipe)
        self._tmux("kill-server")

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(["tmux", "-S", self._socket, *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    def _read(self) -> None:
        self.seen += os.read(self._pipe, 65536)
        self._changed.set()

    def type(self, text: str) -> None:
        """Type text as it is, and Enter."""
        self._tmux("send-keys", "-t", "main", "-l", text)
        self.key("Enter")

    def key(self, *names: str) -> None:
        """Press keys by tmux's names: Enter, Escape, C-c …"""
        self._tmux("send-keys", "-t", "main", *names)

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size."""
        self._tmux("resize-window", "-t", "main", "-x", str(columns), "-y", str(rows))

    @property
    def screen(self) -> list[str]:
        """The visible rows, without what is empty at the end."""
        return self._tmux("capture-pane", "-p", "-t", "main").rstrip("\n").split("\n")

    @property
    def scrollback(self) -> list[str]:
        """All rows since the beginning."""
        return self._tmux("capture-pane", "-p", "-S", "-", "-t", "main").rstrip("\n").split("\n")

    async def shows(self, *texts: str, patience: float = 60) -> list[str]:
        """Wait until the screen shows all texts at once; the screen."""
        return await self.until(
            lambda screen: all(text in "\n".join(screen) for text in texts), f"{texts} is not shown", patience
        )

    async def until(self, holds: Callable[[list[str]], bool], otherwise: str, patience: float = 60) -> list[str]:
        """Wait until something holds of the screen; the screen. `otherwise` is what is said if it never does."""
        while True:
            self._changed.clear()
            screen = self.screen
            if holds(screen):
                return screen
            try:
                await asyncio.wait_for(self._changed.wait(), patience)
            except TimeoutError:
                joined = "\n".join(screen)
                raise AssertionError(f"{otherwise} on:\n{joined}") from None
