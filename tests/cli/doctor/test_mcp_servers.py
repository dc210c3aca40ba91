"""The doctor's look at MCP servers: what could start, and what keeps the others from it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.cli.doctor.conftest import MakeGround

from handwork.cli.doctor.mcp_servers import servers


def test_without_servers_there_is_one_note(ground: MakeGround) -> None:
    assert [(each.id, each.status) for each in servers(ground())] == [("mcp.servers", "note")]


def test_what_can_start_is_counted_and_what_cannot_is_named_with_its_remedy(home: Path, ground: MakeGround) -> None:
    entries = {
        "fine": {"command": sys.executable},
        "web": {"url": "http://127.0.0.1:1/mcp"},
        "beside": {"command": sys.executable, "sandbox": False},
        "off": {"command": "x", "disabled": True},
        "gone": {"command": "no-such-program"},
        "fetched": {"command": "uvx", "args": ["some"]},
    }
    (home / "mcp.json").write_text(json.dumps({"mcpServers": entries}))
    found = list(servers(ground()))
    assert found[0].text == "3 servers of 6 can start: fine, web, beside; 1 disabled"
    broken = {each.text: each.fix for each in found if each.status == "warning"}
    assert broken == {
        "gone: there is no program no-such-program": "install it, or correct its entry",
        "fetched: not installed": "handwork mcp add fetched installs it",
    }
    assert [each.id for each in found if each.status == "note"] == ["mcp.beside"]
