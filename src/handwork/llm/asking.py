"""Asking any Model and closing it again, whatever it is made of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from handwork.errors import BrokenStreamError
from handwork.llm.base import Model
from handwork.schema import Reply, Request, StreamItem


@asynccontextmanager
async def asking(model: Model, request: Request) -> AsyncIterator[AsyncIterator[StreamItem]]:
    """The stream of items of a request; leaving the block early ends the request."""
    items = model.stream(request)
    try:
        yield items
    finally:
        if (aclose := getattr(items, "aclose", None)) is not None:
            await aclose()


async def reply_of(model: Model, request: Request) -> Reply:
    """Ask and pass over the deltas.

    Raises:
        ModelError: as the model raises it; BrokenStreamError if its stream ends without a reply.
    """
    async with asking(model, request) as items:
        async for item in items:
            if isinstance(item, Reply):
                return item
    raise BrokenStreamError("the model's stream ended without a reply", model=model.name)


def goes_to(model: Model, request: Request) -> str:
    """The name of the model that a request will be sent to, which may depend on what is in it."""
    route = getattr(model, "goes_to", None)
    return model.name if route is None else str(route(request))


async def close_model(model: Model) -> None:
    """Close a model that holds resources."""
    if (aclose := getattr(model, "aclose", None)) is not None:
        await aclose()
