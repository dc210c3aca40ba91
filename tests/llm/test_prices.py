"""Prices and token estimates: offline, overridable, and unknown is None."""

from __future__ import annotations

from typing import Any

import pytest

from handwork.config import LLMSettings, PriceSettings
from handwork.llm.asking import reply_of
from handwork.llm.build import build_model
from handwork.llm.prices import Prices
from handwork.llm.tokens import IMAGE_TOKENS, TokenMeter
from handwork.schema import Message, Reply, Request, Tail, Usage
from tests.support.fault_server import FaultServer, stream_of

USAGE = Usage(input=1_000_000, cached=500_000, output=100_000)
OPENAI = "https://api.openai.com/v1"


async def test_the_bundled_table_prices_known_models_by_their_address() -> None:
    cost = await Prices("gpt-4o", OPENAI).cost(USAGE)
    assert cost == pytest.approx(0.5 * 2.5 + 0.5 * 1.25 + 0.1 * 10)
    assert await Prices("mistral-large-latest", "https://api.mistral.ai/v1").cost(USAGE) is not None


@pytest.mark.parametrize(
    ("model", "url"),
    [("no-such-model", OPENAI), ("gpt-4o", "https://elsewhere.org/v1"), ("gpt-4o", "http://127.0.0.1:1/v1")],
)
async def test_an_unknown_price_is_none_and_not_zero(model: str, url: str) -> None:
    prices = Prices(model, url)
    assert await prices.cost(USAGE) is None
    assert await prices.cost(USAGE) is None


async def test_configured_prices_go_over_the_table() -> None:
    own = PriceSettings(input=2.0, cached=1.0, output=4.0)
    assert await Prices("gpt-4o", OPENAI, own).cost(USAGE) == pytest.approx(1.9)
    own = PriceSettings(input=2.0, output=4.0)
    assert await Prices("x", "http://localhost:1", own).cost(USAGE) == pytest.approx(2.4)
    assert await Prices("x", "http://localhost:1", PriceSettings(input=0, output=0)).cost(USAGE) == 0.0


async def test_the_cost_of_what_was_written_to_a_cache_is_unknown_without_its_price() -> None:
    usage = Usage(input=1_000_000, written=1_000_000)
    assert await Prices("x", "http://h", PriceSettings(input=2.0, output=4.0)).cost(usage) is None
    assert await Prices("x", "http://h", PriceSettings(input=2.0, output=4.0, written=2.5)).cost(usage) == 2.5


async def test_a_reply_carries_its_cost() -> None:
    async with FaultServer([stream_of("a")] * 2) as server:
        prices = PriceSettings(input=1e6, output=0)
        priced = build_model(LLMSettings(model="m", base_url=server.url, prices=prices), {})
        assert (await reply_of(priced, Request([]))).cost_usd == 10.0
        assert (
            await reply_of(build_model(LLMSettings(model="m", base_url=server.url), {}), Request([]))
        ).cost_usd is None


# ---- tokens


def request(text: str, **fields: Any) -> Request:
    return Request([Message.user_message(text)], **fields)


def test_tokens_are_about_a_quarter_of_the_bytes() -> None:
    meter = TokenMeter()
    assert meter.estimate(request("x" * 4000)) == pytest.approx(1000, rel=0.02)
    assert meter.estimate(request("語" * 4000)) == pytest.approx(3000, rel=0.02)
    assert meter.estimate_messages([Message.user_message("x" * 4000)]) == meter.estimate(request("x" * 4000))


def test_everything_that_is_sent_counts() -> None:
    meter = TokenMeter()
    tool = {"type": "function", "function": {"name": "f", "description": "d" * 400}}
    base = meter.estimate(request("x"))
    assert meter.estimate(request("x", system="s" * 400)) >= base + 100
    assert meter.estimate(request("x", tail=Tail("t" * 400))) >= base + 100
    assert meter.estimate(request("x", tools=(tool,))) >= base + 100
    assert meter.estimate(Request([Message.user_message("x", "iVBORw0KGgo=")])) == base + IMAGE_TOKENS


def test_what_the_provider_counts_corrects_later_estimates() -> None:
    meter = TokenMeter()
    asked = request("{} " * 2000)
    first = meter.estimate(asked)
    for _ in range(8):
        meter.observe(asked, first * 2)
    assert meter.estimate(asked) == pytest.approx(first * 2, rel=0.02)


@pytest.mark.parametrize("counted", [0, -5, 10**12])
def test_a_senseless_count_does_not_spoil_the_estimate(counted: int) -> None:
    meter = TokenMeter()
    meter.observe(request("x" * 4000), counted)
    meter.observe(request("x"), 5000)
    assert 0.25 <= meter.factor <= 4.0


def test_a_missing_usage_is_estimated_from_both_sides() -> None:
    usage = TokenMeter().guess(request("x" * 4000), Reply(content="y" * 400))
    assert usage.input == pytest.approx(1000, rel=0.02)
    assert usage.output == pytest.approx(100, rel=0.1)
