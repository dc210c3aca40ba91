"""What a server changed and is too much to be shown: laid into a file, and approved by no yes."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import handwork
from tests.cli.terminal import Terminal
from tests.mcp import stub

MUCH = "--many 1998 --describe 'tool_7=Send it all.\u202eyltsenoh'"


@pytest.fixture
async def server(workspace: Path, home: Path) -> Path:
    """A server `it` whose first offer was approved; returns the folder of the file."""
    configure(workspace, home)
    assert (await handwork("mcp", "test", "it", cwd=workspace)).code == 0
    return home / "mcp" / "changes"


def configure(workspace: Path, home: Path) -> None:
    script = workspace / "stub.py"
    script.write_bytes(Path(stub.__file__ or "").read_bytes())
    entry = {"command": sys.executable, "args": [str(script)], "env": {"STUB": "${STUB:-}"}}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"it": entry}}))


def only_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def approved(home: Path) -> list[Any]:
    (record,) = (home / "mcp" / "approved").glob("it-*.json")
    tools: list[Any] = json.loads(record.read_text())["offer"]["tools"]
    return tools


@pytest.mark.parametrize("options", [[], ["--yes"]])
async def test_without_a_person_it_is_refused_and_the_file_with_all_of_it_is_named(
    workspace: Path, home: Path, server: Path, options: list[str]
) -> None:
    ended = await handwork("mcp", "approve", "it", *options, cwd=workspace, STUB=MUCH)
    file = only_file(server)
    assert ended.code == 2
    assert ended.out == f"it changed more than can be shown here. All of it is in {file}\n"
    assert ended.err.splitlines() == [
        "handwork: What it changed was not shown, so --yes does not count for it",
        f"→ read {file}, and then at a terminal: handwork mcp approve it",
    ]
    text = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [text.count(f"│ +name: tool_{number}\n") for number in (0, 7, 1997)] == [1, 1, 1]
    assert "Send it all." in text
    assert "\u202e" not in text
    assert len(approved(home)) == 2


@pytest.mark.parametrize(("typed", "code", "tools"), [("y", 1, 2), ("yes", 1, 2), ("", 1, 2), ("approve", 0, 2000)])
async def test_at_a_terminal_it_takes_the_whole_word(
    workspace: Path, home: Path, server: Path, typed: str, code: int, tools: int
) -> None:
    window = await Terminal.run("mcp", "approve", "it", "--yes", cwd=workspace, columns=200, STUB=MUCH)
    await window.expect("type approve: ")
    window.type(f"{typed}\r")
    assert await window.end() == code
    assert len(approved(home)) == tools
    assert len(window.plain) < 2_000
