"""Which model an agent uses where it was given none: its own table's, or the first that is found; and its key is never shown."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from handwork import Manus, SWEAgent, ToolCallAgent
from handwork.agent.base import BaseAgent
from handwork.config import LLMSettings, Settings, load_settings
from handwork.config.keys import KeyStore
from handwork.errors import NoModelError
from handwork.events import Notice, RunStarted
from handwork.llm.detect import find_servers
from handwork.schema import Status
from handwork.tool.function import tool
from tests.agent.conftest import Seen
from tests.support.fault_server import Answer, FaultServer, Received, json_answer, stream_of
from tests.support.strict_server import StrictServer
from tests.support.strict_server import tool as call

KEY = "sk-proj-" + "a1B2" * 10


def ollama(received: Received) -> Answer:
    if received.method == "GET":
        return json_answer({"object": "list", "data": [{"id": "qwen3:8b"}]})
    return stream_of("Done.")


async def test_a_table_of_its_own_is_used_by_that_agent_and_by_no_other(settings: Settings) -> None:
    async with FaultServer(lambda _: stream_of("a")) as plain, FaultServer(lambda _: stream_of("b")) as other:
        tables = {
            "default": LLMSettings(model="plain", base_url=plain.url, temperature=0.1),
            "swe": LLMSettings(model="coder", base_url=other.url, temperature=0.9),
        }
        own = settings.model_copy(update={"llm": tables})
        for _ in range(2):
            assert str(await Manus(settings=own).run("x")) == "Step 1: a"
            assert str(await SWEAgent(settings=own).run("x")) == "Step 1: b"
    assert {(each.json["model"], each.json["temperature"]) for each in plain.requests} == {("plain", 0.1)}
    assert {(each.json["model"], each.json["temperature"]) for each in other.requests} == {("coder", 0.9)}


async def test_an_agent_with_nothing_configured_takes_what_is_found_and_its_first_event_names_it(
    settings: Settings, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FaultServer(ollama) as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
        result = await Manus().run("x", listener=seen)
    assert result.output == "Done."
    (started,) = (event for event in seen if isinstance(event, RunStarted))
    assert started.model == "ollama:qwen3:8b"
    told = [event.text for event in seen if isinstance(event, Notice)]
    assert [text for text in told if text.startswith("Model: ")] == [
        f"Model: ollama:qwen3:8b (Ollama runs here, at {server.url.removesuffix('/v1')})"
    ]


async def test_without_any_model_the_run_ends_in_a_typed_error_that_names_the_ways_on(
    settings: Settings, seen: Seen
) -> None:
    agent: BaseAgent = Manus()
    result = await agent.run("x", listener=seen)
    assert result.status is Status.ERROR
    assert isinstance(result.error, NoModelError)
    assert "ANTHROPIC_API_KEY" in result.error.hint
    assert seen.types()[0] == "run_started"
    assert seen.types()[-1] == "run_finished"


async def test_a_stored_key_is_masked_in_events_journal_and_the_next_request(
    settings: Settings, seen: Seen, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @tool
    def leak() -> str:
        """Say what must not be said."""
        return f"the key is {KEY}"

    script = [call("leak"), "Done."]
    async with StrictServer(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        load_settings().keys.set("openai", KEY, base_url=server.url)
        result = await ToolCallAgent(available_tools=[leak]).run("x", listener=seen)
        assert result.output == "Done."
        assert KEY not in json.dumps(server.requests)
        assert "the key is ***" in json.dumps(server.requests[-1])
    assert not any(KEY in event.model_dump_json() for event in seen)
    assert not stored_in(home)


async def test_a_stored_key_that_nobody_uses_is_masked_all_the_same(settings: Settings) -> None:
    @tool
    def leak() -> str:
        """Say what must not be said."""
        return f"the key is {KEY}"

    KeyStore(settings.home.config).set("groq", KEY, base_url="https://api.groq.com/openai/v1")  # in another process
    async with StrictServer([call("leak"), "Done."]) as server:
        table = LLMSettings(model="m", base_url=server.url, api_key="of-its-own")
        own = settings.model_copy(update={"llm": {"default": table}})
        await ToolCallAgent(available_tools=[leak], settings=own).run("x")
        assert "the key is ***" in json.dumps(server.requests[-1])


async def test_a_stored_key_in_what_the_human_says_reaches_neither_journal_nor_request(
    settings: Settings, seen: Seen, home: Path
) -> None:
    def steer() -> str:
        """Have the human speak meanwhile."""
        agent.steer(f"and this: {KEY}")
        return "ok"

    KeyStore(settings.home.config).set("groq", KEY, base_url="https://api.groq.com/openai/v1")
    async with StrictServer([call("steer"), "Done."]) as server:
        table = LLMSettings(model="m", base_url=server.url, api_key="of-its-own")
        own = settings.model_copy(update={"llm": {"default": table}})
        agent = ToolCallAgent(available_tools=[steer], settings=own)
        await agent.run(f"read {KEY}", listener=seen)
        told = json.dumps(server.requests[-1])
    assert "read ***" in told
    assert "and this: ***" in told
    assert KEY not in told
    assert not any(KEY in event.model_dump_json() for event in seen)
    assert not stored_in(home)
    assert any("One of your keys" in event.text for event in seen.of("notice"))


def stored_in(home: Path) -> bool:
    return any(KEY.encode() in file.read_bytes() for file in home.glob("store.db*"))


@pytest.mark.parametrize("direct", [False, True], ids=["run", "think and act"])
async def test_a_key_that_only_the_keyring_knows_is_masked_as_soon_as_it_is_used(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, direct: bool
) -> None:
    import keyring

    from tests.config.test_keys import InMemory

    @tool
    def leak() -> str:
        """Say what must not be said."""
        return f"the key is {KEY}"

    before = keyring.get_keyring()
    keyring.set_keyring(InMemory())
    try:
        async with StrictServer([call("leak"), "Done."]) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            load_settings().keys.set("openai", KEY, base_url=server.url)
            async with ToolCallAgent(available_tools=[leak]) as agent:
                agent.update_memory("user", "x")
                if direct:
                    for _ in range(2):
                        await agent.think()
                        await agent.act()
                else:
                    await agent.run()
            assert "the key is ***" in json.dumps(server.requests[-1])
    finally:
        keyring.set_keyring(before)
    assert not stored_in(settings.home.data)


def test_no_server_of_the_machine_is_found_by_tests() -> None:
    assert {server.state for server in find_servers(os.environ)} == {"silent"}


async def test_mended_permissions_of_the_stored_keys_are_told_in_the_run(settings: Settings, seen: Seen) -> None:
    store = KeyStore(settings.home.config)
    store.set("groq", KEY, base_url="https://api.groq.com/openai/v1")
    store.path.chmod(0o644)
    async with FaultServer(lambda _: stream_of("Done.")) as server:
        table = LLMSettings(model="m", base_url=server.url, api_key="of-its-own")
        own = Settings(llm={"default": table})
        await ToolCallAgent(settings=own).run("x", listener=seen)
    told = [event.text for event in seen if isinstance(event, Notice)]
    assert [text for text in told if "could be read by others" in text] == told
    assert len(told) == 1
