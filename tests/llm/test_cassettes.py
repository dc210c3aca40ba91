"""Recorded traffic of real providers, replayed: we send what was recorded, and read what came."""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Iterator
from dataclasses import replace
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from handwork.config import LLMSettings
from handwork.errors import BadRequestError, HandworkError, ModelError, ModelNotFoundError, RateLimitError
from handwork.llm.asking import close_model, reply_of
from handwork.llm.build import build_model
from handwork.llm.chat_stream import ChatStream
from handwork.llm.chat_thinking import ThinkingParts
from handwork.llm.llm import to_message
from handwork.llm.openai_chat import ChatEncoder
from handwork.llm.providers import PROVIDERS, options_for
from handwork.schema import Message, Reply, Request, TextDelta, ThinkingDelta, ToolChoice

CASSETTES = Path(__file__).parents[3] / "shared" / "cassettes"
FAILURES: dict[str, dict[int, type[HandworkError]]] = {
    "error-404": {0: ModelNotFoundError},
    "error-400": {0: BadRequestError},
    "error-429": {0: RateLimitError, 1: RateLimitError, 2: RateLimitError},
    "error-in-stream": {0: BadRequestError},
    "error-in-stream-tool": {0: BadRequestError},
    "error-400-tool": {0: BadRequestError},
}
OURS = "stream,stream_options,n,temperature,top_p,max_tokens,max_completion_tokens"
NOT_SENT = "tools,tools.*,response_format,reasoning,prompt_cache_key,prompt_cache_options"
"""Differences that are meant: we always stream and sort the tools; some settings of the recording are none of ours."""
NAMES = {
    "api.openai.com": "openai",
    "openrouter.ai": "openrouter",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "generativelanguage.googleapis.com": "google",
    "api.mistral.ai": "mistral",
}


def cassettes() -> list[Path]:
    data = CASSETTES / "data"
    return sorted([*data.glob("openai-chat/*.yaml"), *data.glob("groq/*.yaml"), *data.glob("mistral/*.yaml")])


def load(path: Path) -> list[dict[str, Any]]:
    yaml = importlib.import_module("yaml")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    recorded: list[dict[str, Any]] = yaml.load(path.read_bytes(), loader)["interactions"]
    return recorded


@pytest.fixture(scope="session")
def replay() -> Any:
    spec = importlib.util.spec_from_file_location("replay", CASSETTES / "replay.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    class Quick(ThreadingHTTPServer):
        """Notices its shutdown at once and not after half a second."""

        def serve_forever(self, poll_interval: float = 0.01) -> None:
            super().serve_forever(poll_interval)

    vars(module)["ThreadingHTTPServer"] = Quick
    return module.Replay


def message_of(recorded: dict[str, Any]) -> Message:
    """A recorded message as ours; its reasoning as we would have read it."""
    content = recorded.get("content")
    if isinstance(content, list):
        content = [part for part in content if not str(part.get("image_url", "")).startswith("{'url': 'http")]
    thinking = ThinkingParts()
    thinking.add(recorded)
    return replace(to_message(recorded | {"content": content}), thinking=thinking.finish())


def request_of(recorded: dict[str, Any]) -> Request:
    return Request(
        [message_of(message) for message in recorded["messages"]],
        tools=tuple(recorded.get("tools", ())),
        tool_choice=ToolChoice(recorded.get("tool_choice", "auto")),
    )


def expected_of(response: dict[str, Any]) -> tuple[str, str, list[tuple[str, str]]]:
    """(text, thinking, calls) of a recorded answer, read the plainest way."""
    body = response.get("parsed_body")
    if body is not None:
        messages = [body["choices"][0]["message"]]
    else:
        lines = [line[6:] for line in response["body"]["string"].splitlines() if line.startswith("data: {")]
        messages = [chunk["choices"][0]["delta"] for line in lines if (chunk := json.loads(line)).get("choices")]
    text, thinking = "", ""
    calls: dict[int, list[str]] = {}
    for message in messages:
        content = message.get("content") or ""
        parts: list[dict[str, Any]] = content if isinstance(content, list) else [{"text": content}]
        for part in parts:
            text += part.get("text", "")
            thinking += "".join(inner["text"] for inner in part.get("thinking", ()))
        thinking += message.get("reasoning_content") or message.get("reasoning") or ""
        for place, call in enumerate(message.get("tool_calls") or ()):
            slot = calls.setdefault(call.get("index", place), ["", ""])
            slot[0] += call["function"].get("name") or ""
            slot[1] += call["function"].get("arguments") or ""
    return text, thinking, [(name, arguments) for name, arguments in calls.values()]


def settings_for(uri: str, model: str, url: str) -> LLMSettings:
    host = uri.split("/")[2]
    path = uri.split(host)[1].split("?")[0].split("#")[0].removesuffix("/chat/completions")
    name = f"{NAMES[host]}:{model}" if host in NAMES else model
    return LLMSettings(model=name, base_url=url + path, api_key="any-key-1234", retries=0)


def ignored(interactions: list[dict[str, Any]]) -> Iterator[str]:
    """Where the recording holds what our messages cannot: addresses of images, cache marks, another client's own ids."""
    yield from (OURS, NOT_SENT)
    for interaction in interactions:
        for place, message in enumerate(interaction["request"]["parsed_body"]["messages"]):
            content = message.get("content")
            if isinstance(content, list) and ("http" in str(content) or "cache" in str(content)):
                yield f"messages.{place}.content*"
            if message["role"] == "developer":  # OpenAI's later name of system
                yield f"messages.{place}.role"
            if message["role"] == "assistant" and not message.get("reasoning_content"):
                yield f"messages.{place}.reasoning_content"


@pytest.mark.parametrize("chunk", [97, 65536])
@pytest.mark.parametrize("path", cassettes(), ids=lambda path: f"{path.parent.name}-{path.stem}")
async def test_recorded_traffic_is_sent_and_read_as_it_was(path: Path, chunk: int, replay: Any) -> None:
    interactions = load(path)
    with replay(path, chunk=chunk, ignore=",".join(ignored(interactions))) as server:
        for number, interaction in enumerate(interactions):
            recorded, response = interaction["request"], interaction["response"]
            model = build_model(settings_for(recorded["uri"], recorded["parsed_body"]["model"], server.url), {})
            request = request_of(recorded["parsed_body"])
            failure = FAILURES.get(path.stem, {}).get(number)
            if failure:
                with pytest.raises(failure) as caught:
                    await reply_of(model, request)
                assert type(caught.value) is failure
                assert isinstance(caught.value, ModelError)
            else:
                await check(model, request, response)
            await close_model(model)
    assert list(server.problems()) == []


async def check(model: Any, request: Request, response: dict[str, Any]) -> None:
    items = [item async for item in model.stream(request)]
    text, thinking, calls = expected_of(response)
    reply = items[-1]
    assert isinstance(reply, Reply)
    assert (reply.content or "") == text
    assert [(call.function.name, call.function.arguments) for call in reply.tool_calls] == calls
    if thinking and reply.thinking and len(reply.thinking) == 1:
        assert reply.thinking[0].text == thinking
    assert reply.usage is not None
    assert reply.usage.input > 0
    if len(items) > 1:
        assert "".join(item.text for item in items if isinstance(item, TextDelta)) == text
        assert "".join(item.text for item in items if isinstance(item, ThinkingDelta)) == thinking


def sent_back(response: dict[str, Any], provider: str) -> dict[str, Any]:
    """The recorded answer, read by us and written into the next request."""
    body = response["parsed_body"] if response.get("parsed_body") else None
    decoder = ChatStream()
    decoder.feed(json.dumps(body).encode() if body else response["body"]["string"].encode())
    request = Request([decoder.finish().to_message()])
    wire = json.loads(ChatEncoder(options_for(PROVIDERS[provider], "m", None, None)).encode(request).data)
    message: dict[str, Any] = wire["messages"][0]
    return message


def test_reasoning_content_goes_back_byte_for_byte() -> None:
    for name in ("reasoning-stream-deepseek", "reasoning-tools-deepseek"):
        for interaction in load(CASSETTES / "data" / "openai-chat" / f"{name}.yaml"):
            response = interaction["response"]
            assert sent_back(response, "deepseek")["reasoning_content"] == expected_of(response)[1]
            assert "reasoning_content" not in sent_back(response, "openai")


def test_reasoning_details_go_back_byte_for_byte() -> None:
    whole = load(CASSETTES / "data" / "openai-chat" / "reasoning-two-turns-openrouter.yaml")[1]["response"]
    message = whole["parsed_body"]["choices"][0]["message"]
    assert sent_back(whole, "openrouter")["reasoning_details"] == message["reasoning_details"]
    streamed = load(CASSETTES / "data" / "openai-chat" / "reasoning-stream-openrouter.yaml")[0]["response"]
    (detail,) = sent_back(streamed, "openrouter")["reasoning_details"]
    assert detail["text"] == expected_of(streamed)[1]
    assert detail["signature"] in streamed["body"]["string"]
    assert len(detail["signature"]) > 100
    assert (detail["type"], detail["format"], detail["index"]) == ("reasoning.text", "anthropic-claude-v1", 0)


def test_signatures_of_thoughts_go_back_byte_for_byte() -> None:
    response = load(CASSETTES / "data" / "openai-chat" / "tool-no-id.yaml")[0]["response"]
    message = response["parsed_body"]["choices"][0]["message"]
    assert sent_back(response, "google")["extra_content"] == message["extra_content"]
