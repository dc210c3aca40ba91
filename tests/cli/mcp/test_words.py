"""A server's command among the words of `handwork mcp add` and `test`: what is whose is told with the line to type."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.command import handwork


@pytest.mark.parametrize(
    ("typed", "behind", "line"),
    [
        (["it", "npx", "-y", "@a/b"], "-y", "it -- npx -y @a/b"),
        (["it", "npx", "-x", "a b"], "-x", "it -- npx -x 'a b'"),
        (["it", "server", "--port=1"], "--port", "it -- server --port=1"),
        (["it", "uvx", "one", "--no-test"], "--no-test", "it -- uvx one --no-test"),
        (["it", "uvx", "one", "--env", "A=B"], "--env", "it -- uvx one --env A=B"),
        (["--no-test", "--env", "A=B", "it", "npx", "-y", "one"], "-y", "--no-test --env A=B it -- npx -y one"),
        (["it", "--env", "A=B", "npx", "-y", "one"], "-y", "it --env A=B -- npx -y one"),
    ],
)
async def test_a_forgotten_double_dash_is_told_with_the_line_as_it_should_be_typed(
    workspace: Path, home: Path, typed: list[str], behind: str, line: str
) -> None:
    ended = await handwork("mcp", "add", *typed, cwd=workspace)
    assert ended.code == 2
    what, hint, rest = ended.err.splitlines()
    assert what.startswith(f"handwork: {behind} stands behind the server's command ")
    assert hint == f"→ handwork mcp add {line}"
    assert rest == "  (what is meant for `mcp add` itself stands before the --)"
    assert not (home / "mcp.json").exists()


@pytest.mark.parametrize(
    ("typed", "entry"),
    [
        (["--no-test", "it", "cat"], {"command": "cat"}),
        (["it", "--no-test", "--", "cat", "-n"], {"command": "cat", "args": ["-n"]}),
        (["it", "https://a.invalid/mcp", "--no-test"], {"url": "https://a.invalid/mcp"}),
        (["it", "--url", "https://a.invalid/mcp", "--no-test"], {"url": "https://a.invalid/mcp"}),
    ],
)
async def test_what_cannot_be_mistaken_needs_no_double_dash(
    workspace: Path, home: Path, typed: list[str], entry: dict[str, object]
) -> None:
    ended = await handwork("mcp", "add", *typed, cwd=workspace)
    assert ended.code == 0, ended.err
    assert json.loads((home / "mcp.json").read_text()) == {"mcpServers": {"it": entry}}


@pytest.mark.parametrize(
    "typed", [["npx", "-y", "@a/b"], ["npx", "-y", "@a/b", "--json"], ["--json", "npx", "-y", "@a/b"]]
)
async def test_a_command_to_be_tested_without_quotes_is_told_with_the_line_as_it_should_be_typed(
    workspace: Path, typed: list[str]
) -> None:
    ended = await handwork("mcp", "test", *typed, cwd=workspace)
    assert ended.code == 2
    json_too = "--json " if "--json" in typed else ""
    assert ended.err.splitlines() == [
        "handwork: A server's command is given as one argument, in quotes",
        f"→ handwork mcp test {json_too}'npx -y @a/b'",
    ]


async def test_help_behind_a_servers_name_is_still_help(workspace: Path) -> None:
    for verb in ("add", "test"):
        ended = await handwork("mcp", verb, "it", "--help", cwd=workspace)
        assert (ended.code, f"handwork mcp {verb}" in ended.out) == (0, True)
