"""Model, keys and servers: nothing is sent without --online, no key is ever shown, and errors say what to do."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from tests.cli.doctor.conftest import MakeGround
from tests.support.fault_server import Answer, FaultServer, Received, error_answer, json_answer
from tests.support.strict_server import StrictServer

from handwork.cli.doctor import models
from handwork.cli.doctor.finding import Finding, Ground
from handwork.tool.threads import run_in_thread

KEY = "sk-proj-" + "abcdEFGH1234" * 4


def _by_id(found: Any) -> dict[str, Finding]:
    return {each.id: each for each in found}


async def _model(ground: Ground) -> dict[str, Finding]:
    return _by_id(await models.model(ground))


async def _keys(ground: Ground) -> dict[str, Finding]:
    return _by_id(await models.keys(ground))


_OTHER_MODEL = '[llm]\nmodel = "local:another-is-in-use"\n'


@contextmanager
def _nobody_listens() -> Iterator[dict[str, str]]:
    """Variables that send the look for local servers to ports on which nobody is."""
    with ExitStack() as held:
        found = {}
        for name in ("OLLAMA_BASE_URL", "LMSTUDIO_BASE_URL", "LLAMACPP_BASE_URL", "VLLM_BASE_URL"):
            taken = held.enter_context(socket.socket())
            taken.bind(("127.0.0.1", 0))
            found[name] = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        yield found


async def test_no_model_is_a_choice_to_be_made_and_no_failure(ground: MakeGround) -> None:
    with _nobody_listens() as environ:
        found = await _model(ground(**environ))
    assert (found["model"].status, found["model"].essential) == ("warning", False)
    assert "handwork setup" in found["model"].fix


async def test_a_configured_model_that_cannot_be_asked_is_a_failure(ground: MakeGround) -> None:
    found = await _model(ground(config='[llm]\nmodel = "openai:gpt-5.4"\n'))
    assert (found["model"].status, found["model"].essential) == ("problem", True)
    assert "OPENAI_API_KEY" in found["model"].fix


async def test_the_chosen_model_is_named_with_its_reason(ground: MakeGround) -> None:
    found = await _model(ground(OPENAI_API_KEY=KEY))
    assert found["model"].status == "ok"
    assert found["model"].text.startswith("openai:")
    assert "OPENAI_API_KEY is set" in found["model"].text


async def test_each_table_that_names_a_model_is_looked_at(ground: MakeGround) -> None:
    config = '[llm]\nmodel = "openai:gpt-5.4"\n[llm.swe]\nmodel = "deepseek:deepseek-flash"\n[llm.vision]\ntemperature = 0.5\n'
    found = await _model(ground(config=config, OPENAI_API_KEY=KEY))
    assert found["model.swe"].status == "problem"
    assert "DEEPSEEK_API_KEY" in found["model.swe"].fix


async def test_without_online_nothing_is_sent_and_with_it_each_key_gets_one_small_request(ground: MakeGround) -> None:
    async with StrictServer(lambda request: "ready") as server:
        environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
        await _model(ground(**environ))
        offline = await _keys(ground(**environ))
        assert server.server.connections == 0
        assert "--online" in offline["keys.untested"].text
        online = await _keys(ground(online=True, config=_OTHER_MODEL, **environ))
        assert [each.status for each in online.values()] == ["ok", "ok"]
        (request,) = server.requests
    assert request.get("max_completion_tokens", request.get("max_tokens")) <= 64
    assert not request.get("tools")
    assert KEY not in f"{offline}{online}"


async def test_the_model_in_use_is_asked_once_whatever_leads_to_it(ground: MakeGround) -> None:
    async with StrictServer(lambda request: "ready") as server:
        its = ground(online=True, OPENAI_API_KEY=KEY, OPENAI_BASE_URL=server.url)
        its.settings.keys.set("openai", KEY, base_url=server.url)
        found = [*(await models.model(its)), *(await models.keys(its))]
        assert len(server.requests) == 1
    assert [each.id for each in found] == ["model", "model.answers", "keys.openai", "keys.stored.openai"]


async def test_a_remote_server_that_a_variable_names_is_not_asked_without_online(
    ground: MakeGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def seen(environ: dict[str, str]) -> tuple[()]:
        asked.append(environ.get("OLLAMA_BASE_URL", ""))
        return ()

    monkeypatch.setattr(models, "find_servers", seen)
    for online in (False, True):
        list(models.servers(ground(online=online, OLLAMA_BASE_URL="http://ollama.example:11434/v1")))
    assert asked == ["", "http://ollama.example:11434/v1"]
    found = await _model(ground(config='[llm]\nbase_url = "https://models.example/v1"\n'))
    assert "only --online does" in found["model"].text


@pytest.mark.parametrize(
    ("status", "message", "found_status", "words"),
    [
        (401, "Incorrect API key", "problem", "key"),
        (403, "not allowed", "problem", "key"),
        (404, "no such model", "warning", "model"),
        (429, "slow down", "warning", "wait"),
        (500, "oops", "warning", "later"),
    ],
)
async def test_a_key_that_is_refused_is_told_with_what_to_do(
    status: int, message: str, found_status: str, words: str, ground: MakeGround
) -> None:
    async with FaultServer(lambda received: error_answer(status, message)) as server:
        environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
        found = await _keys(ground(online=True, config=_OTHER_MODEL, **environ))
        assert len(server.requests) == 1
    tested = next(each for id, each in found.items() if id.startswith("keys.openai:"))
    assert tested.status == found_status
    assert words in f"{tested.text} {tested.fix}"
    assert KEY not in str(found)


async def test_the_model_in_use_is_asked_with_online_and_its_refusal_is_a_failure(ground: MakeGround) -> None:
    async with FaultServer(lambda received: error_answer(401, "no")) as server:
        config = f'[llm]\nmodel = "any"\nbase_url = "{server.url}"\napi_key = "{KEY}"\n'
        found = await _model(ground(config=config, online=True))
    assert (found["model.answers"].status, found["model.answers"].essential) == ("problem", True)


@pytest.mark.parametrize(
    ("key", "words"),
    [(f" {KEY}", "space"), (f'"{KEY}"', "characters"), ("sk-ant-api03-" + "x1" * 40, "looks like a key of Anthropic")],
)
async def test_an_odd_key_is_told_without_a_letter_of_it(key: str, words: str, ground: MakeGround) -> None:
    found = await _keys(ground(OPENAI_API_KEY=key))
    assert found["keys.openai"].status == "warning"
    assert words in found["keys.openai"].text
    assert "OPENAI_API_KEY" in found["keys.openai"].fix
    assert key.strip(' "') not in str(found)


async def test_stored_keys_are_named_and_a_damaged_file_is_a_problem(ground: MakeGround) -> None:
    here = ground()
    here.settings.keys.set("openai", KEY, base_url="https://api.openai.com/v1")
    found = await _keys(ground())
    assert any("a key of openai is stored" in each.text for each in found.values())
    assert KEY not in str(found)
    here.settings.keys.path.write_text("{")
    damaged = (await _keys(ground()))["keys.stored"]
    assert damaged.status == "problem"
    assert "handwork setup" in damaged.fix


def _answers(models: list[str], status: int = 200) -> Any:
    def answer(_received: Received) -> Answer:
        if status != 200:
            return error_answer(status)
        return json_answer({"object": "list", "data": [{"id": name, "object": "model"} for name in models]})

    return answer


@pytest.mark.parametrize(
    ("names", "status", "found_status", "words"),
    [
        (["qwen3:8b", "nomic-embed-text"], 200, "ok", "with 2 models, such as qwen3:8b"),
        ([], 200, "warning", "has no model"),
        ([], 401, "warning", "wants a key"),
        ([], 404, "note", "no model server"),
    ],
)
async def test_local_servers_are_found(
    names: list[str], status: int, found_status: str, words: str, ground: MakeGround
) -> None:
    async with FaultServer(_answers(names, status)) as server:
        here = ground(OLLAMA_BASE_URL=server.url)
        found = _by_id(await run_in_thread(lambda: list(models.servers(here))))["servers.ollama"]
    assert found.status == found_status
    assert words in found.text
