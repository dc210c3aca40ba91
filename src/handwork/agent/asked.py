"""What a run is asked to do, in words and pictures, and how it enters the history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from handwork.schema import Image, Message, Role, scrub
from handwork.tool.pictures import Source, pictures_of

_WITH_THE_ANSWER = "Images given with the answer:"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request; without `text` the run goes on where memory stands."""

    text: str | None = None
    images: tuple[Image, ...] = ()


async def asked(request: str | None, images: Iterable[Source]) -> Asked:
    """What a run was given, its pictures made ready. Raises PictureError, and ValueError for pictures without words."""
    text = scrub(request) if request else None
    pictures = await pictures_of(images) if images else ()
    if pictures and not text:
        raise ValueError("Images belong to a request: say in words what is to be done with them")
    return Asked(text, pictures)


def messages_of(given: Asked, left_over: Asked, wanted: str | None) -> list[Message]:
    """The user's messages that begin a run.

    Args:
        given: what this run was given.
        left_over: what an earlier run was given and never came to.
        wanted: the text that is to be worked on; None if it was the answer to a waiting question.
    """
    now = given if given.text else left_over
    if wanted is None:
        return [_message(_WITH_THE_ANSWER, now.images)] if now.images else []
    earlier = given.text and left_over.text and left_over.text != wanted
    images = now.images or (left_over.images if left_over.text == wanted else ())
    return [*([_message(left_over.text or "", left_over.images)] if earlier else []), _message(wanted, images)]


def _message(text: str, images: tuple[Image, ...]) -> Message:
    return Message(role=Role.USER, content=text, images=images)
