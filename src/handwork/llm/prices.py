"""What a request cost in USD: the configured prices, else genai-prices' bundled table; an unknown price is None, never zero."""

from __future__ import annotations

import asyncio
import importlib
from urllib.parse import urlsplit

from handwork.config import PriceSettings
from handwork.config.user_proxy import is_loopback
from handwork.schema import Usage


class Prices:
    """The prices of one model at one address.

    Args:
        model: its name at the provider.
        url: the address; the table finds the provider by it. Loopback and unknown addresses have no known price.
        own: configured prices, instead of the table's.
    """

    def __init__(self, model: str, url: str, own: PriceSettings | None = None) -> None:
        self._model, self._url, self._own = model, url, own
        self._may_be_known = not is_loopback(urlsplit(url).hostname or "")
        self._loaded = False

    async def cost(self, usage: Usage) -> float | None:
        """USD of a request with this usage."""
        if self._own is not None:
            return _own_cost(self._own, usage)
        if not self._may_be_known:
            return None
        if not self._loaded:  # the table takes 0.15 s to load: not on the loop
            await asyncio.to_thread(_load)
            self._loaded = True
        cost = _table_cost(self._model, self._url, usage)
        self._may_be_known = cost is not None
        return cost


def _own_cost(price: PriceSettings, usage: Usage) -> float | None:
    if usage.written and price.written is None:
        return None  # writing to a cache costs more than input does: guessing would count too little
    cached = price.input if price.cached is None else price.cached
    millionths = (
        (usage.input - usage.cached - usage.written) * price.input
        + usage.cached * cached
        + usage.written * (price.written or 0.0)
        + usage.output * price.output
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
