"""What an MCP server answers with, as plain values: the parts of results, prompts and resources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from handwork.schema import JSON


@dataclass(frozen=True, slots=True)
class Text:
    """A text."""

    text: str


@dataclass(frozen=True, slots=True)
class Media:
    """A picture or a sound: `data` is base64."""

    kind: Literal["image", "audio"]
    data: str
    media_type: str


@dataclass(frozen=True, slots=True)
class Link:
    """A resource that is named and not sent along."""

    uri: str
    name: str = ""
    description: str = ""
    media_type: str = ""


@dataclass(frozen=True, slots=True)
class Embedded:
    """A resource's content: `text`, or `blob` as base64."""

    uri: str
    text: str | None = None
    blob: str | None = None
    media_type: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part of a kind that we do not know; `kind` is what the server calls it."""

    kind: str


Part: TypeAlias = Text | Media | Link | Embedded | Unknown


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answered. `structured` is its JSON (None: none was sent); `failed`: the server says that the call failed."""

    parts: tuple[Part, ...] = ()
    structured: JSON = None
    failed: bool = False
    meta: Mapping[str, JSON] | None = None


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt."""

    role: Literal["user", "assistant"]
    part: Part
