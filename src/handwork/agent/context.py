"""What is sent to the model: a pure projection of memory, prompts and tools (DESIGN "The request to the model")."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from pydantic_core import to_json

from handwork.schema import JSON, Memory, Tail


def filled(prompt: str | None, workspace: Path) -> str | None:
    """A prompt with the workspace in the place of `{directory}`."""
    return prompt.replace("{directory}", str(workspace)) if prompt else None


@lru_cache(maxsize=64)
def system_of(prompt: str | None, beside: str, workspace: Path) -> str | None:
    """The system prompt: the role's own, then what is said of the place and by the project, in which nothing is filled in. The same
    object at each step, so that nobody compares, counts or encodes it again."""
    return "\n\n".join(part for part in (filled(prompt, workspace), beside) if part) or None


def tail_of(next_step_prompt: str | None, nudge: str | None) -> Tail | None:
    """The unstored end of a request."""
    text = "\n\n".join(part for part in (next_step_prompt, nudge) if part)
    return Tail(text) if text else None


class RequestKey:
    """The hash of the canonical request without its tail, kept up to date at the cost of what is new.

    Canonical: model, tools and system prompt, then each message as JSON, in order.
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._seen = self._generation = 0
        self._tools: tuple[Mapping[str, JSON], ...] | None = None
        self._tools_hash = ""
        self._head: tuple[str, str, str | None] = ("", "", None)
        self._head_digest = hashlib.sha256()

    def tools(self, tools: tuple[Mapping[str, JSON], ...]) -> str:
        """The hash of a tool list; computed once per list."""
        if tools is not self._tools:
            self._tools, self._tools_hash = tools, hashlib.sha256(to_json(tools)).hexdigest()[:32]
        return self._tools_hash

    def of(self, model: str, system: str | None, tools: tuple[Mapping[str, JSON], ...], memory: Memory) -> str:
        """The key of a request with these parts."""
        if memory.generation != self._generation:
            self._digest, self._seen, self._generation = hashlib.sha256(), 0, memory.generation
        for message in memory.messages[self._seen :]:
            self._digest.update(to_json(message))
        self._seen = len(memory.messages)
        if (head := (model, self.tools(tools), system)) != self._head:
            self._head, self._head_digest = head, hashlib.sha256(to_json(head))
        whole = self._head_digest.copy()
        whole.update(self._digest.digest())
        return whole.hexdigest()[:32]


class CallIds:
    """Gives calls ids that are unique in a history, keeping those that already are."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._seen = self._generation = 0

    def unique(self, wanted: str, memory: Memory) -> str:
        if memory.generation != self._generation:
            self._seen, self._generation = 0, memory.generation
        for message in memory.messages[self._seen :]:
            self._used.update(call.id for call in message.tool_calls)
        self._seen = len(memory.messages)
        fresh, number = wanted, len(self._used)
        while not fresh or fresh in self._used:
            number += 1
            fresh = f"{wanted or 'call'}_{number}"
        self._used.add(fresh)
        return fresh
