"""`handwork model list` and `model detect`: what is where, which one is used, and why."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.command import handwork
from tests.support.fault_server import Answer, FaultServer, Received, error_answer, json_answer

from handwork.config import load_settings

KEY = "sk-ant-api03-" + "a1B2" * 10


def ollama(received: Received) -> Answer:
    if received.path == "/v1/models":
        return json_answer({"object": "list", "data": [{"id": "qwen3:8b"}, {"id": "nomic-embed-text"}]})
    return error_answer(404)


async def test_detect_shows_every_place_in_order_and_which_one_wins(workspace: Path) -> None:
    load_settings().keys.set("anthropic", KEY, base_url="https://api.anthropic.com")
    async with FaultServer(ollama) as server, FaultServer(lambda _: error_answer(404)) as other:
        ended = await handwork(
            *("model", "detect"),
            cwd=workspace,
            GROQ_API_KEY="gsk_" + "a1B2" * 10,
            OLLAMA_BASE_URL=server.url,
            LLAMACPP_BASE_URL=other.url,
        )
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert [line[2:3] for line in lines[1:-1] if line[2:3] != " "] == ["1", "2", "3", "4", "5", "6"]
    for words in (
        "1  command line             --model and --base-url go over all that follows",
        "2  configuration            none",
        "groq:openai/gpt-oss-120b (GROQ_API_KEY is set)",
        "anthropic:claude-",
        "2 models, the best for an agent: qwen3:8b",
        "something answers that is no model server",
        "6  fetched local models     none",
    ):
        assert words in ended.out
    assert lines[-1] == "→ groq:openai/gpt-oss-120b is used: GROQ_API_KEY is set"
    assert KEY not in ended.out


async def test_detect_with_nothing_says_how_to_begin(workspace: Path) -> None:
    ended = await handwork("model", "detect", cwd=workspace)
    assert ended.code == 0
    assert ended.out.splitlines()[-1].startswith("→ No model is found. Type: ")


async def test_detect_tells_of_a_configured_model_and_of_a_key_for_another_address(home: Path, workspace: Path) -> None:
    (home / "setup.toml").write_text('[llm]\nmodel = "house"\nbase_url = "http://127.0.0.1:9/v1"\n')
    load_settings().keys.set("anthropic", KEY, base_url="https://elsewhere.example")
    ended = await handwork("model", "detect", cwd=workspace)
    assert "house at http://127.0.0.1:9/v1" in ended.out
    assert " at https://elsewhere.example (its key is stored for that address)" in ended.out
    assert ended.out.splitlines()[-1] == "→ house at http://127.0.0.1:9/v1 is used: chosen in `handwork setup`"


@pytest.mark.parametrize("command", ["detect", "list"])
async def test_a_damaged_file_of_keys_is_said_and_the_rest_is_shown(home: Path, workspace: Path, command: str) -> None:
    (home / "keys.json").write_text("[")
    ended = await handwork("model", command, cwd=workspace)
    assert ended.code == 0
    assert "keys.json" in ended.out


async def test_list_shows_providers_with_keys_and_the_models_of_servers(workspace: Path) -> None:
    load_settings().keys.set("anthropic", KEY, base_url="https://api.anthropic.com", model="claude-x")
    async with FaultServer(ollama) as server:
        ended = await handwork("model", "list", cwd=workspace, OLLAMA_BASE_URL=server.url, XAI_API_KEY="k" * 20)
    assert ended.code == 0
    for words in ("local:smollm2-135m", "xai:grok-", "XAI_API_KEY is set", "anthropic:claude-x", "ollama:qwen3:8b"):
        assert words in ended.out
