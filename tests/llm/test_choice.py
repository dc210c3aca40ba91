"""Which model is taken where none is named: one order, one line that says which and why, and no key at the wrong door."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handwork.config import Home, LLMSettings, Settings
from handwork.config.providers import PROVIDERS
from handwork.errors import AuthenticationError, ConfigError, NoModelError
from handwork.llm.choice import choose, survey
from handwork.llm.llm import LLM
from handwork.llm.local.catalog import SMOLLM2_135M
from handwork.schema import Message
from tests.support.fault_server import Answer, Fault, FaultServer, Received, error_answer, json_answer, stream_of

OPENAI = "sk-proj-" + "a1B2" * 10
ANTHROPIC = "sk-ant-api03-" + "a1B2" * 10


def with_models(*names: str) -> FaultServer:
    """A server that has these models, and answers what they are asked with `ready`."""

    def script(received: Received) -> Answer:
        if received.method == "POST":
            return stream_of("ready")
        if received.path.partition("?")[0] == "/v1/models":
            return json_answer({"object": "list", "data": [{"id": name} for name in names]})
        return error_answer(404)

    return FaultServer(script)


@pytest.fixture
async def ollama() -> AsyncIterator[FaultServer]:
    async with with_models("nomic-embed-text", "qwen3:8b") as server:
        yield server


def settings(table: LLMSettings | None = None, **environ: str) -> Settings:
    return Settings(llm={"default": table or LLMSettings()}, environ={**os.environ, **environ})


async def chosen(settings: Settings) -> tuple[str, str]:
    found = await asyncio.to_thread(choose, settings, settings.llm["default"])
    return found.model, found.why


def fetched(home: Path) -> Path:
    path = Home.from_environ({"HANDWORK_HOME": str(home)}).models / SMOLLM2_135M.file
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    return path


# ---- the order


async def test_a_key_in_the_environment_comes_first_then_stored_ones_then_servers_then_what_was_fetched(
    ollama: FaultServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)  # xllamacpp is installed
    path = fetched(home)
    runs = {"OLLAMA_BASE_URL": ollama.url}
    settings(**runs).keys.set(
        "groq", "gsk_" + "a1B2" * 10, base_url="https://api.groq.com/openai/v1", model="its-model"
    )
    assert await chosen(settings(GROQ_API_KEY="x" * 20, OPENAI_API_KEY=OPENAI, **runs)) == (
        "openai:gpt-5.4",
        "OPENAI_API_KEY is set",
    )
    assert await chosen(settings(**runs)) == ("groq:its-model", "its key is stored")
    settings().keys.delete("groq")
    where = ollama.url.removesuffix("/v1")
    assert await chosen(settings(**runs)) == ("ollama:qwen3:8b", f"Ollama runs here, at {where}")
    assert (await chosen(settings()))[0] == "local:smollm2-135m"
    path.unlink()
    with pytest.raises(NoModelError):
        await chosen(settings())


@pytest.mark.parametrize(
    ("variable", "provider"),
    [
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("GEMINI_API_KEY", "google"),
        ("GOOGLE_API_KEY", "google"),
        ("XAI_API_KEY", "xai"),
        ("ZHIPUAI_API_KEY", "zhipu"),
        ("ZAI_API_KEY", "zai"),
        ("SILICONFLOW_API_KEY", "siliconflow"),
        ("JIEKOU_API_KEY", "jiekou"),
    ],
)
async def test_every_providers_variable_is_enough(variable: str, provider: str) -> None:
    model, why = await chosen(settings(**{variable: "k" * 30}))
    assert model.startswith(f"{provider}:")
    assert why == f"{variable} is set"


async def test_an_empty_variable_is_not_set() -> None:
    with pytest.raises(NoModelError):
        await chosen(settings(OPENAI_API_KEY="  ", ANTHROPIC_API_KEY=""))


async def test_the_newest_stored_key_counts() -> None:
    keys = settings().keys
    keys.set("openai", OPENAI, base_url="https://api.openai.com/v1")
    keys.set("anthropic", ANTHROPIC, base_url="https://api.anthropic.com")
    assert (await chosen(settings()))[0].startswith("anthropic:")
    keys.set("openai", OPENAI, base_url="https://api.openai.com/v1", model="another")
    assert (await chosen(settings()))[0] == "openai:another"


async def test_a_stored_key_goes_on_working_at_its_address_when_the_variable_that_named_it_is_gone(
    ollama: FaultServer,
) -> None:
    settings().keys.set("openai", OPENAI, base_url=ollama.url, model="its-model")
    told: list[str] = []
    llm = LLM(settings=settings(), notify=lambda _, text: told.append(text))
    assert await llm.ask([Message.user_message("x")]) == "ready"
    await llm.aclose()
    assert ollama.requests[-1].headers["authorization"] == f"Bearer {OPENAI}"
    assert told == [f"Model: openai:its-model at {ollama.url} (its key is stored for that address)"]


async def test_a_stored_key_stays_at_its_address_when_a_variable_moves_its_provider_and_that_is_said() -> None:
    settings().keys.set("openai", OPENAI, base_url="https://api.openai.com/v1", model="its-model")
    moved = settings(OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    found = (await asyncio.to_thread(survey, moved)).winner
    assert found is not None
    assert found == await asyncio.to_thread(choose, moved, moved.llm["default"])
    assert found.notice() == (
        "Model: openai:its-model at https://api.openai.com/v1 "
        "(its key is stored for that address; OPENAI_BASE_URL names another address)"
    )


async def test_a_stored_key_of_an_unknown_provider_is_said_and_is_no_model() -> None:
    settings().keys.set("a-provider-of-old", OPENAI, base_url="https://old.example/v1", model="m")
    found = await asyncio.to_thread(survey, settings())
    assert found.stored == ()
    assert "a-provider-of-old" in found.idle[0]


async def test_a_damaged_file_of_keys_stops_only_who_needs_it(home: Path) -> None:
    (home / "keys.json").write_text("{")
    assert (await chosen(settings(OPENAI_API_KEY=OPENAI)))[0] == "openai:gpt-5.4"
    with pytest.raises(ConfigError, match=r"keys\.json"):
        await chosen(settings())
    assert "keys.json" in (await asyncio.to_thread(survey, settings())).problem


# ---- nothing found


async def test_nothing_found_names_the_variables_and_the_ways_on() -> None:
    with pytest.raises(NoModelError) as caught:
        await chosen(settings())
    for word in ("handwork setup", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "--model", "--base-url", "model fetch"):
        assert word in caught.value.hint


async def test_a_server_without_models_is_said() -> None:
    async with with_models() as empty:
        with pytest.raises(NoModelError, match="Ollama runs at .* has no model"):
            await chosen(settings(OLLAMA_BASE_URL=empty.url))


# ---- half a table


async def test_a_base_url_without_a_model_is_asked_for_its_models(ollama: FaultServer) -> None:
    half = settings(LLMSettings(base_url=ollama.url))
    found = await asyncio.to_thread(choose, half, half.llm["default"])
    assert found.notice() == f"Model: qwen3:8b at {ollama.url} (one of 2 there)"
    async with with_models("bge-m3") as other:
        with pytest.raises(NoModelError, match="no model that chats"):
            await chosen(settings(LLMSettings(base_url=other.url)))


async def test_a_configured_key_without_a_model_goes_to_nobody_but_its_own_provider() -> None:
    table = LLMSettings(api_key=ANTHROPIC)
    assert (await chosen(settings(table, OPENAI_API_KEY=OPENAI)))[0].startswith("anthropic:")
    for unknown in (LLMSettings(api_key="house-made-token-1"), LLMSettings(headers={"X-Key": "secret"})):
        with pytest.raises(NoModelError, match="no model is named"):
            await chosen(settings(unknown, OPENAI_API_KEY=OPENAI))


# ---- in an LLM


async def test_an_llm_takes_what_is_found_and_says_so_once(ollama: FaultServer) -> None:
    told: list[tuple[str, str]] = []
    llm = LLM(settings=settings(OLLAMA_BASE_URL=ollama.url), notify=lambda level, text: told.append((level, text)))
    assert llm.name == ""
    await llm.ready()
    await llm.ready()
    assert llm.name == "ollama:qwen3:8b"
    assert await llm.ask([Message.user_message("x")]) == "ready"
    await llm.aclose()
    assert told == [("info", f"Model: ollama:qwen3:8b (Ollama runs here, at {ollama.url.removesuffix('/v1')})")]


async def test_nothing_is_looked_for_and_nothing_said_where_a_model_is_configured(
    ollama: FaultServer, home: Path
) -> None:
    told: list[str] = []
    (home / "keys.json").write_text("{")  # whoever read it would fail
    table = LLMSettings(model="m", base_url=ollama.url, api_key="its-own-key")
    found = settings(table, OLLAMA_BASE_URL=ollama.url)
    llm = LLM(settings=found, notify=lambda _, text: told.append(text))
    assert await llm.ask([Message.user_message("x")]) == "ready"
    await llm.aclose()
    assert [request.method for request in ollama.requests] == ["POST"]
    assert told == []


async def test_a_table_with_only_a_temperature_has_the_model_that_was_found(ollama: FaultServer) -> None:
    found = Settings(
        llm={"default": LLMSettings(), "swe": LLMSettings(temperature=0.5)},
        environ={**os.environ, "OLLAMA_BASE_URL": ollama.url},
    )
    llm = LLM("swe", found)
    await llm.ask([Message.user_message("x")])
    await llm.aclose()
    body = ollama.requests[-1].json
    assert (body["model"], body["temperature"]) == ("qwen3:8b", 0.5)


async def test_a_stored_key_serves_a_model_that_was_named_and_goes_to_its_place_only(ollama: FaultServer) -> None:
    found = settings(OPENAI_BASE_URL=ollama.url)
    found.keys.set("openai", OPENAI, base_url=ollama.url)
    llm = LLM(settings=found, model="openai:named")
    await llm.ask([Message.user_message("x")])
    await llm.aclose()
    assert ollama.requests[-1].headers["authorization"] == f"Bearer {OPENAI}"
    assert OPENAI in llm.secrets
    with pytest.raises(
        NoModelError, match=f"openai:named needs a key, and the stored one is for {ollama.url}"
    ) as error:
        await LLM(settings=settings(), model="openai:named").ready()
    assert f"--base-url {ollama.url}" in error.value.hint
    async with with_models("m") as other:
        elsewhere = LLM(settings=settings(LLMSettings(model="m", base_url=other.url)))
        await elsewhere.ask([Message.user_message("x")])
        await elsewhere.aclose()
        assert "authorization" not in other.requests[-1].headers


async def test_the_environments_key_goes_over_the_stored_one(ollama: FaultServer) -> None:
    found = settings(OPENAI_BASE_URL=ollama.url, OPENAI_API_KEY="sk-of-the-environment")
    found.keys.set("openai", OPENAI, base_url=ollama.url)
    llm = LLM(settings=found, model="openai:named")
    await llm.ask([Message.user_message("x")])
    await llm.aclose()
    assert ollama.requests[-1].headers["authorization"] == "Bearer sk-of-the-environment"


@pytest.mark.parametrize(
    ("environ", "stored", "words"),
    [({"OPENAI_API_KEY": OPENAI}, False, "check OPENAI_API_KEY"), ({}, True, "run `handwork setup` and paste another")],
)
async def test_a_refused_key_is_told_by_where_it_came_from(environ: dict[str, str], stored: bool, words: str) -> None:
    async with FaultServer(lambda _: error_answer(401, "no")) as server:
        found = settings(OPENAI_BASE_URL=server.url, **environ)
        if stored:
            found.keys.set("openai", OPENAI, base_url=server.url)
        llm = LLM(settings=found)
        with pytest.raises(AuthenticationError) as caught:
            await llm.ask([Message.user_message("x")])
        await llm.aclose()
    assert words in caught.value.hint
    assert "https://platform.openai.com/api-keys" in caught.value.hint


async def test_a_survey_and_the_choice_agree_about_half_a_table(ollama: FaultServer) -> None:
    half = settings(LLMSettings(base_url=ollama.url), OPENAI_API_KEY=OPENAI)
    found = await asyncio.to_thread(survey, half)
    assert found.winner is not None
    assert found.winner.model == (await chosen(half))[0] == "qwen3:8b"
    unknown = settings(LLMSettings(api_key="house-made-token-1"), OPENAI_API_KEY=OPENAI)
    found = await asyncio.to_thread(survey, unknown)
    assert found.winner is None
    assert "no model is named" in found.unfinished


@pytest.mark.parametrize("name", ["anthropic", "openai", "google"])
async def test_a_providers_own_address_without_a_model_means_its_default_and_its_own_variable(name: str) -> None:
    provider = PROVIDERS[name]
    half = settings(LLMSettings(base_url=provider.base_url), **{provider.key_variables[0]: "key-1234567890"})
    model = f"{name}:{provider.default_model}"
    found = await asyncio.to_thread(survey, half)  # and nobody is asked: there is no network here
    assert found.winner is not None
    assert (found.winner.model, (await chosen(half))[0]) == (model, model)


async def test_where_a_model_was_found_is_told_without_the_password_in_its_address(ollama: FaultServer) -> None:
    address = f"{ollama.url}?key=SECRET-in-the-query"
    half = settings(LLMSettings(base_url=address))
    told = (await asyncio.to_thread(choose, half, half.llm["default"])).notice()
    assert "127.0.0.1" in told
    assert "SECRET" not in told


async def test_whoever_gives_up_waiting_for_a_mute_server_is_free_at_once() -> None:
    async with FaultServer([Answer(before=Fault.SILENCE)]) as server:
        llm = LLM(settings=settings(LLMSettings(base_url=server.url)))
        waiting = asyncio.create_task(llm.ready())
        await server.asked()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


async def test_two_first_requests_at_once_make_one_model(ollama: FaultServer) -> None:
    told: list[str] = []
    llm = LLM(settings=settings(OLLAMA_BASE_URL=ollama.url), notify=lambda _, text: told.append(text))
    await asyncio.gather(llm.ready(), llm.ready(), llm.ask([Message.user_message("x")]))
    await llm.aclose()
    assert len(told) == 1
