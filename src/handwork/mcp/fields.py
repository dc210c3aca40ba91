"""One field of a form that a server wants filled in: how it is described to a person, and what an answer comes to."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from urllib.parse import urlsplit

from handwork.errors import ArgumentsError
from handwork.mcp.cleaning import clean, one_line
from handwork.schema import JSON, scrub
from handwork.tool.check import validate

_SHOWN = 50
_LONGEST = 1_000
_YES, _NO = frozenset({"yes", "y", "true"}), frozenset({"no", "n", "false"})
_SECRETS = re.compile(
    r"passw|passphrase|passcode|secret|token|api.?key|credential|private.?key|seed phrase|recovery code|"
    r"\b(?:pin|otp|cvv|cvc|2fa|mfa|ssn|iban)\b|one.?time code|card number|credit card|"
    r"passwort|kennwort|contraseña|mot de passe|senha|пароль|密码|密碼|パスワード|비밀번호",
    re.IGNORECASE,
)
_UNWISE = (
    "This looks like a secret. A server is not to ask for one like this: what you answer goes to it and is kept in the session. "
    "You had better decline."
)
_FORMATS = {
    "email": "an e-mail address",
    "uri": "an address with its scheme, like https://example.org",
    "date": "a date: YYYY-MM-DD",
    "date-time": "a date and time: YYYY-MM-DDThh:mm:ssZ",
}


class Refusal(Exception):
    """An answer does not fit; says why, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Field:
    """`choices` are the values that can be chosen, with what a person reads for each; () where anything of its kind fits."""

    name: str
    rule: Mapping[str, JSON]
    kind: str
    required: bool
    choices: tuple[tuple[str, str], ...] = ()

    def described(self, message: object = "") -> str:
        """The field as a question; `message` is what the server says about the whole form."""
        rule = self.rule
        title = one_line(rule.get("title")) or one_line(self.name)
        lines = [f"{title} ({self._wanted()})"]
        if text := clean(rule.get("description"), _LONGEST).strip():
            lines += [f"> {line}" for line in text.split("\n")]
        shown = self.choices[:_SHOWN]
        lines += [f"  {number}. {one_line(label)}" for number, (_, label) in enumerate(shown, 1)]
        if more := len(self.choices) - len(shown):
            lines.append(f"  and {more} more")
        if _SECRETS.search(" ".join(map(str, (self.name, title, text, message if isinstance(message, str) else "")))):
            lines.append(_UNWISE)
        return "\n".join((*lines, self._without()))

    def value(self, text: str) -> JSON:
        """What an answer comes to; None leaves the field out. Raises Refusal."""
        if not text:
            if "default" in self.rule and self._fits(self.rule["default"]):
                return self.rule["default"]
            if self.required:
                raise Refusal("an answer is needed")
            return None
        made = self._read(scrub(text))
        try:
            validate({"answer": made}, {"type": "object", "properties": {"answer": dict(self.rule)}})
        except ArgumentsError as error:
            raise Refusal(one_line(error.message)) from None
        return made

    def _read(self, text: str) -> JSON:
        match self.kind:
            case "boolean":
                if text.lower() in _YES | _NO:
                    return text.lower() in _YES
                raise Refusal("yes or no is needed")
            case "integer" | "number":
                return _number(text, whole=self.kind == "integer")
            case "array":
                parts = [] if text.lower() == "none" else [part.strip() for part in text.split(",")]
                return list(dict.fromkeys(self._chosen(part) for part in parts if part))
        if self.choices:
            return self._chosen(text)
        plain = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
        return _formatted(plain, self.rule.get("format"))

    def _chosen(self, text: str) -> str:
        """A choice by its value, its words or its number: a value that looks like a number comes first."""
        values = [value for value, _ in self.choices]
        if text in values:
            return text
        alike = [value for value, label in self.choices if text.lower() in (value.lower(), label.lower())]
        if len(alike) == 1:
            return alike[0]
        if text.isascii() and text.isdigit() and len(text) < 5 and 0 < int(text) <= len(values):
            return values[int(text) - 1]
        raise Refusal(f"{one_line(text, 40)!r} is none of the choices")

    def _fits(self, value: JSON) -> bool:
        try:
            validate({"answer": value}, {"type": "object", "properties": {"answer": dict(self.rule)}})
        except ArgumentsError:
            return False
        return True

    def _wanted(self) -> str:
        rule = self.rule
        if self.kind == "array":
            return "several of these, by number or words, with commas between"
        if self.choices:
            return "one of these, by number or words"
        if self.kind == "boolean":
            return "yes or no"
        words = {"integer": "a whole number", "number": "a number"}.get(self.kind, "")
        bounds = [
            f"{word} {rule[key]}"
            for key, word in (("minimum", "at least"), ("maximum", "at most"))
            if type(rule.get(key)) in (int, float)
        ]
        return ", ".join([words or _FORMATS.get(str(rule.get("format")), "text"), *bounds])

    def _without(self) -> str:
        """What no answer means."""
        if "default" in self.rule and self._fits(self.rule["default"]):
            return f"An empty answer takes {self._said(self.rule['default'])}."
        return "An answer is needed." if self.required else "An empty answer leaves it out."

    def _said(self, value: JSON) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        labels = dict(self.choices)
        if isinstance(value, list):
            return ", ".join(one_line(labels.get(str(each), str(each))) for each in value) or "none"
        return one_line(labels.get(str(value), str(value)))


def field_of(name: str, rule: JSON, *, required: bool) -> Field:
    """A field by its schema: text, number, yes or no, one or several of some choices (in all spellings of the protocol)."""
    rule = json.loads(scrub(json.dumps(rule, ensure_ascii=False))) if isinstance(rule, dict) else {}
    kind = rule.get("type")
    source = rule.get("items") if kind == "array" else rule
    choices = _choices(source if isinstance(source, dict) else {})
    return Field(name, rule, kind if isinstance(kind, str) else "string", required, choices)


def _choices(rule: Mapping[str, JSON]) -> tuple[tuple[str, str], ...]:
    values, labels = rule.get("enum"), rule.get("enumNames")
    if isinstance(values, list):
        named = labels if isinstance(labels, list) and len(labels) == len(values) else values
        pairs = zip(values, named, strict=True)
        return tuple((each, str(label)) for each, label in pairs if isinstance(each, str))
    each = rule.get("oneOf") or rule.get("anyOf")
    if not isinstance(each, list):
        return ()
    titled = [one for one in each if isinstance(one, dict) and isinstance(one.get("const"), str)]
    return tuple((one["const"], str(one.get("title") or one["const"])) for one in titled)


def _number(text: str, *, whole: bool) -> JSON:
    if not re.fullmatch(r"[+-]?[0-9]{1,300}(?:\.[0-9]{1,300})?(?:[eE][+-]?[0-9]{1,3})?", text):
        raise Refusal("a number is needed")
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise Refusal("the number is too large")
    if re.fullmatch(r"[+-]?[0-9]+", text):
        return int(text)
    if whole:
        raise Refusal("a whole number is needed")
    return number


def _formatted(text: str, kind: JSON) -> str:
    match kind:
        case "email":
            fits = bool(re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s.]+", text))
        case "uri":
            fits = _is_address(text)
        case "date" | "date-time":
            fits = _is_time(text, kind)
        case _:
            return text
    if not fits:
        raise Refusal(f"{_FORMATS[str(kind)]} is needed")
    return text


def _is_address(text: str) -> bool:
    try:
        found = urlsplit(text)
    except ValueError:
        return False
    return bool(found.scheme and (found.netloc or found.path)) and not re.search(r"\s", text)


def _is_time(text: str, kind: str) -> bool:
    try:
        if kind == "date":
            return len(text) == len("2026-01-31") and bool(date.fromisoformat(text))
        return "T" in text and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
