"""Reasoning on the chat-completions wire: what comes in, and what a provider wants back unchanged."""

from __future__ import annotations

from handwork.llm.jsontext import sendable
from handwork.schema import JSON, Thinking, scrub

CONTENT = "reasoning_content"
"""DeepSeek, Qwen, Moonshot …: one text."""
DETAILS = "reasoning_details"
"""OpenRouter: a list of typed parts, some signed or encrypted."""
_GROWING = ("text", "summary", "data", "signature")


class ThinkingParts:
    """Collects the reasoning of one reply from its deltas (or from one whole message)."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._field = ""
        self._details: list[dict[str, JSON]] = []
        self._grown: list[dict[str, list[str]]] = []
        """Per detail the pieces of its growing fields, joined once at the end."""

    def add(self, delta: JSON) -> str:
        """Take what a delta holds; returns the text that is new, for people."""
        details = delta.get(DETAILS)
        if details and isinstance(details, list):
            return "".join([self._add_detail(detail) for detail in details if isinstance(detail, dict)])
        for field in (CONTENT, "reasoning"):
            text = delta.get(field)
            if text and isinstance(text, str):
                if not self._details:
                    self._field = self._field or field
                    self._text.append(text)
                return text
        return ""

    def add_text(self, text: str) -> None:
        """Reasoning from somewhere else (Mistral's content parts), which nobody wants back."""
        self._text.append(text)

    def _add_detail(self, detail: dict[str, JSON]) -> str:
        last = self._details[-1] if self._details else None
        if last is None or (last.get("type"), last.get("index"), last.get("id")) != _key(detail, last):
            last = {}
            self._details.append(last)
            self._grown.append({})
        for name, value in detail.items():
            if name in _GROWING and isinstance(value, str):
                self._grown[-1].setdefault(name, []).append(value)
                last.setdefault(name, "")
            elif value is not None or name not in last:
                last[name] = value
        text = detail.get("text") or detail.get("summary") or ""
        return text if isinstance(text, str) else ""

    def finish(self) -> tuple[Thinking, ...]:
        if self._details:
            for detail, grown in zip(self._details, self._grown, strict=True):
                detail.update({name: "".join(pieces) for name, pieces in grown.items()})
            details = sendable(self._details)
            return tuple(Thinking(text=_shown(detail), opaque={DETAILS: detail}) for detail in details)
        text = scrub("".join(self._text))
        if not text:
            return ()
        return (Thinking(text=text, opaque={CONTENT: text} if self._field == CONTENT else None),)


def _key(detail: dict[str, JSON], last: dict[str, JSON]) -> tuple[JSON, JSON, JSON]:
    """What tells details apart; the later deltas of one may leave its id out."""
    return detail.get("type"), detail.get("index"), detail.get("id", last.get("id")) or last.get("id")


def _shown(detail: dict[str, JSON]) -> str:
    text = detail.get("text") or detail.get("summary") or ""
    return scrub(text) if isinstance(text, str) else ""


def fields_to_send(thinking: tuple[Thinking, ...], wanted: frozenset[str]) -> dict[str, JSON]:
    """The fields of an assistant message that give its reasoning back to a provider that wants them."""
    fields: dict[str, JSON] = {}
    for part in thinking:
        opaque = part.opaque or {}
        if CONTENT in opaque and CONTENT in wanted:
            fields[CONTENT] = fields.get(CONTENT, "") + opaque[CONTENT]
        elif DETAILS in opaque and DETAILS in wanted:
            fields.setdefault(DETAILS, []).append(opaque[DETAILS])
    return fields
