"""Values of a workspace's files as a question may show them: on one line, with secrets by their kind, and nothing that acts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from handwork.cli.clean import show_exactly
from handwork.config.masking import VARIABLE
from handwork.config.mcp_variables import variables_in

_LONGEST = 1000
"""Characters of one value; what is longer is cut, and said to be."""
_MOST = 40
"""Values of one kind that are named."""
_VARIABLES = 200
_SECRET = ("api_key", "password", "VNC_password")


def key_in(value: str) -> str:
    """Where a key comes from."""
    taken = VARIABLE.fullmatch(value)
    return f"the key in your variable {taken['name']}" if taken else "a key that stands there"


def value_of(key: str, value: Any) -> str:
    """What a key is set to."""
    if key in _SECRET or key.endswith("_api_key"):
        return key_in(str(value))
    return plain(str(value) if not isinstance(value, bool) else str(value).lower())


def named(values: Mapping[str, Any]) -> str:
    """Names, and the variables of the user that are taken for them."""
    found = []
    for name, value in list(values.items())[:_MOST]:
        taken = " or ".join(dict.fromkeys(variables_in(value)))
        found.append(plain(f"{name} from your variable {taken}" if taken else name))
    return ", ".join(found) + _more(len(values), _MOST)


def variables(values: Any) -> str:
    """The variables of the user that are named anywhere in some values: those that are set come first."""
    found = sorted(dict.fromkeys(variables_in(values)), key=lambda name: name not in os.environ)
    return ", ".join(map(plain, found[:_VARIABLES])) + _more(len(found), _VARIABLES)


def listed(values: Iterable[Any]) -> str:
    """The first values, and how many more there are."""
    every = list(dict.fromkeys(map(str, values)))
    return ", ".join(map(plain, every[:_MOST])) + _more(len(every), _MOST)


def plain(text: str) -> str:
    """Text on one line with everything spelt out that hides or acts."""
    more = f"… ({len(text) - _LONGEST:,} characters more)" if len(text) > _LONGEST else ""
    return show_exactly(text[:_LONGEST]).replace("\n", "⏎") + more


def _more(found: int, shown: int) -> str:
    return f" and {found - shown:,} more" if found > shown else ""
