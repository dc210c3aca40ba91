"""Approvals in a real terminal, in a run and in a chat, at 80 and 200 columns: a long command, a diff of 300 lines, escapes.

The screens are kept in build/screens, to be looked at.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.cli.tmux import Tmux
from tests.support.strict_server import StrictServer, tool

from handwork.cli.columns import width

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="the terminal is tmux"),
]
SCREENS = Path(__file__).parents[2] / "build" / "screens"
LONG = (
    "find . -name '*.py' "
    + " ".join(f"-not -path './folder{number}/*'" for number in range(30))
    + " | wc -l  ; touch evil"
)
EVIL = "echo harmless \x1b[2K\x1b[1A\rrm -rf ~ \u202e# txt.\u2066 \u200b| ｒｍ ./pаypal\necho second"
FILE = "".join(f"def function_{number}(first, second):\n\treturn first + {number}\n\n" for number in range(100))
CALLS = [
    tool("bash", command=LONG),
    tool("str_replace_editor", command="create", path="long.py", file_text=FILE),
    tool("bash", command=EVIL),
    tool("bash", command="touch one"),
    tool("bash", command="touch one"),
]


@asynccontextmanager
async def terminal(tmp_path: Path, columns: int, url: str) -> AsyncIterator[Tmux]:
    work = tmp_path / "project"
    work.mkdir()
    environ = {
        "HOME": str(tmp_path), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PS1": "$ ", "HANDWORK_HOME": str(tmp_path / "home"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-test",
    }  # fmt: skip
    if "PYTHONPATH" in os.environ:
        environ["PYTHONPATH"] = os.environ["PYTHONPATH"]
    tmux = await Tmux(tmp_path, columns, 24).open(work, environ)
    try:
        yield tmux
    finally:
        await tmux.close()


def asks(screen: list[str]) -> bool:
    """Whether an answer would be heard: what is typed earlier is thrown away."""
    return screen[-1].endswith("why not:") or any(row.rstrip() == "?" for row in screen)


async def scene(tmux: Tmux, name: str, *texts: str, ends: bool = False) -> list[str]:
    """Wait for a screen and keep it, with all that has scrolled away."""
    screen = await tmux.shows(*texts)
    if not ends:
        screen = await tmux.until(asks, "no question")
    SCREENS.mkdir(parents=True, exist_ok=True)
    (SCREENS / f"approval-{name}.txt").write_text("\n".join(tmux.scrollback) + "\n", encoding="utf-8")
    assert "Traceback" not in "\n".join(screen)
    return screen


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("way", ["chat", "run"])
async def test_what_is_asked_can_be_read_before_it_is_answered(tmp_path: Path, columns: int, way: str) -> None:
    async with StrictServer([*CALLS, "Done."]) as server, terminal(tmp_path, columns, server.url) as tmux:
        command = "handwork chat" if way == "chat" else "handwork run 'Do it now'"
        tmux.type(f"{command} --model openai:any --approve ask")
        if way == "chat":
            await tmux.shows("openai:any · ")
            tmux.type("Do it now")
        name = f"{way}-{columns}"
        screen = await scene(tmux, f"{name}-1-long", "touch evil", "Run it?")
        framed = [row[4:].ljust(columns - 4) for row in screen if row.startswith(("  │ ", "  ┊ "))]
        assert "".join(framed).startswith(LONG)
        tmux.type("n")

        await scene(tmux, f"{name}-2-diff", "+300 −0 lines · a new file", "more rows", "Run it?")
        tmux.type("y")
        await scene(tmux, f"{name}-3-not-yet", "you have not seen")
        tmux.type("d")
        await scene(tmux, f"{name}-4-whole", "+def function_99", "Run it?")
        rows = [row for row in tmux.scrollback if row.startswith("  │ +")]
        assert len(rows) == 300
        assert rows[1] == "  │ +⇥   return first + 0"
        tmux.type("y")

        screen = await scene(tmux, f"{name}-5-escapes", "Not what it looks like", "Run it?")
        assert "  │ echo second" in screen
        assert any("⟨U+001B⟩[2K⟨U+001B⟩[1A⟨U+000D⟩rm -rf ~ ⟨U+202E⟩" in row for row in screen)
        assert all(width(row) <= columns for row in screen)
        tmux.type("no, thanks")

        screen = await scene(tmux, f"{name}-6-rules", "  │ touch one", "from now on:", "[s]ession, [a]lways")
        assert "  │ allow run touch one" in screen
        tmux.type("s")
        await scene(tmux, f"{name}-7-end", "Edited long.py  +300 −0  new", "finished", ends=True)
        assert "\n".join(tmux.scrollback).count("  │ touch one\n") == 1
        assert sorted(path.name for path in (tmp_path / "project").iterdir()) == ["long.py", "one"]
