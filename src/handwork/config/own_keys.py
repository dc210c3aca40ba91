"""Our own keys: which they are in an environment, and texts without them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from handwork.schema import JSON

_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASS|PASSWORD|PASSWD|PWD|PAT|CREDENTIALS?)(_|\d|$)|APIKEY|PASSWORD")
_SHORTEST = 8
"""Characters from which on something is masked: what is shorter may be a word that merely looks alike."""


def keys_in(environ: Mapping[str, str]) -> frozenset[str]:
    """What an environment holds under a name that says that it is secret, and passwords in its URLs."""
    found = set()
    for name, value in environ.items():
        if _NAMES.search(name.upper()):
            found.add(value)
        elif "://" in value and "@" in value:
            found.add(_password_in(value))
    return frozenset(found)


def without_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment for programs that we start outside of the sandbox: keys, passwords, whatever repeats one, and our own
    settings are left out."""
    long = {value for value in keys_in(environ) if _can_be_masked(value)}
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith("HANDWORK_")
        and (value.startswith("/") or not _NAMES.search(name.upper()))
        and not any(key in value for key in long)
    }


def _password_in(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:
        return ""


class Masks:
    """Takes keys out of what is remembered, journaled or shown."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._keys: tuple[str, ...] = ()
        self.hide(keys)

    def hide(self, keys: Iterable[str]) -> None:
        """Have these taken out from now on, too."""
        if new := {key for key in keys if _can_be_masked(key)}.difference(self._keys):
            self._keys = tuple(sorted({*self._keys, *new}, key=len, reverse=True))  # one may hold another

    def masked(self, value: JSON) -> Any:
        """A text, or the texts in a JSON value, with *** in the place of each key."""
        if not self._keys:
            return value
        match value:
            case str():
                for key in self._keys:
                    if key in value:
                        value = value.replace(key, "***")
                return value
            case list() | tuple():
                return [self.masked(item) for item in value]
            case dict():
                return {self.masked(name): self.masked(item) for name, item in value.items()}
        return value


def _can_be_masked(key: str) -> bool:
    return len(key) >= _SHORTEST and not key.startswith(("/", "env:"))
