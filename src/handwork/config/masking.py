"""Secrets hidden in what is shown of the configuration: keys, passwords in addresses, values of headers and variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

VARIABLE = re.compile(r"(?P<before>(?:[A-Za-z]+ )?)env:(?P<name>[A-Za-z_]\w*)", re.ASCII)
"""A secret that is looked up in the environment; before it may stand a scheme, as in `Bearer env:NAME`."""
_REFERENCE = re.compile(r"(?:[A-Za-z]+ )?\$\{(?:env:)?[A-Za-z_]\w*\}", re.ASCII)
"""The same as an MCP server's entry may write it."""
_TELLS = 16
"""A secret of so many characters may show its last four."""
_WORDS = r"[\w-]*(?:key|token|secret|passw(?:or)?d|passphrase|credentials?|auth|authorization|cookie)[\w-]*"
_ADDRESS = re.compile(r"(?:https?|wss?)://", re.IGNORECASE)
_USER = re.compile(r"(?<=://)(?:[^/?#\s:]*:[^?#\s]*|[^/?#\s]*)@")  # a password may hold @ and /
_QUERY = re.compile(r"([?&;]([^=&#\s?;]+)=)[^&#\s]+")
_HARMLESS = {"api-version", "version", "lang", "model"}
_NAMED = re.compile(rf"(?i)\b({_WORDS}[\"']?\s*[=:]\s*[\"']?)((?:bearer|basic)\s+)?[^\s\"',;]+")
_OPTION = re.compile(rf"(?i)(?<!\S)(--?{_WORDS}\s+)\S+")
_IS_OPTION = re.compile(rf"(?i)--?(?:{_WORDS}|H|header)")
_SCHEME = re.compile(r"(?i)\b((?:bearer|basic)\s+)\S{6,}")
_FORM = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|gh[opsu]|github_pat|glpat|xox[abpr]|AIza|AKIA|hf|csk|fw|tgp)[-_]?[\w-]{12,}", re.A
)


def masked(secret: str) -> str:
    """A secret as it may be shown: of a long one its kind (`sk-`) and last four characters, of a short one nothing.

    `env:NAME` and `${NAME}` are none; an address shows all but what is secret in it.
    """
    named = VARIABLE.fullmatch(secret) or _REFERENCE.fullmatch(secret)
    if not secret or (named and not _FORM.search(secret)):  # a key by mistake, not a variable's name
        return secret
    if _ADDRESS.match(secret):
        return without_secrets(secret)
    scheme, _, key = secret.rpartition(" ")
    begin = f"{scheme} " if scheme.lower() in ("bearer", "basic") else ""
    begin += "sk-" if key.startswith("sk-") else ""
    return f"{begin}…{key[-4:]}" if len(key) >= _TELLS and key[-4:].isalnum() else f"{begin}…"


def without_secrets(text: str) -> str:
    """A text that is no secret itself, without those in it: user and password of an address, values of its query, what has the
    name or the form of a key."""
    text = _USER.sub("…@", text)
    if "://" in text:
        text = _QUERY.sub(lambda found: found[0] if found[2].lower() in _HARMLESS else f"{found[1]}…", text)
    text = _NAMED.sub(lambda found: found[1] + "…", text)
    text = _OPTION.sub(lambda found: found[1] + "…", text)
    text = _SCHEME.sub(lambda found: found[1] + "…", text)
    return _FORM.sub(lambda found: masked(found[0]), text)


def shown(value: Any, *, secret: bool = False) -> Any:
    """A setting's value as it may be shown, as JSON has it. `secret`: it is one itself, or all that it holds are."""
    if isinstance(value, str):
        return masked(value) if secret else without_secrets(value)
    if isinstance(value, Mapping):
        return {name: shown(inner, secret=secret) for name, inner in value.items()}
    if isinstance(value, Sequence):
        before = ["", *map(str, value)]
        return [
            "…" if _IS_OPTION.fullmatch(option) and not str(inner).startswith("-") else shown(inner, secret=secret)
            for option, inner in zip(before, value, strict=False)
        ]
    return value
