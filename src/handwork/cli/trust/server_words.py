"""What the MCP servers of a workspace would do, in words: where each runs, what it is opened to, and what of yours it gets."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from handwork.cli.trust.values import listed, named, plain, value_of, variables
from handwork.config.carried import SERVERS, Carried
from handwork.config.files import is_there
from handwork.config.mcp_file import servers_layer
from handwork.errors import ConfigError

SERVER = "the server "
"""Begins the line of one server, of which there may be many."""
OUTSIDE = "OUTSIDE of the sandbox"
"""Stands in what is said of programs that run with the user's rights."""
_ELSEWHERE = ("command", "args", "url", "cwd", "paths", "oauth")
"""Keys in which a variable is not told with the name that it is given for."""


def mcp_effects(title: str, table: Mapping[str, Any]) -> Iterator[str]:
    """What [mcp] and mcp.json do, in words that are safe to show."""
    for key, value in table.items():
        if key == "servers" and isinstance(value, Mapping):
            used = {
                name: each for name, each in value.items() if isinstance(each, Mapping) and not each.get("disabled")
            }
            yield from _together(used)
            yield from (_server(name, each) for name, each in value.items())
        elif key == "server_reference":
            yield f"starts the Python module {plain(str(value))} as an MCP server"
        else:
            yield f"sets [{plain(title)}] {plain(key)} = {value_of(key, value)}"


def replaced_servers(carried: Carried, own: Path) -> str:
    """The user's own servers (of that file) in whose place those of a workspace would come; '' if there are none."""
    with suppress(ConfigError):  # who loads the file says what is wrong with it
        names = servers_layer(own)[0].tables["mcp"]["servers"] if is_there(own) else {}
        theirs = [name for file in SERVERS if file in carried.files for name in _names(file, carried.files[file])]
        return listed(name for name in theirs if name in names)
    return ""


def _names(file: str, data: bytes) -> list[str]:
    return list(servers_layer(Path(file), data)[0].tables["mcp"]["servers"])


def _together(servers: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What must not be lost among many servers, each once."""
    programs = {name: each for name, each in servers.items() if each.get("command")}
    beside = [name for name, each in programs.items() if each.get("sandbox") is False]
    inside = {name: each for name, each in programs.items() if name not in beside}
    if beside:
        yield f"starts {_programs(len(beside))} {OUTSIDE}, with your rights, files and network: {listed(beside)}"
    if inside:
        yield f"starts {_programs(len(inside))} as MCP servers, in the sandbox"
    if paths := [path for each in inside.values() for path in _list(each.get("paths"))]:
        yield f"lets everything in the sandbox read {listed(paths)}"
    if hosts := [host for each in inside.values() for host in _list(each.get("allow_net"))]:
        yield f"lets everything in the sandbox reach {listed(hosts)}"
    if given := variables(servers):
        yield f"gives MCP servers your variables: {given}"
    if growing := [name for name, each in servers.items() if each.get("new_tools") is True]:
        yield f"takes what these MCP servers add later, without asking you: {listed(growing)}"


def _programs(count: int) -> str:
    return f"{count} program{'s' if count > 1 else ''}"


def _server(name: str, server: Any) -> str:
    if not isinstance(server, Mapping):
        return f"{SERVER}{plain(name)}: {value_of(name, server)}"
    words = [str(server.get("command", "")), *map(str, _list(server.get("args")))]
    what = shlex.join(words) if server.get("command") else f"asks {server.get('url', '')}"
    more = "; ".join(_details(server))
    return plain(f"{SERVER}{name}: {what}") + (f" ({more})" if more else "")


def _details(server: Mapping[str, Any]) -> Iterator[str]:
    if server.get("disabled"):
        yield "switched off"
    if server.get("command") and server.get("sandbox") is False:
        yield OUTSIDE
    if server.get("cwd"):
        yield f"in {plain(str(server['cwd']))}"
    for key in ("env", "headers"):
        if isinstance(values := server.get(key), Mapping) and values:
            yield f"with {key} {named(values)}"
    if taken := variables([server.get(key) for key in _ELSEWHERE]):
        yield f"with your variables {taken}"


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]
