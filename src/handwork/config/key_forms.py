"""An API key as it was pasted: cleaned of what came along, and whose it is by its form."""

from __future__ import annotations

import re

from handwork.config.providers import PROVIDERS, Provider
from handwork.errors import ConfigError

SHORTEST = 16
LONGEST = 1024
_ASSIGNED = re.compile(r"(?:export\s+|set\s+|\$env:)?[\w.-]*(?:key|token|secret)[\w.-]*[\"']?\s*[:=]\s*", re.IGNORECASE)
"""`export OPENAI_API_KEY=`, `$env:X_API_KEY = `, `"api_key": `: what stands before a key in a file that it is copied from."""
_HEADER = re.compile(r"(?:(?:authorization|x-api-key)\s*:\s*)?(?:bearer\s+)?", re.IGNORECASE)
_AROUND = " \t\r\n\"'`“”‘’«»<>,;"
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"))
"""Characters that web pages and documents put between the letters of a key, and nobody sees."""


def clean_key(pasted: str) -> str:
    """The key in what was pasted: without quotes, spaces, line breaks, and what assigns it; '' for nothing.

    Raises ConfigError, which never shows what was pasted, for what can be no key.
    """
    text = pasted.translate(_INVISIBLE).strip(_AROUND)
    for before in (_ASSIGNED, _HEADER):
        if found := before.match(text):
            text = text[found.end() :].strip(_AROUND)
    text = re.sub(r"[\r\n]+\s*", "", text)  # a long key that was broken into lines
    if not text:
        return ""
    problem = _problem(text)
    if problem:
        raise ConfigError(f"That is no API key: {problem}", hint="copy it again from the page on which it was made")
    return text


def _problem(text: str) -> str:
    if "://" in text:
        return "it is an address"
    if re.search(r"\s", text):
        return "there are spaces in it"
    if not text.isascii() or not text.isprintable():
        return "it holds characters that no key has"
    if set(text) & set("…*•") or "..." in text:
        return "parts of it are hidden"
    if len(text) < SHORTEST:
        return f"it has only {len(text)} characters"
    if len(text) > LONGEST:
        return f"it has {len(text)} characters"
    if re.search(r"your[-_ ]?|example|placeholder|changeme|xxxx", text, re.IGNORECASE) and not re.search(
        r"\d{2}", text
    ):
        return "it is the text that stands in for one"
    return ""


def owners_of(key: str) -> tuple[Provider, ...]:
    """The providers whose keys have this form: one is sure, several have the same, none is unknown."""
    return tuple(each for each in PROVIDERS.values() if each.key_form and re.fullmatch(each.key_form, key))


def shown_key(key: str) -> str:
    """A key so that its owner knows it again and nobody else can use it."""
    begin = re.match(r"[A-Za-z]{2,5}[-_](?:(?:proj|ant|or|kimi|v1)[-_])?", key)
    return f"{begin[0] if begin else ''}…{key[-4:]}" if len(key) >= SHORTEST else "…"
