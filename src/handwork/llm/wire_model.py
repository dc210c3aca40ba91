"""The Model that speaks one of our own wires over HTTP: codec, transport and price together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from handwork.errors import (
    BadRequestError,
    BrokenStreamError,
    ModelConnectionError,
    ModelError,
    ModelNotFoundError,
    ModelTimeoutError,
)
from handwork.llm.failures import Source, error_of
from handwork.llm.prices import Prices
from handwork.llm.transport import Answer, Transport
from handwork.llm.wire import Body, Decoder, Encoder
from handwork.schema import Reply, Request, StreamItem


class WireModel:
    """One model at one address. `name` is `provider:model`. One try a request: Retry makes more of it."""

    def __init__(
        self,
        source: Source,
        encoder: Encoder,
        decoder: Callable[[Source], Decoder],
        transport: Transport,
        prices: Prices,
    ) -> None:
        self._source, self._transport, self._prices = source, transport, prices
        self._encoder, self._decoder = encoder, decoder

    @property
    def name(self) -> str:
        return f"{self._source.provider}:{self._source.model}"

    async def stream(self, request: Request) -> AsyncIterator[StreamItem]:
        body = self._encoded(request)
        for notice in body.notices:
            yield notice
        decoder = self._decoder(self._source)
        try:
            async with self._transport.post(body.data, _remaining(request)) as answer:
                if answer.status != 200:
                    raise await self._refused(answer)
                if "html" in (kind := answer.headers.get("content-type", "")):
                    raise self._source.error(
                        ModelNotFoundError,
                        f"the address answers with a web page ({kind}), not as a model",
                        "check the base URL: most end in /v1",
                    )
                while not decoder.done and (read := await answer.read()):
                    for item in decoder.feed(read):
                        yield item
                if decoder.done:
                    await answer.settle()
        except ModelError as error:
            # what is behind it (aiohttp's request, the parser's document) holds the key; the message has the reason
            error.__cause__ = error.__context__ = None
            broken = isinstance(error, ModelConnectionError | ModelTimeoutError | BrokenStreamError)
            if not (broken and decoder.ended):  # else the answer is whole, and only its connection failed
                raise
        yield await self._priced(decoder.finish())

    async def aclose(self) -> None:
        """Free the connection; the model can be asked again."""
        await self._transport.aclose()

    def _encoded(self, request: Request) -> Body:
        try:
            return self._encoder.encode(request)
        except (ValueError, RecursionError) as error:
            raise self._source.error(BadRequestError, f"the request cannot be written as JSON: {error}") from None

    async def _refused(self, answer: Answer) -> ModelError:
        if 300 <= answer.status < 400:
            message = f"HTTP {answer.status}: redirected to {answer.headers.get('location', 'nowhere')}"
            return self._source.error(ModelNotFoundError, message, "set the base URL to the final address")
        return error_of(self._source, answer.status, await answer.error_body(), answer.headers)

    async def _priced(self, reply: Reply) -> Reply:
        if reply.usage is None or reply.cost_usd is not None:
            return reply
        cost = await self._prices.cost(reply.usage)
        return reply if cost is None else replace(reply, cost_usd=cost)


def _remaining(request: Request) -> float | None:
    """Seconds until the run's deadline."""
    return None if request.deadline is None else request.deadline - asyncio.get_running_loop().time()
