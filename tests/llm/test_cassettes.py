"""Recorded traffic of real providers, and small recordings of our own: we send what was sent, and read what came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from handwork.config import LLMSettings
from handwork.errors import (
    BadRequestError,
    HandworkError,
    ModelError,
    ModelNotFoundError,
    OverloadedError,
    RateLimitError,
)
from handwork.llm.anthropic.encoder import MessagesEncoder
from handwork.llm.anthropic.models import messages_options
from handwork.llm.anthropic.stream import MessageStream
from handwork.llm.asking import close_model, reply_of
from handwork.llm.build import build_model
from handwork.llm.chat.encoder import ChatEncoder
from handwork.llm.chat.stream import ChatStream
from handwork.llm.prices import Prices
from handwork.llm.providers import CUSTOM, PROVIDERS, options_for
from handwork.llm.wire import Decoder, Encoder
from handwork.schema import Message, Reply, Request, TextDelta, ThinkingDelta
from tests.support.cassettes import (
    SHARED,
    Exchange,
    Said,
    chat_request,
    chat_said,
    differences,
    exchanges,
    messages_request,
    messages_said,
    recordings,
    structure,
)
from tests.support.fault_server import Answer, FaultServer

CHAT, ANTHROPIC = ("openai-chat", "groq", "mistral"), ("anthropic",)
ALL = recordings(*CHAT, *ANTHROPIC)
FAILURES: dict[str, dict[int, type[HandworkError]]] = {
    "error-404": {0: ModelNotFoundError},
    "error-400": {0: BadRequestError},
    "error-429": {0: RateLimitError, 1: RateLimitError, 2: RateLimitError},
    "error-in-stream": {0: BadRequestError},
    "error-in-stream-tool": {0: BadRequestError},
    "error-400-tool": {0: BadRequestError},
    "error-529": {0: OverloadedError},
    "overloaded-in-stream": {0: OverloadedError},
}
OTHERWISE = {
    "openai-chat/image-url": {"messages.3.content": "an image by its address; ours are sent as data"},
    "openai-chat/images-base64": {"messages.3.content": "two parts with text each, and an image by its address"},
    "openai-chat/json-schema": {"response_format": "no output schemas on this wire yet"},
    "openai-chat/prompt-cache": {"messages.0.content": "two parts of text; a message of ours has one"},
    "openai-chat/reasoning-stream-openrouter": {"reasoning": "a setting that we do not have"},
    "openai-chat/tool-no-id": {
        "messages.1.extra_content": "we give the signature of a thought back, which the recorder lost"
    },
    "anthropic/image-url": {"messages.0.content": "an image by its address; ours are sent as data"},
    "anthropic/stop-sequence": {"stop_sequences": "a setting that we do not have"},
    "anthropic/tool-stream": {"tools": "the provider's own tool search; what came of it is sent back all the same"},
}
"""All that we send otherwise than it was recorded, and why. Every answer is read."""
NAMES = {
    "api.openai.com": "openai",
    "openrouter.ai": "openrouter",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "generativelanguage.googleapis.com": "google",
    "api.mistral.ai": "mistral",
    "api.anthropic.com": "anthropic",
}


def name_of(path: Path) -> str:
    own = "own/" if path.suffix == ".json" else ""
    return f"{own}{path.parent.name}/{path.stem}"


every = pytest.mark.parametrize("path", ALL, ids=name_of)


def is_anthropic(path: Path) -> bool:
    return path.parent.name in ANTHROPIC


def encoder_of(path: Path, exchange: Exchange) -> Encoder:
    asked = exchange.asked
    if is_anthropic(path):
        thinking = (asked.get("thinking") or {}).get("budget_tokens")
        return MessagesEncoder(messages_options(asked["model"], 4096, None, thinking))
    provider = PROVIDERS.get(NAMES.get(exchange.uri.split("/")[2], ""), CUSTOM)
    return ChatEncoder(options_for(provider, asked["model"], None, None))


def decoder_of(path: Path) -> Decoder:
    return MessageStream() if is_anthropic(path) else ChatStream()


def said_of(path: Path, exchange: Exchange) -> Said:
    return (messages_said if is_anthropic(path) else chat_said)(exchange.events)


def said_by(reply: Reply) -> Said:
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in reply.tool_calls]
    thinking = "".join(part.text for part in reply.thinking)
    usage = reply.usage
    assert usage is not None
    return Said(reply.content or "", thinking, calls, reply.finish_reason, usage.input, usage.output, usage.cached)


def fails(path: Path, number: int) -> type[HandworkError] | None:
    return FAILURES.get(path.stem, {}).get(number)


def read(path: Path, exchange: Exchange, size: int = 1 << 20) -> Reply:
    decoder = decoder_of(path)
    for at in range(0, len(exchange.body), size):
        decoder.feed(exchange.body[at : at + size])
    return decoder.finish()


@pytest.mark.parametrize("size", [1, 7, 97, 1 << 20])
@every
def test_recorded_answers_are_read_in_pieces_of_any_size(path: Path, size: int) -> None:
    for number, exchange in enumerate(exchanges(path)):
        if exchange.status != 200:
            continue
        if failure := fails(path, number):
            with pytest.raises(failure):
                read(path, exchange, size)
        else:
            assert said_by(read(path, exchange, size)) == said_of(path, exchange)


@every
def test_recorded_requests_are_sent_as_they_were_with_what_we_read_of_the_answers_before(path: Path) -> None:
    replies: list[Message] = []
    for number, exchange in enumerate(exchanges(path)):
        request = (messages_request if is_anthropic(path) else chat_request)(exchange.asked, replies)
        sent = json.loads(encoder_of(path, exchange).encode(request).data)
        found = set(differences(structure(exchange.asked), structure(sent)))
        assert found <= set(OTHERWISE.get(name_of(path), {}))
        if exchange.status == 200 and not fails(path, number):
            replies.append(read(path, exchange).to_message())


def test_what_is_sent_otherwise_is_named_as_long_as_it_is() -> None:
    """No reason outlives its case."""
    for name, reasons in OTHERWISE.items():
        path = next((path for path in ALL if name_of(path) == name), None)
        if path is None:
            continue  # the shared recordings are not here
        found: set[str] = set()
        replies: list[Message] = []
        for exchange in exchanges(path):
            request = (messages_request if is_anthropic(path) else chat_request)(exchange.asked, replies)
            sent = json.loads(encoder_of(path, exchange).encode(request).data)
            found |= set(differences(structure(exchange.asked), structure(sent)))
            replies.append(read(path, exchange).to_message())
        assert found == set(reasons)


def served(exchange: Exchange, size: int) -> Answer:
    kind = "application/json" if len(exchange.events) == 1 else "text/event-stream"
    pieces = [exchange.body[at : at + size] for at in range(0, len(exchange.body), size)]
    return Answer(pieces, exchange.status, {"content-type": kind})


def settings_for(exchange: Exchange, url: str) -> LLMSettings:
    host = exchange.uri.split("/")[2]
    path = exchange.uri.split(host)[1].split("?")[0].split("#")[0].removesuffix("/chat/completions")
    name = f"{NAMES[host]}:{exchange.asked['model']}" if host in NAMES else exchange.asked["model"]
    thinking = (exchange.asked.get("thinking") or {}).get("budget_tokens")
    return LLMSettings(model=name, base_url=url + path, api_key="any-key-1234", retries=0, thinking=thinking)


@every
async def test_recorded_traffic_goes_over_http_and_failures_are_typed(path: Path) -> None:
    recorded = exchanges(path)
    replies: list[Message] = []
    async with FaultServer([served(exchange, 97) for exchange in recorded]) as server:
        for number, exchange in enumerate(recorded):
            model = build_model(settings_for(exchange, server.url.removesuffix("/v1")), {})
            request = (messages_request if is_anthropic(path) else chat_request)(exchange.asked, replies)
            if failure := fails(path, number):
                with pytest.raises(failure) as caught:
                    await reply_of(model, request)
                assert type(caught.value) is failure
                assert isinstance(caught.value, ModelError)
            else:
                items: list[Any] = [item async for item in model.stream(request)]
                replies.append(items[-1].to_message())
                check_items(items, said_of(path, exchange))
            await close_model(model)
    for exchange, received in zip(recorded, server.requests, strict=True):
        assert received.path.split("?")[0] == "/" + exchange.uri.split("/", 3)[3].split("?")[0].split("#")[0]
        found = set(differences(structure(exchange.asked), structure(received.json)))
        assert found <= set(OTHERWISE.get(name_of(path), {}))


def check_items(items: list[Any], said: Said) -> None:
    assert said_by(items[-1]) == said
    if len(items) > 1:
        assert "".join(item.text for item in items if isinstance(item, TextDelta)) == said.text
        assert "".join(item.text for item in items if isinstance(item, ThinkingDelta)) == said.thinking


async def test_each_recorded_usage_of_anthropic_has_its_price() -> None:
    for path in recordings(*ANTHROPIC):
        for number, exchange in enumerate(exchanges(path)):
            if exchange.status == 200 and not fails(path, number):
                usage = read(path, exchange).usage
                assert usage is not None
                cost = await Prices(exchange.asked["model"], "https://api.anthropic.com/v1/messages").cost(usage)
                assert cost is not None
                assert cost > 0


# ---- thinking goes back byte for byte


def sent_back(path: Path, number: int, provider: str) -> dict[str, Any]:
    """The recorded answer, read by us and written into the next request."""
    reply = read(path, exchanges(path)[number]).to_message()
    encoder: Encoder = MessagesEncoder(messages_options("m", 4096, None, None))
    if provider != "anthropic":
        encoder = ChatEncoder(options_for(PROVIDERS[provider], "m", None, None))
    request = Request([Message.user_message("x"), reply])
    message: dict[str, Any] = json.loads(encoder.encode(request).data)["messages"][1]
    return message


shared = pytest.mark.skipif(not SHARED.exists(), reason="the shared recordings are not beside this checkout")


@shared
def test_reasoning_content_goes_back_byte_for_byte() -> None:
    for name in ("reasoning-stream-deepseek", "reasoning-tools-deepseek"):
        path = SHARED / "openai-chat" / f"{name}.yaml"
        for number, exchange in enumerate(exchanges(path)):
            assert sent_back(path, number, "deepseek")["reasoning_content"] == chat_said(exchange.events).thinking
            assert "reasoning_content" not in sent_back(path, number, "openai")
            assert "thinking" not in json.dumps(sent_back(path, number, "anthropic"))


@shared
def test_reasoning_details_go_back_byte_for_byte() -> None:
    path = SHARED / "openai-chat" / "reasoning-two-turns-openrouter.yaml"
    (event,) = exchanges(path)[1].events
    details = event["choices"][0]["message"]["reasoning_details"]
    assert sent_back(path, 1, "openrouter")["reasoning_details"] == details
    path = SHARED / "openai-chat" / "reasoning-stream-openrouter.yaml"
    streamed = exchanges(path)[0]
    (detail,) = sent_back(path, 0, "openrouter")["reasoning_details"]
    assert detail["text"] == chat_said(streamed.events).thinking
    assert detail["signature"] in streamed.body.decode()
    assert len(detail["signature"]) > 100
    assert (detail["type"], detail["format"], detail["index"]) == ("reasoning.text", "anthropic-claude-v1", 0)


@shared
def test_signatures_of_thoughts_go_back_byte_for_byte() -> None:
    path = SHARED / "openai-chat" / "tool-no-id.yaml"
    (event,) = exchanges(path)[0].events
    assert sent_back(path, 0, "google")["extra_content"] == event["choices"][0]["message"]["extra_content"]


@shared
def test_thinking_blocks_go_back_byte_for_byte_redacted_ones_too() -> None:
    for name, kinds in (("thinking-stream", {"thinking"}), ("thinking-redacted-stream", {"redacted_thinking"})):
        path = SHARED / "anthropic" / f"{name}.yaml"
        body = exchanges(path)[0].body.decode()
        blocks = [block for block in sent_back(path, 0, "anthropic")["content"] if block["type"] != "text"]
        assert {block["type"] for block in blocks} == kinds
        for block in blocks:
            assert len(kept := block.get("signature") or block["data"]) > 100
            assert kept in body
        assert "thinking" not in json.dumps(sent_back(path, 0, "openrouter"))
