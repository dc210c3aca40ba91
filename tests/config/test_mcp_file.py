"""mcp.json: the servers beside the configuration that was taken, and errors that name the line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handwork.config import load_configuration, load_settings
from tests.config.places import Places

SERVERS = """{
  "mcpServers": {
    "away": {"type": "sse", "url": "http://localhost:8000/sse"},
    "here": {
      "type": "stdio",
      "command": "some-server",
      "args": ["serve", "--quiet"],
      "env": {"TOKEN": "env:MY_TOKEN", "MODE": "fast"},
      "timeout": 5
    }
  }
}
"""


def test_the_servers_are_kept_as_they_stand_there_and_nothing_is_said_of_them(places: Places) -> None:
    places.write("mcp.json", SERVERS)
    settings = places.load(environ={"MY_TOKEN": "a-secret-token"})
    away, here = settings.mcp.servers["away"], settings.mcp.servers["here"]
    assert (away.type, away.url) == ("sse", "http://localhost:8000/sse")
    assert (here.type, here.command, here.args, here.timeout) == ("stdio", "some-server", ("serve", "--quiet"), 5.0)
    assert here.env == {"TOKEN": "a-secret-token", "MODE": "fast"}
    assert "a-secret-token" not in repr(settings)
    assert "a-secret-token" in settings.secrets()
    assert settings.notices == ()


def test_it_stands_beside_the_file_that_was_taken(places: Places) -> None:
    places.write("mcp.json", SERVERS)
    places.write("config.toml", "")
    file = places.in_workspace("mine/some.toml")
    assert places.load(file).mcp.servers == {}
    other = places.in_workspace("mine/mcp.json", '{"mcpServers": {"own": {"url": "http://x/mcp"}}}')
    configuration = places.configuration(file)
    assert list(configuration.settings.mcp.servers) == ["own"]
    assert configuration.files == (file, other)
    assert set(places.load().mcp.servers) == {"away", "here"}


@pytest.mark.parametrize(
    ("server", "type"),
    [
        ({"command": "x"}, "stdio"),
        ({"url": "http://x/mcp"}, "http"),
        ({"url": "http://x/sse"}, "sse"),
        ({"url": "http://x/sse/?a=b"}, "sse"),
        ({"type": "streamable", "url": "u"}, "http"),
        ({"type": "streamable-http", "url": "u"}, "http"),
        ({"type": "streamableHttp", "url": "u"}, "http"),
        ({"type": "HTTP", "url": "u", "headers": {"Authorization": "Bearer env:KEY"}}, "http"),
        (
            {"type": "stdio", "command": "x", "url": "u", "autoApprove": ["x"], "description": "d", "disabled": True},
            "stdio",
        ),
    ],
)
def test_servers_are_read_as_other_programs_write_them(places: Places, server: dict[str, Any], type: str) -> None:
    places.write("mcp.json", json.dumps({"mcpServers": {"it": server}}))
    settings = places.load(environ={"KEY": "hush"})
    it = settings.mcp.servers["it"]
    assert (it.type, it.disabled) == (type, "disabled" in server)
    assert it.headers == ({"Authorization": "Bearer hush"} if "headers" in server else {})
    assert any("it.autoApprove" in notice for notice in settings.notices) is ("autoApprove" in server)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n"mcpServers": {\n"a": {"comand": "x"}}}', ("line 3", "unknown key [mcp] servers.a.comand", "command?")),
        ('{\n"mcpServers": {"a": {}}}', ("line 2", "Command is required for stdio connection")),
        ('{"mcpServers": {"a": {"command": " "}}}', ("line 1", "Command is required for stdio connection")),
        ('{"mcpServers": {\n"a": {"type": "sse"}}}', ("line 2", "Server URL is required for SSE connection")),
        ('{"mcpServers": {"a": {\n"type": "ftp"}}}', ("line 2", "Unsupported connection type: ftp")),
        ('{"mcpServers": {"a": {"command": "x",\n"args": [\n"1",\n2]}}}', ("line 4", "servers.a.args.1", "string")),
        ('{"mcpServers": {"a": {"command": "x",\n"args": "1"}}}', ("line 2", "servers.a.args")),
        ('{"mcpServers": {"a": {"command": "x",\n"env": {\n"PORT": 1}}}}', ("line 3", "servers.a.env.PORT", "string")),
        ('{"mcpServers": {"a": {"command": "x",\n"timeout": "1"}}}', ("line 2", "servers.a.timeout", "number")),
        ('{"mcpServers": {"a": {"command": "x",\n"timeout": NaN}}}', ("NaN is no number",)),
        ('{"mcpServers": {\n"a": 1}}', ("line 2", "the server 'a' must be an object")),
        ('{"mcpServers": {\n" ": {"command": "x"}}}', ("line 2", "a server has no name")),
        ('{\n"mcpServers": []}', ("line 2", "mcpServers must be an object")),
        ('{\n"server": {}}', ("line 2", "unknown key server", "mcpServers")),
        ('{\n"mcpServers": null}', ("line 2", "mcpServers must be an object")),
        ('{\n"servers": []}', ("line 2", "servers must be an object")),
        ('{"mcp": {\n"servers": 1}}', ("line 2", "mcp.servers must be an object")),
        ("[]", ("line 1", "must be an object")),
        ('{"mcpServers": {\n"a": {"command": "x"},,}}', ("line 2", "not valid JSON")),
        ('{// why\n"mcpServers": {\n"a": {"command": }}}', ("line 3", "not valid JSON")),
        ('{"mcpServers": {\n"a": {"command": "x"},\n"a": {"command": "y"}}}', ("line 3", "a is set twice", "line 2")),
        ('{"mcpServers":\n' + '{"a":' * 3000 + "1" + "}" * 3001, ("line 2", "more than 64 levels")),
        ('{"mcpServers":\n' + "[" * 100_000, ("line 2", "more than 64 levels")),
        ('{"mcpServers": {"a": {"command": "x",\n"timeout": ' + "9" * 5000 + "}}}", ("line 2", "digits")),
    ],
)
def test_a_wrong_file_is_named_with_the_line_and_what_is_wrong(
    places: Places, text: str, expected: tuple[str, ...]
) -> None:
    file = places.write("mcp.json", text)
    told = places.complaint()
    assert told.startswith(f"Failed to load MCP server config: {file}")
    for part in expected:
        assert part in told


def test_a_file_that_cannot_be_read_says_the_same(places: Places) -> None:
    (places.home / "mcp.json").mkdir()
    assert places.complaint().startswith("Failed to load MCP server config: ")
    assert "directory" in places.complaint()


def test_one_in_the_workspace_is_not_read_and_that_is_said_once(places: Places) -> None:
    for name in ("mcp.json", "config/mcp.json"):
        places.in_workspace(name, "nonsense")
    (notice,) = places.load().notices
    assert "mcp.json are not read" in notice


def test_a_variable_that_is_not_set_is_left_for_whoever_starts_the_server(places: Places) -> None:
    places.write("mcp.json", SERVERS)
    assert places.load().mcp.servers["here"].env["TOKEN"] == "env:MY_TOKEN"


def test_a_server_in_the_configuration_file_gives_way_to_one_of_that_name_in_mcp_json(places: Places) -> None:
    places.write("config.toml", '[mcp.servers.here]\ncommand = "old"\ncwd = "/"\n[mcp.servers.mine]\ncommand = "m"')
    places.write("mcp.json", SERVERS)
    configuration = places.configuration()
    servers = configuration.settings.mcp.servers
    assert (servers["here"].command, servers["here"].cwd, servers["mine"].command) == ("some-server", "", "m")
    assert "mcp.json, line 6" in str(configuration.origins["mcp", "servers", "here", "command"])
    assert ("mcp", "servers", "here", "cwd") not in configuration.origins


OWN = '{"mcpServers": {"mine": {"command": "m"}, "both": {"command": "own", "cwd": "/", "oauth": {"scope": "s"}}}}'
THEIRS = '{"mcpServers": {"both": {"command": "theirs"}, "new": {"command": "n"}}}'


@pytest.mark.parametrize("name", ["mcp.json", ".mcp.json", "config/mcp.json"])
def test_the_users_own_servers_are_there_in_every_workspace_and_those_of_a_trusted_one_over_them(
    places: Places, name: str
) -> None:
    own, theirs = places.write("mcp.json", OWN), places.in_workspace(name, THEIRS)
    assert places.load().mcp.servers["both"].command == "own"
    configuration = load_configuration(
        workspace=places.workspace, environ={"HANDWORK_HOME": str(places.home)}, trusted=True
    )
    servers = configuration.settings.mcp.servers
    assert {server: each.command for server, each in servers.items()} == {"mine": "m", "both": "theirs", "new": "n"}
    assert servers["both"].cwd == ""
    assert servers["both"].oauth.scope == ""
    assert not [path for path in configuration.origins if path[:3] == ("mcp", "servers", "both") and "oauth" in path]
    assert configuration.files == (own, theirs)


def test_a_workspace_with_a_configuration_of_its_own_takes_none_of_the_users_servers_away(places: Places) -> None:
    places.write("mcp.json", OWN)
    places.write("config.toml", '[mcp.servers.toml]\ncommand = "t"\n[limits]\nmax_steps = 3\n')
    places.in_workspace("handwork.toml", '[mcp.servers.both]\ncommand = "theirs"\n')
    places.in_workspace(".mcp.json", '{"mcpServers": {"new": {"command": "n"}}}')
    settings = load_settings(workspace=places.workspace, environ={"HANDWORK_HOME": str(places.home)}, trusted=True)
    servers = {name: server.command for name, server in settings.mcp.servers.items()}
    assert servers == {"toml": "t", "mine": "m", "both": "theirs", "new": "n"}


def test_who_names_a_configuration_gets_its_servers_and_not_the_users_own(places: Places) -> None:
    places.write("mcp.json", OWN)
    file = places.in_workspace("ci/some.toml")
    assert places.load(file).mcp.servers == {}
    places.in_workspace("ci/mcp.json", THEIRS)
    assert set(places.load(file).mcp.servers) == {"both", "new"}


def test_comments_and_a_comma_after_the_last_value_are_read_over(places: Places) -> None:
    places.write(
        "mcp.json",
        '{\n// one "comment"\n"mcpServers": { /* two,\n} */\n"a": {"command": "x // no comment", "args": ["/*", ",]", ],},\n},\n}',
    )
    server = places.load().mcp.servers["a"]
    assert (server.command, server.args) == ("x // no comment", ("/*", ",]"))


@pytest.mark.parametrize("piece", ["/*", "//", '"', '\\"', '"\\', ", ", "/* */", "\n,"])
def test_no_text_takes_long_to_read_over(places: Places, piece: str) -> None:
    places.write("mcp.json", "{" + piece * (900_000 // len(piece)))
    assert "not valid JSON" in places.complaint()


def test_a_file_without_servers_is_fine(places: Places) -> None:
    for text in ("", "{}", '\ufeff{"mcpServers": {}}', "\r\n"):
        places.write("mcp.json", text)
        assert places.load().mcp.servers == {}
        assert places.load().notices == ()


@pytest.mark.parametrize("escape", ["\\ud83d", "\\udE00", "\\ud83dx\\ude00"])
def test_half_a_character_is_named_and_a_whole_one_is_read(places: Places, escape: str) -> None:
    places.write("mcp.json", f'{{"mcpServers": {{"\\ud83d\\ude00": {{\n"command": "{escape}"}}}}}}')
    assert "line 2: \\ud" in (told := places.complaint())
    assert "half of a character" in told
    places.write("mcp.json", '{"mcpServers": {"\\ud83d\\ude00": {"command": "\\ud83d\\ude00"}}}')
    assert places.load().mcp.servers["\U0001f600"].command == "\U0001f600"


def test_a_server_that_is_switched_off_is_missed_by_nobody(places: Places) -> None:
    places.write("mcp.json", '{"mcpServers": {"off": {"command": "x", "disabled": true}}}')
    assert places.load().notices == ()
