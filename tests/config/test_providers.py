"""The table of providers: a default model that exists and has a price, and nobody's key at the wrong door."""

from __future__ import annotations

import importlib
import re

import pytest

from handwork.config.providers import LOCAL_SERVERS, PROVIDERS, Provider

WITH_KEYS = [provider for provider in PROVIDERS.values() if provider.key_variables]
WANTED = (
    "openai anthropic deepseek openrouter google groq mistral xai dashscope moonshot zhipu zai siliconflow together fireworks "
    "cerebras ppio jiekou"
)


def test_every_wanted_provider_is_there_in_this_order_and_then_the_local_servers() -> None:
    assert list(PROVIDERS) == [*WANTED.split(), *LOCAL_SERVERS]


@pytest.mark.parametrize("provider", WITH_KEYS, ids=lambda provider: provider.name)
def test_a_provider_with_keys_has_all_that_setup_needs(provider: Provider) -> None:
    assert provider.title
    assert provider.default_model
    assert provider.keys_at.startswith("https://")
    assert provider.base_url.startswith("https://")
    re.compile(provider.key_form)


def test_each_default_model_is_in_the_table_of_prices_wherever_that_knows_the_provider() -> None:
    prices = importlib.import_module("genai_prices")
    usage = prices.Usage(input_tokens=1000, output_tokens=1000)
    patterns = [each.api_pattern for each in importlib.import_module("genai_prices.data").providers]
    known = [each for each in WITH_KEYS if any(re.match(pattern, each.base_url) for pattern in patterns)]
    assert len(known) >= 14
    for provider in known:
        found = prices.calc_price(usage, provider.default_model, provider_api_url=provider.base_url)
        assert found.total_price > 0, provider.name
        assert not found.model.deprecated, provider.name


def test_no_two_providers_share_a_variable() -> None:
    variables = [
        name for provider in PROVIDERS.values() for name in (*provider.key_variables, provider.base_url_variable)
    ]
    named = [name for name in variables if name]
    assert len(named) == len(set(named))
