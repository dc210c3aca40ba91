"""The first five minutes in a real terminal: setup with a key, a first task, an approval, an interrupt, /undo, leaving, `-c`.

The screens are kept in build/screens, to be looked at.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.tmux import Tmux
from tests.support.strict_server import StrictServer, tool

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="the terminal is tmux"),
]
KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
SCREENS = Path(__file__).parents[2] / "build" / "screens"


def provider(request: dict[str, Any]) -> Any:
    """What the model says to what was said before the next-step prompt."""
    messages = [message for message in request["messages"] if message["role"] in ("user", "tool")]
    last = messages[max(len(messages) - 2, 0)]
    if last["role"] == "tool":
        return "I wrote **hello.txt** with one line in it."
    last = str(last["content"])
    if "write hello.txt" in last:
        return tool("bash", command="printf 'hello\\n' > hello.txt")
    if "count" in last:
        return tool("bash", command="for i in $(seq 30); do echo $i; sleep 1; done")
    return "Hello! What is to be done?"


class Walk:
    """One walk at one width; each scene is kept as a file."""

    def __init__(self, tmux: Tmux, columns: int) -> None:
        self.tmux, self._columns, self._scenes = tmux, columns, 0

    async def scene(self, name: str, *texts: str) -> list[str]:
        """Wait for a screen, check what holds for every one, and keep it."""
        screen = await self.tmux.shows(*texts)
        self._scenes += 1
        folder = SCREENS / str(self._columns)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self._scenes:02}-{name}.txt").write_text("\n".join(self.tmux.scrollback) + "\n", encoding="utf-8")
        everything = "\n".join(self.tmux.scrollback)
        assert "Traceback" not in everything
        assert KEY not in everything
        assert sum(bool(re.search(r"openai:\S+ · ", row)) and "auto" in row for row in screen) <= 1, "two status lines"
        return screen


@pytest.mark.parametrize("columns", [80, 200])
async def test_a_newcomer_comes_from_nothing_to_a_first_task_and_back(tmp_path: Path, columns: int) -> None:
    shutil.rmtree(SCREENS / str(columns), ignore_errors=True)
    work = tmp_path / "project"
    work.mkdir()
    async with StrictServer(provider) as server:
        environ = {
            "HOME": str(tmp_path), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PS1": "$ ",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OPENAI_BASE_URL": server.url,
        }  # fmt: skip
        tmux = await Tmux(tmp_path, columns, 30).open(work, environ)
        try:
            began = time.monotonic()
            await walk_through(Walk(tmux, columns), work, began)
            assert server.refused == []
        finally:
            await tmux.close()


async def walk_through(walk: Walk, work: Path, began: float) -> None:
    tmux = walk.tmux
    tmux.type("handwork --approve ask")
    await walk.scene("no-model", "No model", "[Y/n]")
    tmux.key("Enter")
    screen = await walk.scene("setup", "Which?")
    number = next(row.split()[0].strip(".)") for row in screen if "key" in row.lower() and row.split()[0][:1].isdigit())
    tmux.type(number)
    await walk.scene("paste-a-key", "Paste the key;")
    tmux.type(KEY)
    await walk.scene("which-model", "A key of OpenAI", "Model (Enter takes")
    tmux.key("Enter")
    await walk.scene("prompt", "· Model: openai:gpt-5.4", "ask/bwrap")

    tmux.type("hi")
    await walk.scene("first-answer", "Hello! What is to be done?", "finished")
    assert time.monotonic() - began < 90

    tmux.type("write hello.txt please")
    await walk.scene("approval", "printf 'hello\\n' > hello.txt", "[y]es", "\n?\n")
    assert not (work / "hello.txt").exists()
    tmux.type("y")
    await walk.scene("allowed", "I wrote hello.txt", "finished · 2 steps")
    assert (work / "hello.txt").read_text() == "hello\n"

    tmux.type("/undo")
    await walk.scene("undo", "hello.txt", "Taken back")
    assert not (work / "hello.txt").exists()

    tmux.type("count slowly")
    await tmux.shows("seq 30", "[y]es", "\n?\n")
    tmux.type("y")
    await walk.scene("working", "bash: 2")
    tmux.key("Escape")
    await walk.scene("interrupted", "interrupted", "cancelled")

    tmux.key("C-d")
    await tmux.shows("handwork -c --approve ask\n$")
    tmux.type("clear")
    tmux.type("handwork -c --approve ask")
    await walk.scene("gone-on", "openai:", "> count slowly", "did not come to an end")
    tmux.type("never mind, just say hello")
    await walk.scene("what-of-the-call", "seq 30", "\n?\n")
    tmux.key("Enter")
    await walk.scene("answered", "Hello! What is to be done?", "finished")
    tmux.type("/quit")
    await tmux.shows("handwork -c --approve ask\n$")
    tmux.type("echo left with $?")
    await walk.scene("left", "left with 0")
    assert tmux.seen.count(b"\x1b[2J") <= 2, "the screen was cleared: it flickers"
