"""What `handwork mcp add` and `approve` ask a person at a terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.cli.mcp.registry import registry
from tests.cli.terminal import Terminal
from tests.mcp import stub


async def test_installing_is_asked_about_and_no_leaves_everything_as_it_was(
    workspace: Path, home: Path, tmp_path: Path
) -> None:
    with registry(tmp_path) as places:
        window = await Terminal.run("mcp", "add", "it", "--", "uvx", "stubbed", cwd=workspace, **places)
        await window.expect("Install it? [Y/n]")
        window.type("n\r")
        assert await window.end() == 2
        assert "stubbed is not installed, so it was not added" in window.plain
        assert not (home / "mcp.json").exists()
        window = await Terminal.run("mcp", "add", "it", "--no-test", "--", "uvx", "stubbed", cwd=workspace, **places)
        await window.expect("Install it? [Y/n]")
        window.type("\r")
        assert await window.end() == 0
    assert json.loads((home / "mcp.json").read_text())["mcpServers"]["it"]["args"] == ["stubbed@1.0"]


def lay(script: Path) -> None:
    script.write_bytes(Path(stub.__file__ or "").read_bytes())


async def test_what_changed_is_shown_and_only_a_yes_approves_it(workspace: Path, home: Path) -> None:
    script = workspace / "stub.py"
    lay(script)
    entry = {"command": sys.executable, "args": [str(script)], "env": {"STUB": "${STUB:-}"}}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"it": entry}}))
    window = await Terminal.run("mcp", "test", "it", cwd=workspace)
    assert await window.end() == 0
    for answer, code, said in (("n", 1, "Not approved"), ("", 1, "Not approved"), ("y", 0, "Approved: 3 tools of it")):
        window = await Terminal.run("mcp", "approve", "it", cwd=workspace, STUB="--tools echo,add,fail")
        await window.expect("Approve it as it is now? [y]es, [n]o:")
        assert "name: fail" in window.plain
        window.type(f"{answer}\r")
        assert await window.end() == code
        assert said in window.plain


async def test_a_name_that_is_taken_is_asked_about(workspace: Path, home: Path) -> None:
    (home / "mcp.json").write_text('{"mcpServers": {"it": {"command": "old"}}}')
    window = await Terminal.run("mcp", "add", "it", "--no-test", "--", sys.executable, cwd=workspace)
    await window.expect("it is there already. Put this one in its place?")
    window.type("y\r")
    assert await window.end() == 0
    assert json.loads((home / "mcp.json").read_text()) == {"mcpServers": {"it": {"command": sys.executable}}}


async def test_a_folder_that_is_named_and_not_shown_is_asked_about(workspace: Path, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for answer, paths in (("y", [str(folder)]), ("n", None)):
        window = await Terminal.run(
            "mcp", "add", "it", "--replace", "--no-test", "--", "cat", str(folder), cwd=workspace
        )
        await window.expect("Let the server read that?")
        assert f"The sandbox does not show {folder}" in " ".join(window.plain.split())
        window.type(f"{answer}\r")
        assert await window.end() == 0
        assert json.loads((home / "mcp.json").read_text())["mcpServers"]["it"].get("paths") == paths
