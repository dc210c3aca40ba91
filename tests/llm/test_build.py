"""From settings to a model: the right address, and a key only where it belongs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from handwork.config import LLMSettings
from handwork.errors import ConfigError, NoModelError
from handwork.llm.asking import reply_of
from handwork.llm.build import _place, build_model
from handwork.llm.providers import PROVIDERS, options_for
from handwork.schema import Message, Request
from tests.support.fault_server import FaultServer, stream_of

OPENAI = {"OPENAI_API_KEY": "openai-key-1234"}
ASK = Request([Message.user_message("x")])


def place(environ: Mapping[str, str] | None = None, **settings: Any) -> tuple[str, str, str, str]:
    found = _place(LLMSettings.model_validate(settings), environ or {})
    return found.provider.name, found.model, found.base_url, found.key


@pytest.mark.parametrize(
    ("model", "provider", "name"),
    [
        ("openai:gpt-5", "openai", "gpt-5"),
        ("gpt-5", "openai", "gpt-5"),
        ("OpenAI:gpt-5", "openai", "gpt-5"),
        ("openrouter:anthropic/claude:free", "openrouter", "anthropic/claude:free"),
        ("gemini:gemini-2.5-pro", "google", "gemini-2.5-pro"),
        ("ollama:qwen2.5:0.5b", "ollama", "qwen2.5:0.5b"),
    ],
)
def test_a_name_says_provider_and_model(model: str, provider: str, name: str) -> None:
    keys = {variable: "k" * 9 for entry in PROVIDERS.values() for variable in entry.key_variables}
    assert place(keys, model=model)[:2] == (provider, name)


@pytest.mark.parametrize(
    "model", ["qwen2.5:0.5b", "mistral:7b", "mistral:latest", "deepseek:1.5b-q4", "some/name", "hf.co/x:Q4_K"]
)
def test_at_a_base_url_names_with_tags_stay_whole(model: str) -> None:
    assert place(model=model, base_url="http://localhost:1/v1")[:2] == ("custom", model)


def test_a_provider_may_be_named_together_with_a_base_url() -> None:
    assert place(model="openai:gpt-5", base_url="http://proxy:1/v1")[:3] == ("openai", "gpt-5", "http://proxy:1/v1")


# ---- keys


def test_the_providers_key_goes_to_the_provider() -> None:
    assert place(OPENAI, model="gpt-5") == ("openai", "gpt-5", "https://api.openai.com/v1", "openai-key-1234")
    assert place(OPENAI, model="openai:x", base_url="https://api.openai.com/v1/")[3] == "openai-key-1234"


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:1/v1",
        "https://elsewhere.org/v1",
        "http://api.openai.com/v1",
        "https://api.openai.com.evil.org/v1",
        "https://api.openai.com@evil.org/v1",
        "https://evil.org/api.openai.com",
    ],
)
@pytest.mark.parametrize("model", ["m", "openai:m"])
def test_the_providers_key_never_goes_to_another_host(url: str, model: str) -> None:
    assert place(OPENAI, model=model, base_url=url)[3] == ""


def test_the_providers_key_goes_to_the_address_of_its_own_variable() -> None:
    environ = OPENAI | {"OPENAI_BASE_URL": "http://gateway.org/v1"}
    assert place(environ, model="gpt-5")[2:] == ("http://gateway.org/v1", "openai-key-1234")


def test_a_configured_key_goes_to_the_configured_address() -> None:
    assert place(OPENAI, model="m", base_url="http://h/v1", api_key="mine-1234")[3] == "mine-1234"
    assert place({"MY": " mine-1234\n"}, model="m", base_url="http://h/v1", api_key="env:MY")[3] == "mine-1234"


def test_the_general_key_is_read_by_the_configuration_alone_which_knows_what_it_is_for() -> None:
    assert place({"HANDWORK_API_KEY": "hw-1234"}, model="m", base_url="http://h/v1")[3] == ""


def test_without_a_key_no_authorization_is_sent_to_a_base_url() -> None:
    assert place(model="m", base_url="http://h/v1")[3] == ""


async def test_what_is_sent_holds_the_key_or_no_authorization_at_all() -> None:
    async with FaultServer([stream_of("a")] * 3) as server:
        await reply_of(build_model(LLMSettings(model="m", base_url=server.url), OPENAI), ASK)
        await reply_of(build_model(LLMSettings(model="m", base_url=server.url, api_key="k1234"), OPENAI), ASK)
        azure = LLMSettings(model="m", base_url=server.url, api_key="k1234", api_type="azure", api_version="2024-12-01")
        await reply_of(build_model(azure, {}), ASK)
    headers = [request.headers for request in server.requests]
    assert "authorization" not in headers[0]
    assert headers[1]["authorization"] == "Bearer k1234"
    assert "authorization" not in headers[2]
    assert headers[2]["api-key"] == "k1234"
    assert server.requests[2].path == "/v1/chat/completions?api-version=2024-12-01"


def test_a_key_over_plain_http_is_told() -> None:
    told: list[str] = []
    for url, count in (("http://far.org/v1", 1), ("http://127.0.0.1:1/v1", 1), ("https://far.org/v1", 1)):
        build_model(LLMSettings(model="m", base_url=url, api_key="k1234"), {}, lambda level, text: told.append(text))
        assert len(told) == count


# ---- what is wrong, and what to do


def test_no_model_names_the_variables_and_the_ways_on() -> None:
    with pytest.raises(NoModelError) as caught:
        build_model(LLMSettings(), {})
    for word in ("--model", "--base-url", "OPENAI_API_KEY", "handwork model fetch smollm2-135m"):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("model", "variable"), [("gpt-5", "OPENAI_API_KEY"), ("google:g", "GEMINI_API_KEY or GOOGLE_API_KEY")]
)
def test_a_missing_key_names_its_variable(model: str, variable: str) -> None:
    with pytest.raises(NoModelError, match=variable):
        build_model(LLMSettings(model=model), {})


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"model": "opanai:x"}, "did you mean openai"),
        ({"model": "zzzz:x"}, "known are openai"),
        ({"model": "openai:"}, "names a provider and no model"),
        ({"model": "m", "base_url": "localhost:8000"}, "no address"),
        ({"model": "m", "base_url": "ftp://x/v1"}, "no address"),
        ({"model": "m", "base_url": "http://[::1/v1"}, "no address"),
        ({"model": "m", "base_url": "http://h:99999/v1"}, "no address"),
        ({"model": "m", "base_url": "http://h:0/v1"}, "no address"),
        ({"model": "m", "base_url": "http://h:port/v1"}, "no address"),
        ({"model": "m", "base_url": "http://h\\@evil.org/v1"}, "no address"),
        ({"model": "m", "base_url": "http://h /v1"}, "no address"),
        ({"model": "m", "base_url": "http://a..b/v1"}, "no address"),
        ({"model": "m", "base_url": f"http://{'a' * 64}.example/v1"}, "no address"),
        (
            {"model": "m", "base_url": "http://user:openai-key@h/v1", "api_key": "k-1234567"},
            "only one of them can be sent",
        ),
        (
            {"model": "m", "base_url": "http://user@h/v1", "headers": {"authorization": "Basic eA=="}},
            "only one of them",
        ),
        ({"model": "m", "base_url": "http://h/v1", "headers": {"X": "a\nb"}}, "no header that can be sent"),
        ({"model": "m", "base_url": "http://h/v1", "headers": {"X:": "a"}}, "no header that can be sent"),
        ({"model": "m", "base_url": "http://h/v1", "api_key": "env:NOPE"}, "NOPE, which is not set"),
        ({"model": "m", "base_url": "http://h/v1", "api_key": "env:sk-openai-key-1234567"}, "written without env:"),
        ({"model": "m", "base_url": "http://h/v1", "api_key": "env:gsk_openai-key1234567"}, "written without env:"),
        ({"model": "m", "base_url": "http://h/v1", "api_key": "a\nb"}, "characters that no key has"),
        ({"model": "m", "base_url": "http://h/v1", "api_key": "ключ"}, "characters that no key has"),
        ({"model": "m", "api_type": "azure"}, "needs a base URL"),
        ({"model": "m", "api_type": "aws"}, "not supported in this version"),
    ],
)
def test_a_wrong_setting_is_a_config_error_that_says_what_to_do(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        build_model(LLMSettings.model_validate(settings), OPENAI)
    assert "openai-key" not in str(caught.value)
    assert "ключ" not in str(caught.value)


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"SSL_CERT_FILE": "/no/such/ca.pem"}, "SSL_CERT_FILE names /no/such/ca.pem"),
        ({"SSL_CERT_FILE": __file__}, "holds no certificates"),
        ({"HTTPS_PROXY": "http://[::1"}, "proxy for h is no address"),
        ({"HTTPS_PROXY": "http://p:99999"}, "proxy for h is no address"),
        ({"ALL_PROXY": "socks5://p:1080"}, "proxy for h is one of socks5"),
    ],
)
def test_what_the_environment_says_wrongly_of_the_way_is_a_config_error_before_any_request(
    environ: dict[str, str], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        build_model(LLMSettings(model="m", base_url="https://h/v1"), environ)


# ---- facts


@pytest.mark.parametrize(
    ("provider", "model", "own_bound"),
    [
        ("openai", "o1", True),
        ("openai", "o3-mini", True),
        ("openai", "gpt-5", True),
        ("openai", "gpt-5.6-sol", True),
        ("openrouter", "openai/gpt-5-mini", True),
        ("openai", "gpt-4o", False),
        ("openai", "gpt-4.1", False),
        ("groq", "openai/gpt-oss-120b", False),
        ("deepseek", "o1", False),
    ],
)
def test_openais_reasoning_models_want_max_completion_tokens(provider: str, model: str, own_bound: bool) -> None:
    assert options_for(PROVIDERS[provider], model, 1, 1.0).completion_tokens is own_bound


def test_mistral_families_fold_user_turns_wherever_they_are_served() -> None:
    assert options_for(PROVIDERS["mistral"], "x", 1, None).fold_user_turns
    assert options_for(PROVIDERS["openrouter"], "mistralai/mistral-large", 1, None).fold_user_turns
    assert not options_for(PROVIDERS["openai"], "gpt-4o", 1, None).fold_user_turns


def test_a_local_model_is_opened_by_its_name() -> None:
    with pytest.raises(ConfigError, match="no-such-model"):
        build_model(LLMSettings(model="local:no-such-model"), {})


@pytest.mark.parametrize("model", ["smollm2-135m", "SmolLM2-135M", "smollm2", "openai:smollm2-135m"])
def test_a_local_models_name_without_its_provider_is_recognised(model: str) -> None:
    with pytest.raises(NoModelError, match=r"Did you mean local:smollm2-135m.*OPENAI_API_KEY"):
        place(model=model)
    with pytest.raises(NoModelError, match=r"^openai:gpt-5 needs a key"):
        place(model="gpt-5")


def test_what_is_told_of_an_address_is_without_its_password_and_query() -> None:
    told: list[str] = []
    given = LLMSettings(
        model="anthropic:m", base_url="http://user:hidden-1@lan.example/v1?key=hidden-2", api_key="key-12345"
    )
    build_model(given, {}, lambda level, text: told.append(text))
    assert "lan.example" in told[0]
    assert "hidden" not in told[0]
    with pytest.raises(ConfigError, match="no address") as caught:
        build_model(LLMSettings(model="m", base_url="http://user:hidden-1@lan:x/v1?key=hidden-2"), {})
    assert "hidden" not in str(caught.value)
