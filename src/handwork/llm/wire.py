"""What a wire of a model's provider consists of: an encoder of requests and a decoder of answers, both pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from handwork.schema import ModelNotice, Reply, Request, StreamItem


@dataclass(frozen=True, slots=True)
class Body:
    """An encoded request. Its first `stored` bytes are the stored part: later requests begin with the same bytes, as long as
    tools and settings stay and the history only grows (marks for a provider's cache apart)."""

    data: bytes
    stored: int
    notices: tuple[ModelNotice, ...] = ()


class Encoder(Protocol):
    """Encodes the requests to one model."""

    def encode(self, request: Request) -> Body:
        """The body. Raises ValueError for what cannot be written as JSON."""
        ...


class Decoder(Protocol):
    """Decodes one answer: `feed` it network reads as they come, then call `finish`. Both raise ModelError."""

    @property
    def done(self) -> bool:
        """Nothing that matters follows."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the answer has its end, though more may follow (usage)."""
        ...

    def feed(self, read: bytes) -> list[StreamItem]:
        """The items that this read completes."""
        ...

    def finish(self) -> Reply:
        """The whole answer."""
        ...
