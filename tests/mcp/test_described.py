"""Servers as a program describes them."""

from __future__ import annotations

from typing import Any

import pytest

from handwork.agent.which_servers import chosen
from handwork.config import MCPServerSettings, Settings
from handwork.errors import ConfigError
from handwork.mcp.described import described

ENTRY = {"command": "x", "args": ["${workspaceFolder}"], "env": {"A": "env:TOKEN", "B": "${TOKEN}"}}


def test_an_entry_of_a_program_gets_values_as_one_of_mcp_json_does() -> None:
    server = chosen({"it": ENTRY}, Settings(environ={"TOKEN": "t"}), "/ws")["it"]
    assert (server.args, server.env) == (("/ws",), {"A": "t", "B": "t"})
    assert server.written.args == ("${workspaceFolder}",)


def test_settings_that_a_program_made_are_taken_as_they_are() -> None:
    made = MCPServerSettings.model_validate(ENTRY)
    assert chosen({"it": made}, Settings(environ={"TOKEN": "t"}), "/ws")["it"] is made
    assert described("it", ENTRY).env == ENTRY["env"]


@pytest.mark.parametrize("entry", [{"comand": "x"}, {"command": 1}, {}, None, "x"])
def test_what_describes_no_server_is_an_error_that_names_it(entry: Any) -> None:
    with pytest.raises(ConfigError, match="MCP server it: "):
        described("it", entry, {}, "/ws")
