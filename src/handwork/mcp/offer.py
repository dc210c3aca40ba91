"""What an MCP server offers, as plain values: it is kept, compared and shown without the library that reads it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import field
from typing import Self

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass as validated

from handwork.schema import JSON
from handwork.schema.values import STRICT


@validated(frozen=True, slots=True, config=STRICT)
class ToolOffer:
    """A tool as the server describes it: `parameters` and `returns` are JSON Schemas, `annotations` its own hints about what it does."""

    name: str
    description: str = ""
    parameters: dict[str, JSON] = field(default_factory=dict)
    title: str = ""
    annotations: dict[str, JSON] = field(default_factory=dict)
    returns: dict[str, JSON] | None = None

    @property
    def digest(self) -> str:
        """The same for the same definition, in whatever order its keys came."""
        words = [self.name, self.description, self.parameters, self.title, self.annotations, self.returns]
        return hashlib.sha256(json.dumps(words, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@validated(frozen=True, slots=True, config=STRICT)
class PromptArgument:
    """What a prompt takes; always a text."""

    name: str
    description: str = ""
    required: bool = False


@validated(frozen=True, slots=True, config=STRICT)
class PromptOffer:
    """A prompt that a person can ask the server for."""

    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()
    title: str = ""


@validated(frozen=True, slots=True, config=STRICT)
class ResourceOffer:
    """A resource: `uri` is an address, or with `template` a pattern of addresses (RFC 6570)."""

    uri: str
    name: str = ""
    description: str = ""
    media_type: str = ""
    template: bool = False


@validated(frozen=True, slots=True, config=STRICT)
class Offer:
    """All that a server offers but its resources, which are asked for when they are wanted; tools and prompts by name."""

    server: str = ""
    version: str = ""
    protocol: str = ""
    instructions: str = ""
    tools: tuple[ToolOffer, ...] = ()
    prompts: tuple[PromptOffer, ...] = ()
    resources: bool = False

    def to_json(self) -> dict[str, JSON]:
        found: dict[str, JSON] = TypeAdapter(type(self)).dump_python(self, mode="json")
        return found

    @classmethod
    def from_json(cls, data: JSON) -> Self:
        """Raises pydantic.ValidationError for what is none."""
        return TypeAdapter(cls).validate_json(json.dumps(data))
