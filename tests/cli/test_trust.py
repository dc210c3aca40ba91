"""The one question about a folder that brings its own configuration, and `handwork trust`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.cli.command import handwork
from tests.cli.terminal import Terminal
from tests.support.strict_server import StrictServer

from handwork.cli.trust.glance import CARRIERS
from handwork.cli.trust.words import meanings
from handwork.config.carried import AGENTS, CONFIGS, SERVERS, SKILLS, carried_by

QUESTION = "[s]how the files: "
RUN = ("run", "Do it.")


@pytest_asyncio.fixture
async def server() -> AsyncIterator[StrictServer]:
    async with StrictServer(["Done."] * 4) as server:
        yield server


@pytest.fixture
def folder(workspace: Path, server: StrictServer) -> Path:
    """A workspace whose configuration names the model; nothing else does."""
    (workspace / "handwork.toml").write_text(f'[llm]\nmodel = "openai:theirs"\nbase_url = "{server.url}"\n')
    return workspace


async def answered(cwd: Path, *typed: str, command: tuple[str, ...] = RUN) -> tuple[int, str]:
    """What a person sees who answers so."""
    terminal = await Terminal.run(*command, cwd=cwd)
    for each in typed:
        await terminal.expect(QUESTION)
        terminal.type(each)
    code = await terminal.end()
    return code, terminal.plain


async def test_a_folder_that_is_trusted_is_asked_about_once_and_again_when_it_changes(folder: Path) -> None:
    code, seen = await answered(folder, "y\n")
    assert code == 0, seen
    for part in (
        str(folder),
        "handwork.toml",
        "· chooses the model openai:theirs",
        "· sends all that is said and read to http://127.0.0.1",
        "Until you trust it, nothing of this is used.",
        "Done.",
    ):
        assert part in seen
    code, seen = await answered(folder)
    assert (code, "Trust it?" in seen) == (0, False)
    (folder / "mcp.json").write_text('{"mcpServers": {"x": {"command": "evil", "args": ["--now"]}}}')
    code, seen = await answered(folder, "y\n")
    assert code == 0
    assert "has changed since you trusted it" in seen
    assert "mcp.json (new or changed)" in seen
    assert "· starts 1 program as MCP servers, in the sandbox" in seen
    assert "· the server x: evil --now" in seen


async def test_a_file_that_changes_while_the_question_stands_is_not_trusted_with_the_answer(
    folder: Path, server: StrictServer
) -> None:
    terminal = await Terminal.run(*RUN, "--model", "none:x", cwd=folder)
    await terminal.expect(QUESTION)
    (folder / "handwork.toml").write_text("[limits]\nmax_steps = 7\n")
    terminal.type("y\n")
    assert await terminal.end() == 2
    shown = json.loads((await handwork("config", "show", "--json", cwd=folder)).out)
    assert shown["tables"]["limits"]["max_steps"]["value"] is None
    assert "handwork.toml changed since you trusted this folder" in shown["notices"][0]
    assert server.requests == []


async def test_not_now_uses_nothing_and_asks_again(folder: Path, server: StrictServer) -> None:
    for answer in ("n\n", "\x04"):
        code, seen = await answered(folder, "q\n" if answer == "n\n" else answer, command=(*RUN, "--model", "none:x"))
        assert code == 2, seen
        assert "Nothing of it is used now." in seen
    assert server.requests == []


async def test_never_is_never_asked_again_whatever_changes(folder: Path, server: StrictServer) -> None:
    command = (*RUN, "--model", "none:x")
    assert "Never used" in (await answered(folder, "v\n", command=command))[1]
    (folder / "handwork.toml").write_text("[limits]\nmax_steps = 3")
    assert "Trust it?" not in (await answered(folder, command=command))[1]
    ended = await handwork("trust", "--show", cwd=folder)
    assert "never asked about again" in ended.out
    assert server.requests == []


async def test_what_was_typed_before_the_question_is_no_answer_and_other_words_are_none_either(folder: Path) -> None:
    terminal = await Terminal.run(*RUN, "--model", "none:x", cwd=folder)
    terminal.type("y\ny\n")
    for typed in ("\n", "maybe\n", "n\n"):
        await terminal.expect(QUESTION)
        terminal.type(typed)
    assert await terminal.end() == 2
    assert terminal.plain.count("Type y, n, v or s.") == 2


async def test_the_files_can_be_looked_at_and_nothing_in_them_or_their_names_acts(workspace: Path) -> None:
    name = ".handwork/skills/a\x1b]0;t\x07\u202eb\nc/SKILL.md"
    (workspace / name).parent.mkdir(parents=True)
    (workspace / name).write_text("read\x1b[2J\u202e\U000e0041me\n")
    (workspace / "mcp.json").write_text(json.dumps({"mcpServers": {"\x1b[31m": {"command": "\u202etxt.exe\n\x07"}}}))
    code, seen = await answered(workspace, "s\n", "n\n", command=(*RUN, "--model", "none:x"))
    assert code == 2
    assert "skills/a⟨U+001B⟩]0;t⟨U+0007⟩⟨U+202E⟩b⏎c" in seen
    assert "⟨U+001B⟩[31m: '⟨U+202E⟩txt.exe⏎⟨U+0007⟩'" in seen
    assert "│ read⟨U+001B⟩[2J⟨U+202E⟩⟨U+E0041⟩me" in seen
    assert not any(char in seen for char in "\x1b\x07\u202e\U000e0041")


async def test_without_a_person_nothing_is_asked_or_read_and_one_notice_says_how(folder: Path) -> None:
    ended = await handwork(*RUN, "--model", "none:x", cwd=folder)
    assert ended.code == 2
    assert "Trust it?" not in ended.err
    ended = await handwork(*RUN, "--json", "--config", "/dev/null", cwd=folder, HANDWORK_MODEL="none:x")
    assert ended.code == 2
    shown = await handwork("config", "show", "--json", cwd=folder)
    (notice,) = json.loads(shown.out)["notices"]
    assert f"handwork trust {folder}" in notice
    trusted = await handwork("trust", str(folder), cwd=folder.parent)
    assert trusted.code == 0
    assert "chooses the model openai:theirs" in trusted.out
    assert f"{folder} is trusted" in trusted.out
    ended = await handwork(*RUN, cwd=folder)
    assert (ended.code, ended.out) == (0, "Done.\n")
    forgotten = await handwork("trust", "--forget", cwd=folder)
    assert "asked about again" in forgotten.out
    assert (await handwork("trust", "--forget", cwd=folder)).code == 2


async def test_a_file_that_is_named_needs_no_question(folder: Path) -> None:
    code, seen = await answered(folder, command=(*RUN, "--config", "handwork.toml"))
    assert code == 0
    assert "Trust it?" not in seen


async def test_a_chat_asks_before_its_prompt(folder: Path) -> None:
    terminal = await Terminal.run("chat", cwd=folder)
    await terminal.expect(QUESTION)
    assert "Say what is to be done" not in terminal.plain
    terminal.type("y\n")
    await terminal.expect("openai:theirs")
    terminal.type("\x04")
    assert await terminal.end() == 0


async def test_the_question_says_what_becomes_of_the_users_own_file(folder: Path, home: Path) -> None:
    (home / "config.toml").write_text("[limits]\nmax_steps = 3\n")
    _, seen = await answered(folder, "n\n", command=(*RUN, "--model", "none:x"))
    assert "takes the place of" in seen.replace("\n", " ")


@pytest.mark.parametrize("arguments", [("--show", "--forget"), ("nowhere",), (".",), ("--show", ".")])
async def test_what_cannot_be_decided_is_said(workspace: Path, arguments: tuple[str, ...]) -> None:
    ended = await handwork("trust", *arguments, cwd=workspace)
    assert ended.code == 2
    assert "→" in ended.err or "exclude" in ended.err or "no folder" in ended.err


def test_the_first_glance_misses_nothing() -> None:
    assert set(CARRIERS) == {*CONFIGS, *SERVERS, AGENTS, SKILLS}


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ('[llm]\napi_key = "env:MINE"', "gives that place the key in your variable MINE"),
        ('[llm]\napi_key = "sk-of-theirs-1234"', "gives that place a key that stands there"),
        ('[llm.headers]\nX = "Bearer env:MINE"', "sends headers along: X from your variable MINE"),
        ('[llm.swe]\nbase_url = "http://x"', "for swe: sends all that is said and read to http://x"),
        ('[sandbox]\nbackend = "host"', "runs tools on this machine, without a sandbox"),
        ("[sandbox]\nnetwork = true", "opens the network to tools"),
        ('[sandbox]\nallow_net = ["a.example"]', "opens the network to a.example"),
        ('[policy]\napprove = "auto"', "lets calls run without asking you"),
        ('[policy]\nrules = ["allow run rm *"]', "adds the rule: allow run rm *"),
        ('[browser]\nchrome_instance_path = "/x"', "starts this program as the browser: /x"),
        ('[browser.proxy]\nserver = "http://p"', "sends the browser through the proxy http://p"),
        ('[mcp.servers.x]\ncommand = "run me"\nargs = ["a b"]', "the server x: 'run me' 'a b'"),
        (
            '[mcp.servers.x]\nurl = "http://m"\n[mcp.servers.x.headers]\nA = "env:T"',
            "the server x: asks http://m (with headers A from your variable T)",
        ),
        ('[mcp]\nserver_reference = "a.b"', "starts the Python module a.b as an MCP server"),
        ('[store]\npath = "/x.db"', "sets [store] path = /x.db"),
        ('[daytona]\ndaytona_api_key = "abc"', "sets [daytona] daytona_api_key = a key that stands there"),
        ("[limits]\nbudget = 9.0", "sets [limits] budget = 9.0"),
        ("nonsense = 1", "sets nonsense"),
        ("[llm", "cannot be used as it is: handwork.toml, line 1: this is not valid TOML"),
        ("", "nothing: it is empty"),
    ],
)
def test_each_effect_of_a_configuration_is_said_in_words(workspace: Path, text: str, effect: str) -> None:
    (workspace / "handwork.toml").write_text(text)
    (meaning,) = meanings(carried_by(workspace))
    assert any(each.startswith(effect) for each in meaning.effects), meaning.effects


BESIDE = "starts 1 program OUTSIDE of the sandbox, with your rights, files and network: x"


@pytest.mark.parametrize(
    ("servers", "effects"),
    [
        ({"x": {"command": "run", "sandbox": False}}, [BESIDE, "the server x: run (OUTSIDE of the sandbox)"]),
        (
            {"x": {"command": "run", "paths": ["~/.ssh", "/data"], "allow_net": ["a.example"]}},
            [
                "starts 1 program as MCP servers, in the sandbox",
                "lets everything in the sandbox read ~/.ssh, /data",
                "lets everything in the sandbox reach a.example",
                "the server x: run",
            ],
        ),
        (
            {"x": {"command": "run", "args": ["--key=${ONE}"], "env": {"K": "${env:TWO:-${THREE}}", "M": "fast"}}},
            [
                "starts 1 program as MCP servers, in the sandbox",
                "gives MCP servers your variables: ONE, TWO, THREE",
                "the server x: run '--key=${ONE}' (with env K from your variable TWO or THREE, M; with your variables ONE)",
            ],
        ),
        (
            {"x": {"serverUrl": "https://x.example/${ONE}", "headers": {"A": "$TWO"}}},
            [
                "gives MCP servers your variables: TWO, ONE",
                "the server x: asks https://x.example/${ONE} (with headers A from your variable TWO; with your variables ONE)",
            ],
        ),
        (
            {"x": {"command": "run", "disabled": True, "sandbox": False, "env": {"K": "${ONE}"}}},
            ["the server x: run (switched off; OUTSIDE of the sandbox; with env K from your variable ONE)"],
        ),
        (
            {"x": {"command": "run", "new_tools": True, "cwd": "${workspaceFolder}"}},
            [
                "starts 1 program as MCP servers, in the sandbox",
                "takes what these MCP servers add later, without asking you: x",
                "the server x: run (in ${workspaceFolder})",
            ],
        ),
    ],
)
def test_of_a_server_it_is_said_where_it_runs_what_it_is_opened_to_and_what_it_gets(
    workspace: Path, servers: dict[str, Any], effects: list[str]
) -> None:
    (workspace / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (meaning,) = meanings(carried_by(workspace))
    assert list(meaning.effects) == effects


def test_no_number_of_servers_hides_the_one_outside_of_the_sandbox_or_a_variable_that_is_set(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZZ_OWN_TOKEN", "x")
    servers: dict[str, Any] = {
        f"s{number}": {"command": "run", "env": {"E": "${V" + str(number) + "}"}} for number in range(500)
    }
    servers["last"] = {"command": "run", "sandbox": False, "env": {"E": "${ZZ_OWN_TOKEN}"}}
    (workspace / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (meaning,) = meanings(carried_by(workspace))
    assert meaning.effects[0] == BESIDE.replace(": x", ": last")
    assert meaning.effects[2].startswith("gives MCP servers your variables: ZZ_OWN_TOKEN, V0, V1")
    assert meaning.effects[2].endswith(" and 301 more")


async def test_the_question_says_which_servers_of_the_users_own_are_replaced(folder: Path, home: Path) -> None:
    (home / "mcp.json").write_text('{"mcpServers": {"mail": {"command": "m"}, "mine": {"command": "m"}}}')
    (folder / ".mcp.json").write_text('{"mcpServers": {"mail": {"command": "theirs"}, "new": {"command": "n"}}}')
    _, seen = await answered(folder, "n\n", command=(*RUN, "--model", "none:x"))
    assert "its MCP servers take the place of yours of the same names: mail." in " ".join(seen.split())


def test_what_matters_stands_before_what_does_not(workspace: Path) -> None:
    noise = "".join(f"[llm.a{number}]\nmax_tokens = {number + 1}\n" for number in range(200))
    (workspace / "handwork.toml").write_text(f'{noise}[sandbox]\nbackend = "host"\n')
    (meaning,) = meanings(carried_by(workspace))
    assert meaning.effects[0] == "runs tools on this machine, without a sandbox"


@pytest.mark.parametrize(
    "noise",
    [
        "".join(f'"deny run x{number}",' for number in range(100)),
        "".join(f'"allow run x{number}",' for number in range(100)),
    ],
)
def test_no_number_of_rules_hides_what_a_file_does_once(workspace: Path, noise: str) -> None:
    (workspace / "handwork.toml").write_text(
        f'[policy]\nrules = [{noise}]\napprove = "auto"\n[sandbox]\nbackend = "host"\n'
        '[mcp.servers.x]\ncommand = "run"\n[llm]\nbase_url = "http://x"\n'
    )
    (meaning,) = meanings(carried_by(workspace))
    assert {
        "lets calls run without asking you",
        "runs tools on this machine, without a sandbox",
        "starts 1 program as MCP servers, in the sandbox",
        "sends all that is said and read to http://x",
    } == set(meaning.effects[:4])
    assert meaning.weighty == 5 + noise.count("allow")
