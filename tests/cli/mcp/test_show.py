"""What `handwork mcp test` draws on a narrow terminal, and the keys of its JSON and of the list's."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from tests.cli.command import handwork
from tests.cli.terminal import Terminal
from tests.mcp import stub

from handwork.cli.columns import width

PAGE = Path(__file__).parents[3] / "docs" / "mcp.md"
LONG = "a_very_long_name_of_a_tool_that_goes_on_and_on_and_on_for_sixty_"


def configure(workspace: Path, home: Path, *modes: str, **servers: Any) -> None:
    script = workspace / "stub.py"
    script.write_bytes(Path(stub.__file__ or "").read_bytes())
    it = {"command": sys.executable, "args": [str(script), *modes]}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"it": it, **servers}}))


def keys_in_the_page(command: str) -> set[str]:
    """The names in the first column of the table that follows a command there."""
    table = PAGE.read_text().split(f"`{command}`", 1)[1].split("|---|---|\n", 1)[1].split("\n\n", 1)[0]
    return {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}


async def test_two_hundred_tools_with_long_and_wide_names_are_drawn_within_sixty_columns(
    workspace: Path, home: Path
) -> None:
    wide = "これは非常に長い説明文です。" * 12
    modes = ["--tools", f"echo,{LONG},工具名称", "--many", "197", "--name", "日本語のサーバー" * 6]
    configure(
        workspace, home, *modes, "--describe", f"echo={wide}", "--describe", "tool_3=", "--prompts", "--resources"
    )
    window = await Terminal.run("mcp", "test", "it", cwd=workspace, columns=60)
    assert await window.end() == 0
    rows = [row.rsplit("\r", 1)[-1] for row in window.plain.replace("\r\n", "\n").split("\n")]
    wider = {row for row in rows if width(row) > 60}
    assert all(" " not in row.strip() for row in wider), wider  # a name is not broken, so that it can be copied
    shown = [row.strip() for row in rows]
    assert all(f"mcp_it_tool_{number}" in shown for number in range(197))
    assert sum(row.endswith("tokens") or row.endswith("of each request") for row in rows) > 0
    first = next(row for row in rows if row.strip().startswith("これは"))
    assert (width(first) <= 60, first.startswith("      "), first.endswith("…")) == (True, True, True)
    assert "200 tools, about " in window.plain
    assert "! No description: tool_3" in window.plain


async def test_the_json_of_a_test_has_the_same_keys_whether_it_connects_or_not_and_the_page_names_them(
    workspace: Path, home: Path
) -> None:
    configure(workspace, home, gone={"command": "no-such-program"})
    works, fails = [
        json.loads((await handwork("mcp", "test", name, "--json", cwd=workspace)).out) for name in ("it", "gone")
    ]
    assert works.keys() == fails.keys()
    assert (works["connected"], fails["connected"], fails["tokens"], fails["tools"]) == (True, False, None, [])
    inner = {"changed", "added", "gone", "words"}
    assert set(works["differs"]) == inner
    assert set(works["tools"][0]) == {"name", "called", "description", "does", "tokens"}
    assert set(fails["problems"][0]) == {"what", "mend"}
    assert keys_in_the_page("handwork mcp test NAME --json") == set(works)


async def test_the_json_of_the_list_has_the_keys_that_the_page_names(workspace: Path, home: Path) -> None:
    configure(workspace, home, web={"url": "https://a.invalid/mcp"}, off={"command": "x", "disabled": True})
    rows = json.loads((await handwork("mcp", "list", "--json", cwd=workspace)).out)
    assert [set(row) for row in rows] == [keys_in_the_page("handwork mcp list --json")] * 3


async def test_tools_that_cannot_be_used_are_told_by_a_test(workspace: Path, home: Path) -> None:
    configure(workspace, home, "--as-task", "add=required")
    ended = await handwork("mcp", "test", "it", "--json", cwd=workspace)
    assert "1 entry left out: add: it can only be called as a task" in ended.out
