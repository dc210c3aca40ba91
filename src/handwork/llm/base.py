"""The port to a model: one method."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

from handwork.schema import Request, StreamItem


@runtime_checkable
class Model(Protocol):
    """Anything that answers a Request with a stream of items that ends with exactly one Reply.

    Failures are raised as ModelError. Closing the iterator early (`aclose`) ends the request and frees its connection.
    A model that holds resources may have `async def aclose()`.
    """

    @property
    def name(self) -> str:
        """`provider:model`, for people, events and prices."""
        ...

    def stream(self, request: Request) -> AsyncIterator[StreamItem]:
        """Ask; yields deltas as they arrive, then one Reply."""
        ...
