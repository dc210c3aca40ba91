"""What is known of Anthropic's models by their names, and what a request to one of them is made with."""

from __future__ import annotations

import re
from dataclasses import dataclass

from handwork.schema import JSON

_NAME = re.compile(r"claude-(?P<family>[a-z]+)-(?P<major>\d+)(?:[-.](?P<minor>\d{1,2}))?(?!\d)", re.IGNORECASE)
"""`claude-opus-4-7`, `anthropic/claude-sonnet-4.6`; not the older `claude-3-5-sonnet-…`."""
_OLD = re.compile(r"claude-(?:v?\d|instant)", re.IGNORECASE)
_NEWEST = (99, 0)
_ADAPTIVE_ROOM = 16_000
"""Tokens that a model may think when it decides itself how much."""


@dataclass(frozen=True, slots=True)
class MessagesOptions:
    """Facts about a model, and the settings that go with every request.

    max_tokens: bounds what is said; thinking comes on top.
    thinking: a budget in tokens; `adaptive`, or an effort (then adaptive with that effort); None for the model's own default.
    takes_temperature: False where the model refuses it whatever else is sent.
    thinks_unasked: it thinks unless told not to, so that room for it is needed, and calls cannot be forced.
    """

    model: str
    max_tokens: int = 4096
    temperature: float | None = None
    thinking: int | str | None = None
    takes_temperature: bool = True
    thinks_unasked: bool = False

    @property
    def folds(self) -> bool:
        """Whether user turns after a tool result go into it: with thinking, such a turn would void the thoughts before it."""
        return self.thinking is not None

    @property
    def wire(self) -> str:
        """Names all that decides a message's bytes: bytes of the same wire can be used again."""
        return f"anthropic-{int(self.folds)}"

    def thinking_fields(self) -> dict[str, JSON]:
        """The fields of a request that switch thinking on as configured."""
        if self.thinking is None:
            return {}
        if isinstance(self.thinking, int):
            return {"thinking": {"type": "enabled", "budget_tokens": self.thinking}}
        fields: dict[str, JSON] = {"thinking": {"type": "adaptive", "display": "summarized"}}
        return fields if self.thinking == "adaptive" else fields | {"output_config": {"effort": self.thinking}}

    def room_to_think(self, *, asked: bool) -> int:
        """Tokens to add to the bound of a reply, which counts thinking too. `asked`: it is switched on in this request."""
        if asked and isinstance(self.thinking, int):
            return self.thinking
        return _ADAPTIVE_ROOM if asked or self.thinks_unasked else 0


def messages_options(
    model: str, max_tokens: int, temperature: float | None, thinking: int | str | None
) -> MessagesOptions:
    """What we know about a model of this name."""
    version = _version(model)
    return MessagesOptions(
        model=model,
        max_tokens=max_tokens,
        temperature=temperature,
        thinking=thinking,
        takes_temperature=version < (4, 7),  # later ones refuse every value but the default
        thinks_unasked=version >= (5, 0),
    )


def _version(model: str) -> tuple[int, int]:
    """(0, 0) for the first models and for those that are not Anthropic's; a name without a number is taken for a new one."""
    if found := _NAME.search(model):
        return int(found["major"]), int(found["minor"] or 0)
    return _NEWEST if "claude-" in model.lower() and not _OLD.search(model) else (0, 0)
