"""The names that a server's tools have for the model (CONTRACT D11), and for people."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable

from handwork.mcp.cleaning import one_line

LONGEST = 64
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")
_DIGITS = 8


def tool_names(
    server: str, tools: Iterable[str], *, servers: Iterable[str] = (), taken: Collection[str] = ()
) -> dict[str, str]:
    """What each tool of a server is called: `mcp_<server>_<tool>`, at most 64 characters of `[A-Za-z0-9_-]`, each another one.

    A name that is too long, or that another tool could have just as well, ends with a digest of server and tool. So a name depends on
    nothing but what is offered and configured, never on who connects first.

    Args:
        server: the server's name.
        tools: the server's own names of all its tools.
        servers: the names of all servers of the session; two of them may lead to one name.
        taken: names that others have already: no tool is called so.
    """
    own = list(dict.fromkeys(tools))
    others = {other for other in servers if other != server}
    often = Counter(_plain(server, tool) for tool in own)
    made: dict[str, str] = {}
    for tool in own:
        name = _plain(server, tool)
        exact = often[name] == 1 or not _REFUSED.search(tool)
        if len(name) > LONGEST or not exact or _belongs_elsewhere(name, server, others) or name in taken:
            name = _with_digest(server, tool, name, {*taken, *made.values()})
        made[tool] = name
    return made


def for_people(server: str, tool: str) -> str:
    """A tool as people name it: `server:tool`."""
    return f"{one_line(server)}:{one_line(tool)}"


def _plain(server: str, tool: str) -> str:
    return f"{_of_server(server)}{_REFUSED.sub('_', tool)}"


def _of_server(server: str) -> str:
    return f"mcp_{_REFUSED.sub('_', server)}_"


def _belongs_elsewhere(name: str, server: str, others: Collection[str]) -> bool:
    """Whether another server has the better claim to a name: the one whose own name explains more of it or, of two that are written
    alike, the one that is spelt so exactly."""
    mine = _of_server(server)
    for other in others:
        theirs = _of_server(other)
        if name.startswith(theirs) and (len(theirs) > len(mine) or (theirs == mine and bool(_REFUSED.search(server)))):
            return True
    return False


def _with_digest(server: str, tool: str, name: str, taken: Collection[str]) -> str:
    digest = hashlib.sha256(json.dumps([server, tool]).encode()).hexdigest()
    for digits in range(_DIGITS, LONGEST - len("mcp__")):
        made = f"{name[: LONGEST - digits - 1]}_{digest[:digits]}"
        if made not in taken:
            return made
    raise ValueError(f"There is no name left for the tool {for_people(server, tool)}")
