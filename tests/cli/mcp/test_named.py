"""--mcp NAME|URL|"COMMAND ARGS": which server is meant, and what it is called."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.command import handwork
from tests.mcp import stub
from tests.support.strict_server import StrictServer, tool

from handwork.cli.mcp.named import named_server, named_servers
from handwork.cli.options import RunOptions
from handwork.config import MCPServerSettings
from handwork.errors import ConfigError

KNOWN = {
    "clock": MCPServerSettings(command="c", disabled=True),
    "web": MCPServerSettings.model_validate({"url": "http://a"}),
}


@pytest.mark.parametrize(
    ("typed", "name", "command"),
    [
        ("python3 /x/my_server.py --flag", "my_server", "python3"),
        ("python3 -m package.server", "server", "python3"),
        ("python3 -c 'print()'", "python3", "python3"),
        ("node dist/index.js", "index", "node"),
        ("npx -y @a/server-files /work", "server-files", "npx"),
        ("uvx mcp-server-time", "mcp-server-time", "uvx"),
        ("/opt/bin/serve", "serve", "/opt/bin/serve"),
        ("sh", "sh", "sh"),
        ("'/x y/a b'", "a-b", "/x y/a b"),
    ],
)
def test_a_command_is_called_by_what_it_runs(typed: str, name: str, command: str) -> None:
    found, settings = named_server(typed, KNOWN)
    assert (found, settings.command) == (name, command)


def test_an_address_is_called_by_its_host_and_an_older_one_is_known_by_its_path() -> None:
    assert named_server("https://mcp.example:8000/mcp", {})[0] == "mcp.example"
    assert named_server("https://a.example/sse", {})[1].type == "sse"


def test_a_name_means_the_configured_one_though_it_is_disabled() -> None:
    name, settings = named_server("clock", KNOWN)
    assert (name, settings.command, settings.disabled) == ("clock", "c", False)


def test_no_two_servers_get_one_name_and_one_that_is_typed_twice_counts_once() -> None:
    typed = ["python3 a/clock.py", "python3 b/clock.py", "python3 a/clock.py"]
    assert list(named_servers(typed, KNOWN)) == ["clock-2", "clock-3"]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("clok", "did you mean clock"),
        ("", "configured are: clock, web"),
        ("x 'y", "close its quotes"),
        ("http://[", "no address"),
    ],
)
def test_what_names_none_is_said(typed: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        named_server(typed, KNOWN)
    assert said in str(caught.value)


def test_what_is_typed_to_go_on_names_the_servers_again_without_secrets(tmp_path: Path) -> None:
    again = RunOptions(workspace=tmp_path, mcp=("clock", "serve --api-key s3cretvalue")).again()
    assert again["--mcp"] == "clock --mcp 'serve --api-key …'"


# ---- in a run


@pytest.fixture
def command(workspace: Path) -> str:
    file = workspace / "stub.py"
    file.write_bytes(Path(stub.__file__ or "").read_bytes())
    return f"{sys.executable} {file}"


async def test_a_run_uses_a_server_that_was_named_beside_the_configured_ones(
    workspace: Path, home: Path, command: str
) -> None:
    program, script = command.split()
    entry = {"command": program, "args": [script, "--name", "other"]}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"mine": entry}}))
    script_of_model = [tool("mcp_stub_echo", text="one"), tool("mcp_mine_echo", text="two"), "Done."]
    async with StrictServer(script_of_model) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        ended = await handwork("run", "Do it.", "--json", "--mcp", command, *model, cwd=workspace)
    assert ended.code == 0
    texts = [event["observation"] for event in ended.events if event["type"] == "tool_call_finished"]
    assert ["one" in texts[0], "two" in texts[1]] == [True, True]


async def test_the_agent_mcp_has_exactly_the_tools_of_the_server_that_was_named(workspace: Path, command: str) -> None:
    async with StrictServer([tool("echo", text="one"), tool("terminate", status="success")]) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        ended = await handwork("run", "Do it.", "--agent", "mcp", "--mcp", command, *model, cwd=workspace)
    assert ended.code == 0
    offered = {each["function"]["name"] for each in server.requests[0]["tools"]}
    assert offered == {"add", "echo", "terminate"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--agent", "swe", "--mcp", "sh"], "The agent swe uses no MCP servers"),
        (["--agent", "mcp", "--mcp", "sh", "--mcp", "cat"], "The agent mcp works with one server"),
        (["--mcp", "no-such-server"], "There is no MCP server 'no-such-server'"),
        (["--mcp", "uvx some-server --flag"], "handwork mcp add some-server -- uvx some-server --flag"),
        (["--mcp", "uvx --from git+https://a.example/x y"], "no name of a package"),
    ],
)
async def test_what_cannot_be_is_exit_2_before_anything_is_sent(
    workspace: Path, home: Path, arguments: list[str], said: str
) -> None:
    model = ("--base-url", "http://127.0.0.1:9/v1", "--model", "openai:any")
    ended = await handwork("run", "Do it.", *arguments, *model, cwd=workspace)
    assert ended.code == 2
    assert said in ended.err
    assert not (home / "store.db").exists()


async def test_a_test_of_what_has_to_be_installed_says_how(workspace: Path, home: Path) -> None:
    ended = await handwork("mcp", "test", "npx -y @a/server", cwd=workspace)
    assert ended.code == 2
    assert "@a/server (npm) is not installed" in ended.err
    assert "handwork mcp add server -- npx -y @a/server" in ended.err
