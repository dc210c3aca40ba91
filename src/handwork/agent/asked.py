"""What a run is asked to do, in words and pictures, and how it enters the history."""

from __future__ import annotations

from dataclasses import dataclass

from handwork.schema import Image, Message, Role

_WITH_THE_ANSWER = "Images given with the answer:"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request; without `text` the run goes on where memory stands."""

    text: str | None = None
    images: tuple[Image, ...] = ()


def messages_of(asked: Asked, left_over: Asked, wanted: str | None) -> list[Message]:
    """The user's messages that begin a run.

    Args:
        asked: what this run was given.
        left_over: what an earlier run was given and never came to.
        wanted: the text that is to be worked on; None if it was the answer to a waiting question.
    """
    given = asked if asked.text else left_over
    if wanted is None:
        return [_message(_WITH_THE_ANSWER, given.images)] if given.images else []
    earlier = asked.text and left_over.text and left_over.text != wanted
    images = given.images or (left_over.images if left_over.text == wanted else ())
    return [*([_message(left_over.text or "", left_over.images)] if earlier else []), _message(wanted, images)]


def _message(text: str, images: tuple[Image, ...]) -> Message:
    return Message(role=Role.USER, content=text, images=images)
