"""What a call comes to, for the client that made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from handwork.agent.observe import framed
from handwork.errors import HandworkError
from handwork.schema import JSON, Artifact, Image
from handwork.store.past import Outcome


@dataclass(frozen=True, slots=True)
class Answer:
    """`structured` is the whole answer as JSON, where a tool gives one; `details` go along for programs."""

    text: str
    is_error: bool = False
    images: Sequence[Image] = ()
    artifacts: Sequence[Artifact] = ()
    structured: Mapping[str, JSON] | None = None
    details: Mapping[str, JSON] | None = None


def of_outcome(name: str, outcome: Outcome) -> Answer:
    """A tool's outcome, without the words that frame it for an agent's model."""
    frame, _ = framed(name, "…")
    text = outcome.observation.removeprefix(frame)
    return Answer(text, outcome.is_error, outcome.images, outcome.artifacts, details=outcome.details)


def of_error(error: HandworkError) -> Answer:
    """What went wrong, and what can be done about it."""
    return Answer(f"Error: {error}", is_error=True)
