"""LLM: which table it takes, when it is built, and its two questions."""

from __future__ import annotations

from typing import Any

import pytest

from handwork.config import LLMSettings, Settings
from handwork.errors import NoModelError
from handwork.llm.base import Model
from handwork.llm.llm import LLM
from handwork.llm.scripted import ScriptedModel, call
from handwork.schema import Message, Role, ToolChoice
from tests.support.fault_server import FaultServer, stream_of

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def settings(**llm: LLMSettings) -> Settings:
    return Settings(llm={"default": LLMSettings()} | llm)


def test_construction_needs_nothing_and_it_is_a_model() -> None:
    assert isinstance(LLM(), Model)
    assert LLM(settings=settings()).name == ""


async def test_a_missing_model_is_an_error_at_the_first_request() -> None:
    llm = LLM(settings=settings())
    with pytest.raises(NoModelError, match="OPENAI_API_KEY"):
        await llm.ask([{"role": "user", "content": "x"}])


async def test_the_named_table_goes_over_the_default_and_names_ignore_case() -> None:
    async with FaultServer([stream_of("a"), stream_of("b")]) as server:
        tables = settings(
            default=LLMSettings(model="plain", base_url=server.url),
            vision=LLMSettings(model="eyes", base_url=server.url),
        )
        assert await LLM("Vision", tables).ask([Message.user_message("x")]) == "a"
        assert await LLM("other", tables).ask([Message.user_message("x")]) == "b"
    assert [request.json["model"] for request in server.requests] == ["eyes", "plain"]


async def test_ask_returns_the_text_and_ask_tool_the_whole_reply() -> None:
    model = ScriptedModel(["text", [call("f", x=1)]])
    llm = LLM(model=model)
    assert (
        await llm.ask(
            [{"role": "user", "content": "x"}], [{"role": "system", "content": "be"}, Message.system_message("good")]
        )
        == "text"
    )
    reply = await llm.ask_tool([Message.user_message("x")], tools=[TOOL], tool_choice="required")
    assert reply.tool_calls[0].function.name == "f"
    first, second = model.requests
    assert (first.system, first.tool_choice) == ("be\n\ngood", ToolChoice.NONE)
    assert (second.system, second.tools, second.tool_choice) == (None, (TOOL,), ToolChoice.REQUIRED)
    assert llm.name == model.name


async def test_dicts_in_openais_and_openmanus_form_are_messages() -> None:
    model = ScriptedModel(["ok"])
    png = "iVBORw0KGgo="
    await LLM(model=model).ask(
        [
            {"role": "user", "content": "look", "base64_image": png},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "x"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}],
            },
            {"role": "tool", "content": "r", "tool_call_id": "c", "name": "f"},
        ]
    )
    first, second, third, fourth = model.requests[0].messages
    assert first.images == second.images
    assert second.content == "x"
    assert third.tool_calls[0].function.arguments == "{}"
    assert (fourth.role, fourth.tool_call_id) == (Role.TOOL, "c")


@pytest.mark.parametrize(
    "message",
    [{"content": "x"}, {"role": "robot", "content": "x"}, {"role": "user", "content": [{"type": "audio"}]}, 7],
)
async def test_a_message_that_makes_no_sense_is_a_value_error(message: Any) -> None:
    with pytest.raises(ValueError, match=r"role|part|Expected"):
        await LLM(model=ScriptedModel(["x"])).ask([message])


async def test_an_unknown_tool_choice_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="Invalid tool_choice: maybe"):
        await LLM(model=ScriptedModel(["x"])).ask_tool([Message.user_message("x")], tool_choice="maybe")


def test_two_llms_share_nothing() -> None:
    tables = settings(default=LLMSettings(model="m", base_url="http://127.0.0.1:9/v1"))
    assert LLM(settings=tables).model is not LLM(settings=tables).model


async def test_a_model_named_in_code_keeps_the_configured_address_but_not_another_providers_key() -> None:
    configured = LLMSettings(model="openai:gpt-5", base_url="http://proxy:1/v1", api_key="k1234")
    same = LLM(settings=settings(default=configured), model="openai:gpt-6")
    other = LLM(settings=settings(default=configured), model="deepseek:chat")
    found = [llm._llm_settings().settings for llm in (same, other)]
    assert [(given.base_url, given.api_key) for given in found] == [("http://proxy:1/v1", "k1234"), ("", "")]
    assert other.name == "deepseek:chat"


async def test_the_configuration_is_looked_up_when_no_settings_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FaultServer([stream_of("a")]) as server:
        monkeypatch.setenv("HANDWORK_MODEL", "m")
        monkeypatch.setenv("HANDWORK_BASE_URL", server.url)
        llm = LLM()
        assert await llm.ask([{"role": "user", "content": "x"}]) == "a"
        await llm.aclose()
