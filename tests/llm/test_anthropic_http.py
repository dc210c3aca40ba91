"""Anthropic's models as configured and over HTTP: which address, which headers, which errors, what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from handwork.config import LLMSettings, load_settings
from handwork.errors import (
    AuthenticationError,
    BadRequestError,
    BrokenStreamError,
    ContentFilterError,
    HandworkError,
    ModelError,
    ModelNotFoundError,
    NoModelError,
    OverloadedError,
    PermissionDeniedError,
    QuotaError,
    RateLimitError,
    ServerError,
    TokenLimitExceeded,
)
from handwork.llm.asking import close_model, reply_of
from handwork.llm.build import _endpoint, _headers, _place, build_model
from handwork.llm.failures import Source, error_of
from handwork.llm.prices import Prices
from handwork.schema import Message, Reply, Request, Retrying, Usage
from tests.support.fault_server import Answer, FaultServer, Received, json_answer, stream
from tests.support.messages_server import MessagesServer, error, event, message_of, streamed

KEY = {"ANTHROPIC_API_KEY": "anthropic-key-1234"}
OWN = "https://api.anthropic.com"
ASK = Request([Message.user_message("x")], "sys")


def reached(environ: Mapping[str, str] | None = None, **given: Any) -> tuple[str, str, str, dict[str, str]]:
    """(provider, model, address, headers) of these settings."""
    settings = LLMSettings.model_validate(given)
    place = _place(settings, environ or {})
    return place.provider.name, place.model, _endpoint(settings, place), _headers(settings, place)


@pytest.mark.parametrize(
    "base_url", ["", OWN, f"{OWN}/", f"{OWN}/v1", f"{OWN}/v1/", f"{OWN}/v1/messages", f"{OWN}/v1/chat/completions"]
)
def test_every_way_to_name_anthropic_leads_to_its_messages(base_url: str) -> None:
    address = f"{OWN}/v1/messages"
    headers = {"User-Agent": "handwork", "x-api-key": "anthropic-key-1234", "anthropic-version": "2023-06-01"}
    names = ["anthropic:claude-x", "Anthropic:claude-x"] + (["claude-x"] if base_url else [])
    for name in names:
        assert reached(KEY, model=name, base_url=base_url) == ("anthropic", "claude-x", address, headers)
    assert reached(KEY, model="claude-x", api_type="anthropic", base_url=base_url)[2] == address


def test_openmanus_example_for_claude_speaks_the_own_wire() -> None:
    own: dict[str, Any] = {
        "model": "claude-3-7-sonnet-20250219",
        "base_url": "https://api.anthropic.com/v1/",
        "api_key": "from-file-1",
    }
    provider, _, address, headers = reached(**own)
    assert (provider, address, headers["x-api-key"]) == ("anthropic", f"{OWN}/v1/messages", "from-file-1")
    assert "Authorization" not in headers


def test_a_gateway_is_asked_for_messages_below_its_own_address_and_gets_no_key_of_anthropics() -> None:
    given = {"model": "anthropic:claude-x", "base_url": "https://gate.example/anthropic?tenant=a"}
    provider, _, address, headers = reached(KEY, **given)
    assert (provider, address) == ("anthropic", "https://gate.example/anthropic/v1/messages?tenant=a")
    assert "x-api-key" not in headers
    assert reached(KEY, **given, api_key="gate-key-1")[3]["x-api-key"] == "gate-key-1"
    variable = KEY | {"ANTHROPIC_BASE_URL": "https://gate.example/a"}
    assert reached(variable, model="anthropic:c")[2:] == (
        "https://gate.example/a/v1/messages",
        {"User-Agent": "handwork", "x-api-key": "anthropic-key-1234", "anthropic-version": "2023-06-01"},
    )


def test_configured_headers_win_and_an_authorization_of_ones_own_stands_alone() -> None:
    given = {"Anthropic-Version": "2030-01-01", "authorization": "Bearer gate-1234"}
    headers = reached(KEY, model="anthropic:c", headers=given)[3]
    assert headers == {"User-Agent": "handwork", **given}


@pytest.mark.parametrize(
    "url", ["https://api.anthropic.com.evil.org/v1", "http://api.anthropic.com/v1", "https://x.org"]
)
@pytest.mark.parametrize("model", ["c", "anthropic:c"])
def test_the_key_never_goes_to_another_host(url: str, model: str) -> None:
    assert not {"x-api-key", "Authorization"} & set(reached(KEY, model=model, base_url=url)[3])


def test_who_brings_a_key_in_a_header_is_not_told_of_another_one() -> None:
    told: list[str] = []
    given: dict[str, Any] = {
        "model": "anthropic:c",
        "base_url": "https://gate.example",
        "headers": {"X-Api-Key": "gate-1"},
    }
    build_model(LLMSettings.model_validate(given), KEY, lambda level, text: told.append(text))
    assert told == []
    build_model(LLMSettings.model_validate(given | {"headers": {}}), KEY, lambda level, text: told.append(text))
    assert "ANTHROPIC_API_KEY is not used" in told[0]


def test_a_budget_asks_anthropic_itself_for_thoughts_between_calls_and_no_gateway() -> None:
    own = reached(KEY, model="anthropic:c", thinking=2048)[3]
    assert own["anthropic-beta"] == "interleaved-thinking-2025-05-14"
    assert "anthropic-beta" not in reached(KEY, model="anthropic:c", thinking="adaptive")[3]
    assert "anthropic-beta" not in reached(model="anthropic:c", thinking=2048, base_url="https://gate.example")[3]
    assert reached(KEY, model="anthropic:c", thinking=2048, headers={"Anthropic-Beta": "x"})[3]["Anthropic-Beta"] == "x"


def test_thinking_that_goes_nowhere_is_told() -> None:
    told: list[str] = []
    given = LLMSettings(model="deepseek:m", api_key="key-12345", thinking="high")
    build_model(given, {}, lambda level, text: told.append(text))
    assert told == ["[llm] thinking is for Anthropic's models; deepseek:m is sent none"]


def test_without_a_key_the_variable_is_named() -> None:
    with pytest.raises(NoModelError, match="ANTHROPIC_API_KEY"):
        build_model(LLMSettings(model="anthropic:c"), {})


@pytest.mark.parametrize(
    ("url", "provider"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://openrouter.ai/api/v1/", "openrouter"),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", "google"),
        ("https://api.mistral.ai/v1", "mistral"),
        ("http://localhost:8000/v1", "custom"),
        ("https://elsewhere.org/v1", "custom"),
    ],
)
def test_a_bare_name_at_a_providers_own_address_is_one_of_its_models(url: str, provider: str) -> None:
    assert reached(model="m", base_url=url, api_key="key-12345")[0] == provider


@pytest.mark.parametrize(("model", "kept"), [("openai:gpt-5", False), ("anthropic:claude-y", True), ("claude-y", True)])
def test_anthropics_address_in_a_file_follows_only_to_its_own_models(model: str, kept: bool, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'[llm]\nmodel = "claude-x"\nbase_url = "{OWN}/v1/"\napi_key = "key-12345"\n')
    found = load_settings(file, environ={"HANDWORK_HOME": str(tmp_path)}, overrides={"llm": {"model": model}}).llm_for(
        ""
    )
    assert (found.base_url, found.api_key) == ((f"{OWN}/v1/", "key-12345") if kept else ("", ""))


# ---- over HTTP


def model_at(url: str, **given: Any) -> Any:
    settings = {"model": "anthropic:claude-test", "base_url": url, "api_key": "sk-ant-secret-1234", "retries": 0}
    return build_model(LLMSettings.model_validate(settings | given), {})


async def asked(url: str, request: Request = ASK, **given: Any) -> Reply:
    model = model_at(url, **given)
    try:
        return await reply_of(model, request)
    finally:
        await close_model(model)


async def test_a_reply_comes_over_the_wire_with_its_usage_and_the_configured_price() -> None:
    prices = {"input": 3.0, "output": 15.0, "cached": 0.3, "written": 3.75}
    async with MessagesServer(["Hello"]) as server:
        reply = await asked(server.url, prices=prices)
    assert (reply.content, reply.usage) == ("Hello", Usage(input=17, cached=5, written=2, output=20))
    assert reply.cost_usd == pytest.approx((10 * 3 + 5 * 0.3 + 2 * 3.75 + 20 * 15) / 1e6)
    assert server.refused == []


async def test_anthropics_own_prices_are_known_with_those_of_the_cache() -> None:
    prices = Prices("claude-sonnet-4-5", OWN)
    assert await prices.cost(Usage(input=100_000)) == pytest.approx(0.3)
    assert await prices.cost(Usage(input=100_000, cached=100_000)) == pytest.approx(0.03)
    assert await prices.cost(Usage(input=100_000, written=100_000)) == pytest.approx(0.375)
    assert await prices.cost(Usage(output=100_000)) == pytest.approx(1.5)


async def test_an_answer_that_is_not_streamed_is_read_as_well() -> None:
    content = [{"type": "text", "text": "whole"}]
    async with FaultServer([json_answer(message_of(content))]) as server:
        assert (await asked(server.url)).content == "whole"


async def test_a_stream_that_ends_without_its_last_event_is_broken_and_asked_again() -> None:
    good = streamed(message_of([{"type": "text", "text": "Hello"}]))
    async with FaultServer([stream(*good[:-1]), stream(*good)]) as server:
        model = model_at(server.url, retries=1)
        items = [item async for item in model.stream(ASK)]
        await close_model(model)
    assert items[-1].content == "Hello"
    assert [type(item.error) for item in items if isinstance(item, Retrying)] == [BrokenStreamError]


async def test_overload_and_rate_limits_are_asked_again_not_earlier_than_told() -> None:
    def script(received: Received) -> Answer:
        if len(server.requests) == 1:
            return error(529, "Overloaded", "overloaded_error", retry_after="0.01")
        if len(server.requests) == 2:
            start = event("message_start", message=message_of([]))
            return stream(start, event("error", error={"type": "overloaded_error", "message": "Overloaded"}))
        return stream(*streamed(message_of([{"type": "text", "text": "at last"}])))

    async with FaultServer(script) as server:
        model = model_at(server.url, retries=2)
        items = [item async for item in model.stream(ASK)]
        await close_model(model)
    assert items[-1].content == "at last"
    waits = [item for item in items if isinstance(item, Retrying)]
    assert [type(item.error) for item in waits] == [OverloadedError, OverloadedError]
    assert waits[0].wait >= 0.01


async def test_a_wrong_key_is_told_once_without_showing_it() -> None:
    async with FaultServer([error(401, "invalid x-api-key: sk-ant-secret-1234", "authentication_error")]) as server:
        with pytest.raises(AuthenticationError) as caught:
            await asked(server.url, retries=3)
    assert len(server.requests) == 1
    assert "secret" not in str(caught.value)
    assert str(caught.value).startswith("anthropic:claude-test: HTTP 401")


# ---- refusals in Anthropic's words


@pytest.mark.parametrize(
    ("status", "kind", "message", "expected"),
    [
        (400, "invalid_request_error", "messages: at least one message is required", BadRequestError),
        (400, "invalid_request_error", "prompt is too long: 210417 tokens > 200000 maximum", TokenLimitExceeded),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
            TokenLimitExceeded,
        ),
        (
            400,
            "invalid_request_error",
            "max_tokens: 70000 > 64000, which is the maximum allowed number of output tokens for claude-test",
            BadRequestError,
        ),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
            QuotaError,
        ),
        (400, "invalid_request_error", "You have reached your specified API usage limits.", QuotaError),
        (400, "invalid_request_error", "Output blocked by content filtering policy", ContentFilterError),
        (400, "invalid_request_error", "`temperature` is deprecated for this model.", BadRequestError),
        (401, "authentication_error", "invalid x-api-key", AuthenticationError),
        (402, "billing_error", "There is an issue with your billing", QuotaError),
        (403, "permission_error", "Your API key does not have permission to use it", PermissionDeniedError),
        (404, "not_found_error", "model: claude-x", ModelNotFoundError),
        (413, "request_too_large", "Request exceeds the maximum size", TokenLimitExceeded),
        (
            429,
            "rate_limit_error",
            "This request would exceed the rate limit for your organization of 30,000 input tokens per minute. You can see the "
            "response headers for current usage. Please reduce the prompt length or the maximum tokens requested, or try again "
            "later.",
            RateLimitError,
        ),
        (500, "api_error", "Internal server error", ServerError),
        (529, "overloaded_error", "Overloaded", OverloadedError),
    ],
)
def test_a_refusal_is_typed_by_what_it_says(
    status: int, kind: str, message: str, expected: type[HandworkError]
) -> None:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    found = error_of(Source("anthropic", "claude-test"), status, body, {"retry-after": "7"})
    assert type(found) is expected
    assert isinstance(found, ModelError)
    assert (found.status, found.retry_after) == (status, 7)
    assert message[:40] in str(found)
