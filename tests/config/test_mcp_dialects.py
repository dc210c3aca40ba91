"""Files with MCP servers as other programs write them: they load as they are, and what means nothing here is said once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from handwork.config import MCPServerSettings
from handwork.config.mcp_file import read_servers
from handwork.errors import ConfigError
from tests.config.places import Places

Expected = dict[str, dict[str, Any]]
_HTTP = {"type": "http", "url": "https://tools.example.com/mcp"}

FILES: dict[str, tuple[str, Expected]] = {
    "OpenManus": (
        '{"mcpServers": {"server1": {"type": "sse", "url": "http://localhost:8000/sse"},'
        ' "local": {"type": "stdio", "command": "python", "args": ["-m", "some.server"]}}}',
        {
            "server1": {"type": "sse", "url": "http://localhost:8000/sse"},
            "local": {"command": "python", "args": ("-m", "some.server")},
        },
    ),
    "Claude Desktop": (
        '{"globalShortcut": "", "mcpServers": {"files": {"command": "npx", "args": ["-y", "files-server", "files"]}}}',
        {"files": {"command": "npx", "args": ("-y", "files-server", "files")}},
    ),
    "Claude Code": (
        '{"mcpServers": {"api": {"type": "http", "url": "${API:-https://tools.example.com}/mcp", "timeout": 600000,'
        ' "headers": {"Authorization": "Bearer ${API_TOKEN}"}, "headersHelper": "",'
        ' "oauth": {"clientId": "me", "callbackPort": 8765, "scopes": "read write"}}}}',
        {
            "api": {
                "type": "http",
                "url": "${API:-https://tools.example.com}/mcp",
                "headers": {"Authorization": "Bearer ${API_TOKEN}"},
                "timeout": 600.0,
                "oauth": {"client_id": "me", "redirect_port": 8765, "scope": "read write"},
            }
        },
    ),
    "a plugin of Claude Code": ('{"here": {"command": "server"}}', {"here": {"command": "server"}}),
    "Cursor": (
        '{"mcpServers": {"tools": {"url": "https://tools.example.com/mcp", "headers": {"X-Key": "${env:KEY}"},'
        ' "auth": {"CLIENT_ID": "me", "CLIENT_SECRET": "${env:S}", "scopes": ["read", "write"]}}}}',
        {
            "tools": {
                **_HTTP,
                "headers": {"X-Key": "${env:KEY}"},
                "oauth": {"client_id": "me", "client_secret": "${env:S}", "scope": "read write"},
            }
        },
    ),
    "VS Code": (
        "{\n  // which servers\n"
        '  "inputs": [{"type": "promptString", "id": "key", "description": "The key", "password": true}],\n'
        '  "servers": {\n    "tools": {"type": "http", "url": "https://tools.example.com/mcp",},\n'
        '    "here": {"type": "stdio", "command": "server", "cwd": "${workspaceFolder}/x", /* why */\n'
        '      "env": {"KEY": "${input:key}"}, "dev": {"watch": "**"}},\n  },\n}\n',
        {
            "tools": _HTTP,
            "here": {"command": "server", "cwd": "${workspaceFolder}/x", "env": {"KEY": "${input:key}"}},
        },
    ),
    "VS Code's settings": (
        '{"editor.fontSize": 12, "mcp": {"inputs": [], "servers": {"a": {"command": "server"}}}}',
        {"a": {"command": "server"}},
    ),
    "Windsurf": (
        '{"mcpServers": {"tools": {"serverUrl": "https://tools.example.com/mcp", "disabledTools": ["drop"]},'
        ' "old": {"serverUrl": "https://tools.example.com/sse"}}}',
        {
            "tools": {**_HTTP, "without_tools": ("drop",)},
            "old": {"type": "sse", "url": "https://tools.example.com/sse"},
        },
    ),
    "Cline": (
        '{"mcpServers": {"a": {"command": "node", "args": ["x.js"], "disabled": false, "autoApprove": ["look"],'
        ' "timeout": 60, "transportType": "stdio"}, "b": {"type": "streamableHttp", "url": "https://tools.example.com/mcp"}}}',
        {"a": {"command": "node", "args": ("x.js",), "timeout": 60.0, "disabled": False}, "b": _HTTP},
    ),
    "Roo Code": (
        '{"mcpServers": {"a": {"command": "server", "alwaysAllow": [], "disabledTools": ["drop"], "timeout": 3600,'
        ' "watchPaths": ["build/x.js"], "disabled": true}}}',
        {"a": {"command": "server", "without_tools": ("drop",), "timeout": 3600.0, "disabled": True}},
    ),
    "Gemini CLI": (
        '{"theme": "x", "mcp": {"allowed": ["a"]}, "mcpServers": {"a": {"command": "python", "args": ["-m", "s"],'
        ' "env": {"KEY": "$MY_KEY"}, "cwd": "./sub", "timeout": 15000, "trust": true, "includeTools": ["look"],'
        ' "excludeTools": ["drop"]}, "b": {"httpUrl": "https://tools.example.com/mcp", "timeout": 5000}}}',
        {
            "a": {
                "command": "python",
                "args": ("-m", "s"),
                "env": {"KEY": "$MY_KEY"},
                "cwd": "./sub",
                "timeout": 15.0,
                "tools": ("look",),
                "without_tools": ("drop",),
            },
            "b": {**_HTTP, "timeout": 5.0},
        },
    ),
    "Copilot CLI": (
        '{"mcpServers": {"a": {"type": "local", "command": "server", "args": [], "tools": ["*"]},'
        ' "b": {"type": "http", "url": "https://tools.example.com/mcp", "tools": []}}}',
        {"a": {"command": "server", "args": (), "tools": ("*",)}, "b": {**_HTTP, "tools": ()}},
    ),
    "Kiro": (
        '{"mcpServers": {"a": {"command": "uvx", "args": ["s@latest"], "env": {"K": "${K}"}, "disabled": false,'
        ' "autoApprove": [], "disabledTools": [], "timeout": 120000}}}',
        {
            "a": {
                "command": "uvx",
                "args": ("s@latest",),
                "env": {"K": "${K}"},
                "disabled": False,
                "without_tools": (),
                "timeout": 120.0,
            }
        },
    ),
    "LM Studio": (
        '{"mcpServers": {"tools": {"url": "https://tools.example.com/mcp", "timeout": 60000}}}',
        {"tools": {**_HTTP, "timeout": 60.0}},
    ),
    "Zed": (
        '{\n"context_servers": {"new": {"source": "custom", "command": "server", "args": ["x"], "env": null},\n'
        '// of earlier versions\n"old": {"command": {"path": "server", "args": ["y"], "env": {}}, "settings": {}},\n'
        '"far": {"enabled": false, "url": "https://tools.example.com/mcp"},\n},}',
        {
            "new": {"command": "server", "args": ("x",)},
            "old": {"command": "server", "args": ("y",), "env": {}},
            "far": {**_HTTP, "disabled": True},
        },
    ),
    "OpenCode": (
        '{"$schema": "x", "mcp": {"a": {"type": "local", "command": ["bun", "x", "s"], "enabled": true,'
        ' "environment": {"K": "v"}}, "b": {"type": "remote", "url": "https://tools.example.com/mcp", "enabled": false}}}',
        {
            "a": {"command": "bun", "args": ("x", "s"), "env": {"K": "v"}, "disabled": False},
            "b": {**_HTTP, "disabled": True},
        },
    ),
    "Cherry Studio": (
        '{"mcpServers": {"a": {"name": "A", "isActive": false, "command": "server", "longRunning": true}}}',
        {"a": {"command": "server", "disabled": True}},
    ),
    "Goose's JSON": (
        '{"mcpServers": {"a": {"transport": "http", "url": "https://tools.example.com/mcp"}}}',
        {"a": _HTTP},
    ),
}


@pytest.mark.parametrize("program", FILES)
def test_the_file_of_another_program_loads_as_it_is(tmp_path: Path, program: str) -> None:
    text, expected = FILES[program]
    file = tmp_path / "servers.json"
    file.write_text(text)
    servers = read_servers(file)
    assert servers == {name: MCPServerSettings.model_validate(keys) for name, keys in expected.items()}


@pytest.mark.parametrize("program", FILES)
def test_so_it_does_as_mcp_json(places: Places, program: str) -> None:
    text, expected = FILES[program]
    places.write("mcp.json", text)
    assert set(places.load().mcp.servers) == set(expected)


def told(tmp_path: Path, entry: dict[str, Any]) -> str:
    """What is said of a file with this one server."""
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"it": entry}}))
    texts: list[str] = []
    read_servers(file, texts.append)
    return " | ".join(texts).replace(str(file), "FILE")


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"autoApprove": ["x"], "trust": True}, "FILE: without meaning here: it.autoApprove, it.trust"),
        ({"autoApprove": [], "trust": False, "envFile": ""}, ""),
        ({"envFile": ".env"}, "FILE: without meaning here: it.envFile"),
        ({"description": "d", "tags": ["x"], "gallery": True, "icon": "i"}, ""),
        ({"timeout": 30000}, "FILE: timeout 30000 of the MCP server it is read as milliseconds: 30 s"),
        ({"timeout": 3600}, ""),
        (
            {"oauth": {"authorizationUrl": "u", "enabled": True}},
            "FILE: without meaning here: it.oauth.authorizationUrl",
        ),
        ({"oauth": False}, ""),
        ({"disabledTools": [], "without_tools": []}, "FILE: without meaning here: it.disabledTools"),
    ],
)
def test_what_does_something_elsewhere_and_nothing_here_is_told(
    tmp_path: Path, keys: dict[str, Any], expected: str
) -> None:
    assert told(tmp_path, {"command": "server"} | keys) == expected


def test_of_very_many_such_keys_some_are_named(places: Places) -> None:
    servers = {f"s{number}": {"command": "x", "autoApprove": ["y"], "disabled": True} for number in range(100)}
    places.write("mcp.json", json.dumps({"mcpServers": servers}))
    (notice,) = places.load().notices
    assert notice.endswith("s11.autoApprove and 88 more")


def test_of_very_many_servers_that_are_read_otherwise_some_are_named(places: Places) -> None:
    servers = {f"s{number}": {"command": "x", "timeout": 9000, "disabled": True} for number in range(100)}
    places.write("mcp.json", json.dumps({"mcpServers": servers}))
    notices = places.load().notices
    assert len(notices) == 13
    assert notices[-1].endswith("the same is to be said of 88 more MCP servers")


@pytest.mark.parametrize("kind", ["ws", "WebSocket", "sdk", "inMemory"])
def test_a_server_that_cannot_be_reached_from_here_is_left_out_and_the_others_stay(places: Places, kind: str) -> None:
    entries = {"far": {"type": kind, "url": "x"}, "near": {"command": "server", "disabled": True}}
    places.write("mcp.json", json.dumps({"mcpServers": entries}))
    settings = places.load()
    assert list(settings.mcp.servers) == ["near"]
    (notice,) = settings.notices
    assert notice.endswith(f"the MCP server far is left out: Handwork does not connect by {kind}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"mcpServers": {"a": {\n"httpUrl": 1}}}', ("line 2", "servers.a.url", "string")),
        ('{"mcpServers": {"a": {\n"command": "x",\n"excludeTools": "y"}}}', ("line 3", "servers.a.without_tools")),
        ('{"servers": {"a": {"command": "x",\n"comand": "y"}}}', ("line 2", "unknown key [mcp] servers.a.comand")),
        ('{"mcp": {"servers": {\n"a": {"commnd": "x"}}}}', ("line 2", "unknown key [mcp] servers.a.commnd")),
        ('{"a": {"command": "x",\n"comand": "y"}}', ("line 2", "unknown key [mcp] servers.a.comand")),
        (
            '{"mcpServers": {"a": {"command": "x",\n"oauth": {\n"clientid": "y"}}}}',
            ("line 3", "oauth.clientid", "client_id?"),
        ),
        ('{"mcpServers": {"a": {"command":\n[1]}}}', ("servers.a.command", "string")),
        ('{"mcpServers": {"a": {"command":\n[]}}}', ("servers.a.command", "string")),
        ('{"mcpServers": {"a": {"command":\n{"path": 1}}}}', ("servers.a.command", "string")),
        (
            '{"mcpServers": {"a": {"command": "x",\n"enabled": "no"}}}',
            ("line 2", "unknown key [mcp] servers.a.enabled"),
        ),
    ],
)
def test_a_wrong_key_is_named_as_it_stands_there(tmp_path: Path, text: str, expected: tuple[str, ...]) -> None:
    file = tmp_path / "servers.json"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_servers(file)
    assert str(caught.value).startswith(f"Failed to load MCP server config: {file}")
    for part in expected:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "taken"),
    [
        ({}, ["look", "drop", "look_up", "a[b]?"]),
        ({"tools": []}, []),
        ({"tools": ["look"]}, ["look"]),
        ({"tools": ["look*"], "without_tools": ["look_*"]}, ["look"]),
        ({"without_tools": ["drop"]}, ["look", "look_up", "a[b]?"]),
        ({"tools": ["LOOK", "a[b]?"]}, ["a[b]?"]),
        ({"tools": ["[a]*", "loo?"]}, []),
    ],
)
def test_of_a_servers_tools_those_are_taken_that_are_wanted(settings: dict[str, Any], taken: list[str]) -> None:
    server = MCPServerSettings.model_validate({"command": "x"} | settings)
    assert [name for name in ("look", "drop", "look_up", "a[b]?") if server.takes(name)] == taken
