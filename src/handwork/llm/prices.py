"""What a request cost in USD: the configured prices, else genai-prices' bundled table; an unknown price is None, never zero."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Mapping
from urllib.parse import urlsplit

from handwork.llm.transport import is_loopback
from handwork.schema import Usage


class Prices:
    """The prices of one model at one address.

    Args:
        model: its name at the provider.
        url: the address; the table finds the provider by it. Loopback and unknown addresses have no known price.
        own: USD per million tokens by `input`, `cached`, `written` and `output`, instead of the table's; cached and written
            default to input.
    """

    def __init__(self, model: str, url: str, own: Mapping[str, float] | None = None) -> None:
        self._model, self._url, self._own = model, url, dict(own or {})
        self._may_be_known = not is_loopback(urlsplit(url).hostname or "")
        self._loaded = False

    async def cost(self, usage: Usage) -> float | None:
        """USD of a request with this usage."""
        if self._own:
            return self._own_cost(usage)
        if not self._may_be_known:
            return None
        if not self._loaded:  # the table takes 0.15 s to load: not on the loop
            await asyncio.to_thread(_load)
            self._loaded = True
        cost = _table_cost(self._model, self._url, usage)
        self._may_be_known = cost is not None
        return cost

    def _own_cost(self, usage: Usage) -> float:
        price = self._own.get("input", 0.0)
        millionths = (
            (usage.input - usage.cached - usage.written) * price
            + usage.cached * self._own.get("cached", price)
            + usage.written * self._own.get("written", price)
            + usage.output * self._own.get("output", 0.0)
        )
        return millionths / 1e6


def _load() -> None:
    importlib.import_module("genai_prices.data")


def _table_cost(model: str, url: str, usage: Usage) -> float | None:
    """The bundled table's price; it goes out to the network only through UpdatePrices, which we never start."""
    import genai_prices

    counted = genai_prices.Usage(
        input_tokens=usage.input,
        cache_read_tokens=usage.cached,
        cache_write_tokens=usage.written,
        output_tokens=usage.output,
    )
    try:
        return float(genai_prices.calc_price(counted, model, provider_api_url=url).total_price)
    except (LookupError, ValueError):
        return None
