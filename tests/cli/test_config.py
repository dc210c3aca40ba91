"""`handwork config show`: every value with its place, no secret, and an error where the configuration is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.command import handwork
from tests.cli.terminal import Terminal

from handwork.agent.manus import Manus
from handwork.config.keys import KeyStore

CONFIG = """
[llm]
model = "openai:some-model"
api_key = "sk-abcdefghijklmnop1234"
headers = {Authorization = "Bearer hush-hush-hush-hush"}
[llm.swe]
max_tokens = 9
api_key = "env:MY_SECRET"
[browser]
cdp_url = "ws://user:pa55word@host/x?token=t0ken"
"""
SERVERS = '{"mcpServers": {"it": {"command": "x", "args": ["--api-key", "k3y"], "env": {"TOKEN": "t0k3n-of-it"}}}}'
SECRETS = ("efghijkl", "hush-hush", "pa55word", "t0ken", "k3y", "t0k3n", "from-variable", "Zyx")


@pytest.fixture
def user(home: Path) -> Path:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(CONFIG)
    (home / "mcp.json").write_text(SERVERS)
    return home


async def test_each_value_is_shown_with_its_place_and_no_secret_at_all(user: Path, tmp_path: Path) -> None:
    (tmp_path / "handwork.toml").write_text("")
    ended = await handwork(
        *("config", "show"), cwd=tmp_path, MY_SECRET="from-variable-1234", HANDWORK_LIMITS_MAX_STEPS="7"
    )
    assert (ended.code, ended.err) == (0, "")
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert str(user / "config.toml") in lines
    assert f"{tmp_path / 'handwork.toml'}: this folder is not trusted" in lines
    assert "* model openai:some-model config.toml, line 3" in lines
    assert "* api_key sk-…1234 config.toml, line 4" in lines
    assert "* max_tokens 9 config.toml, line 7" in lines
    assert "* api_key …1234 config.toml, line 8 (env:MY_SECRET)" in lines
    assert "* max_steps 7 HANDWORK_LIMITS_MAX_STEPS" in lines
    assert "backend auto default" in lines
    assert "approve not set auto in a sandbox, ask without one" in lines
    assert "[mcp.servers.it]" in lines
    assert not any(secret in ended.out for secret in SECRETS)


async def test_a_servers_entry_is_shown_as_it_is_written(user: Path, tmp_path: Path) -> None:
    (user / "mcp.json").write_text(
        json.dumps(
            {
                "mcpServers": {
                    "a": {"command": "x", "args": ["--key=${MY_OWN}", "${workspaceFolder}"], "env": {"K": "${MY_OWN}"}},
                    "b": {"url": "https://x.example/${MY_OWN}", "headers": {"H": "Bearer ${MY_OWN}"}},
                }
            }
        )
    )
    for arguments in ((), ("--json",)):
        ended = await handwork("config", "show", *arguments, cwd=tmp_path, MY_OWN="quite-a-secret")
        assert ended.code == 0
        assert "quite-a-secret" not in ended.out
        assert ended.out.count("${MY_OWN}") == 3
        assert "${workspaceFolder}" in ended.out


async def test_as_json_it_is_one_object(user: Path, tmp_path: Path) -> None:
    ended = await handwork("config", "show", "--json", cwd=tmp_path, HANDWORK_SANDBOX_NETWORK="1")
    shown = json.loads(ended.out)
    assert shown["files"] == [str(user / "config.toml"), str(user / "mcp.json")]
    assert shown["unread"] == []
    assert shown["tables"]["llm"]["model"] == {
        "value": "openai:some-model",
        "differs": True,
        "from": "file",
        "place": f"{user / 'config.toml'}, line 3",
        "file": str(user / "config.toml"),
        "line": 3,
        "note": None,
    }
    assert shown["tables"]["llm.swe"]["model"]["line"] == 3
    assert shown["tables"]["sandbox"]["network"]["from"] == "environment"
    assert shown["tables"]["llm"]["timeout"]["from"] == "default"
    assert shown["tables"]["llm.swe"]["api_key"]["note"] == "env:MY_SECRET is not set"
    assert not any("MCP servers" in notice for notice in shown["notices"])
    assert not any(secret in ended.out for secret in SECRETS)


async def test_a_key_behind_env_by_mistake_is_not_shown(home: Path, tmp_path: Path) -> None:
    key = "env:sk-proj-abcdefghijklmnop9999"
    for given in ([], ["--json"]):
        ended = await handwork("config", "show", *given, cwd=tmp_path, HANDWORK_API_KEY=key)
        assert ended.code == 0
        assert "abcdefghijkl" not in ended.out + ended.err


async def test_a_key_in_the_provider_s_own_variable_is_shown_where_it_is_used(home: Path, tmp_path: Path) -> None:
    key, model = "sk-abcdefghijklmnop9999", "openai:m"
    ended = await handwork("config", "show", cwd=tmp_path, OPENAI_API_KEY=key, HANDWORK_MODEL=model)
    assert "* api_key sk-…9999 OPENAI_API_KEY" in [" ".join(line.split()) for line in ended.out.splitlines()]
    address = "http://127.0.0.1:9/v1"
    elsewhere = await handwork(
        *("config", "show"), cwd=tmp_path, OPENAI_API_KEY=key, HANDWORK_MODEL=model, HANDWORK_BASE_URL=address
    )
    assert "9999" not in elsewhere.out


async def test_a_key_that_setup_stored_is_shown_where_it_is_used(home: Path, tmp_path: Path) -> None:
    KeyStore(home).set("mistral", "abcdefghijklmnopqrst7777", base_url="https://api.mistral.ai/v1")
    ended = await handwork("config", "show", cwd=tmp_path, HANDWORK_MODEL="mistral:m")
    rows = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert "* api_key …7777 stored by handwork setup" in rows
    (home / "keys.json").write_text("{")
    damaged = await handwork("config", "show", cwd=tmp_path, HANDWORK_MODEL="mistral:m")
    assert damaged.code == 0
    assert "keys.json" in damaged.out
    other = await handwork("config", "show", cwd=tmp_path, HANDWORK_MODEL="openai:m")
    assert "7777" not in other.out


async def test_without_any_configuration_it_says_that_all_are_defaults(home: Path, tmp_path: Path) -> None:
    ended = await handwork("config", "show", cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    row = " ".join(next(line for line in ended.out.splitlines() if "max_steps" in line).split())
    assert row == f"max_steps not set each agent's own, as manus has {Manus.max_steps}"
    assert "none: all settings are defaults" in ended.out
    assert "*" not in ended.out


async def test_a_broken_configuration_is_an_error_with_what_to_do(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "broken.toml"
    file.write_text("[llm]\nmodle = 1")
    ended = await handwork("config", "show", "--config", str(file), cwd=tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert f"{file}, line 2: unknown key [llm] modle\n" in ended.err
    assert "did you mean model?" in ended.err


async def test_what_a_value_holds_does_not_act_on_the_terminal(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "odd.toml"
    file.write_text('[llm]\nmodel = "a\\u001b[2Jb\\nc"\n["llm"."x\\u001b[31m"]\nmax_tokens = 1')
    ended = await handwork("config", "show", "--config", str(file), cwd=tmp_path)
    assert ended.code == 0
    assert "\x1b" not in ended.out
    assert " ab c " in ended.out


@pytest.mark.parametrize("columns", [80, 200])
async def test_on_a_terminal_no_row_is_broken_and_what_was_set_stands_out(
    user: Path, tmp_path: Path, columns: int
) -> None:
    long = "--a-very-long-argument," * 20
    terminal = await Terminal.run(
        *("config", "show"), cwd=tmp_path, columns=columns, HANDWORK_BROWSER_EXTRA_CHROMIUM_ARGS=long
    )
    assert await terminal.end() == 0
    tables = terminal.plain[terminal.plain.index("[llm]") : terminal.plain.index("·")]
    assert all(len(line) <= columns for line in tables.splitlines())
    assert "HANDWORK_BROWSER_EXTRA" in tables
    rows = terminal.seen.splitlines()
    assert any("\x1b[2m" in row and "max_tokens" in row for row in rows)
    assert not any("\x1b[2m" in row and "some-model" in row for row in rows)


async def test_whoever_has_no_model_is_told_of_the_file_that_lies_right_there(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "config" / "config.toml"
    file.parent.mkdir()
    file.write_text('[llm]\nmodel = "openai:x"')
    ended = await handwork("run", "Do it", cwd=tmp_path)
    assert ended.code == 2
    assert f"give --config {file}, which is not read by itself; or run `handwork setup`" in ended.err
    terminal = await Terminal.run("run", "Do it", cwd=tmp_path, columns=200)
    await terminal.expect("[s]how the files: ")
    terminal.type("n\n")
    await terminal.expect("is not read by itself; to use it, say n and give --config")
    await terminal.expect("Set one up now? [Y/n]")
    terminal.type("n\n")
    assert await terminal.end() == 2
