"""A Model for requests with pictures: a model that cannot see gets notes instead, or another one is asked (CONTRACT E7)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

from handwork.errors import BadRequestError, ImageRefusedError, NoVisionError
from handwork.llm.asking import asking, close_model
from handwork.llm.base import Model
from handwork.llm.chat.messages import IMAGE_LEFT_OUT
from handwork.llm.retry import SHOWN
from handwork.schema import Image, Message, ModelNotice, Reply, Request, Rerouted, Role, StreamItem, Tail

_BLIND = "this model takes no images"
_REFUSED = "the provider refused it"


class Sight:
    """Passes requests without pictures on as they are.

    A provider's refusal is believed: the model then counts as blind, or the pictures that it had not taken before as
    unusable, and the request is sent once more without them. So no picture makes a history unusable.

    Args:
        model: the model, with its retries.
        sees: whether it takes pictures, as far as is known.
        eyes: the model that requests with new pictures go to when this one is blind; None: there is none.
    """

    def __init__(self, model: Model, *, sees: bool = True, eyes: Model | None = None) -> None:
        self.model, self.sees, self._eyes = model, sees, eyes
        self._taken: set[str] = set()
        self._refused: set[str] = set()
        """Hashes of pictures that were in an answered request, and of those that no request shall hold."""
        self._told = False
        self._without: dict[int, tuple[Message, Message]] = {}
        """Messages by their ids, and what is sent for them; they stay the same so that they are encoded once."""

    @property
    def name(self) -> str:
        return self.model.name

    def goes_to(self, request: Request) -> str:
        """The name of the model that this request will be sent to."""
        return self._eyes.name if self._eyes is not None and self._needs_eyes(request) else self.name

    def stream(self, request: Request) -> AsyncIterator[StreamItem]:
        """See Model."""
        return self._seeing(request) if _has_images(request) else self.model.stream(request)

    async def aclose(self) -> None:
        await close_model(self.model)
        if self._eyes is not None:
            await close_model(self._eyes)

    async def _seeing(self, request: Request) -> AsyncIterator[StreamItem]:
        if not self.sees and (notice := self._first_notice()):
            yield notice
        model, sent = self._route(request)
        begun = False
        try:
            async with asking(model, sent) as items:
                async for item in items:
                    begun = begun or isinstance(item, SHOWN)
                    if isinstance(item, Reply) and model is self.model:
                        self._taken.update(_hashes(sent))
                    yield item
            return
        except BadRequestError as error:  # pictures are refused before the first word
            if begun or model is not self.model or not (blamed := self._blamed(error, sent)):
                raise
            failed = error
        for notice in self._learn(failed, blamed):
            yield notice
        model, sent = self._route(request)
        if model is not self.model:
            yield Rerouted(model.name)
        proven = isinstance(failed, ImageRefusedError)
        try:
            async with asking(model, sent) as items:
                async for item in items:
                    proven = proven or isinstance(item, Reply)
                    yield item
        except BadRequestError:
            if proven:
                raise
            raise failed from None
        finally:
            if not proven:  # it was something else, or that is not known
                self._refused -= blamed

    def _route(self, request: Request) -> tuple[Model, Request]:
        """Whom to ask, and what to send."""
        if self._eyes is not None and self._needs_eyes(request):
            return self._eyes, request
        return self.model, self._sendable(request)

    def _needs_eyes(self, request: Request) -> bool:
        return not self.sees and _has_new_images(request)

    # ---- what a refusal teaches

    def _blamed(self, error: BadRequestError, sent: Request) -> set[str]:
        """The pictures that an error may be about: those that were never taken before, if there are any; none: it is not."""
        hashes = set(_hashes(sent))
        new = hashes - self._taken
        if isinstance(error, ImageRefusedError):
            return new or hashes
        return new if type(error) is BadRequestError else set()

    def _learn(self, error: BadRequestError, blamed: set[str]) -> Iterator[ModelNotice]:
        self._without.clear()
        if isinstance(error, NoVisionError):
            self.sees = False
            if notice := self._first_notice(" (so its provider says)"):
                yield notice
            return
        self._refused |= blamed
        images = "image" if len(blamed) == 1 else f"{len(blamed)} images"
        yield ModelNotice("warning", f"The request is sent again without its {images}: {error.what}")

    def _first_notice(self, why: str = "") -> ModelNotice | None:
        """What a person is told, once, about a model that takes no pictures."""
        if self._told:
            return None
        self._told = True
        if self._eyes is not None:
            return ModelNotice(
                "info", f"{self.name} takes no images{why}: requests with new ones go to {self._eyes.name}"
            )
        ways = "name a model that sees in [llm.vision], or set [llm] sees_images = true if this one does"
        return ModelNotice("warning", f"{self.name} takes no images{why} and reads a note instead; {ways}")

    # ---- requests without the pictures that are not sent

    def _sendable(self, request: Request) -> Request:
        if self.sees and self._refused.isdisjoint(_hashes(request)):
            return request
        messages = [self._sendable_message(message) if message.images else message for message in request.messages]
        tail = request.tail
        if tail is not None and tail.images:
            kept, text = self._kept(tail.images, tail.text)
            tail = Tail(text, kept)
        return replace(request, messages=messages, tail=tail)

    def _sendable_message(self, message: Message) -> Message:
        known = self._without.get(id(message))
        if known is None or known[0] is not message:
            kept, text = self._kept(message.images, message.content or "")
            known = self._without[id(message)] = (message, replace(message, content=text, images=kept))
        return known[1]

    def _kept(self, images: Sequence[Image], text: str) -> tuple[tuple[Image, ...], str]:
        """The pictures that are sent, and the text with a note for each of the others."""
        kept = tuple(image for image in images if self.sees and image.hash not in self._refused)
        note = IMAGE_LEFT_OUT.format(why=_REFUSED if self.sees else _BLIND)
        return kept, "\n".join([text, *[note] * (len(images) - len(kept))]).lstrip("\n")


_images_of = attrgetter("images")


def _has_images(request: Request) -> bool:
    """Asked of the whole history at every step, so without a frame a message."""
    return any(map(_images_of, request.messages)) or bool(request.tail and request.tail.images)


def _has_new_images(request: Request) -> bool:
    """Whether there are pictures behind the model's last words."""
    if request.tail is not None and request.tail.images:
        return True
    for message in reversed(request.messages):
        if message.role is Role.ASSISTANT:
            return False
        if message.images:
            return True
    return False


def _hashes(request: Request) -> Iterator[str]:
    for message in request.messages:
        for image in message.images:
            yield image.hash
    for image in request.tail.images if request.tail else ():
        yield image.hash
