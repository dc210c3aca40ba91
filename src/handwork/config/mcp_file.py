"""mcp.json as a layer: the servers of `mcpServers`, as other programs write them too."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from handwork.config.files import read_text, too_deep, too_much
from handwork.config.key_lines import KeyLines
from handwork.config.layers import KeyPath, Layer, nearest
from handwork.errors import ConfigError

_OF_OTHERS = {"alwaysAllow", "autoApprove", "description", "disabledTools", "gallery", "name", "tags"}
"""Keys that other programs keep in their mcp.json, and that mean nothing here."""
_HALF = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_FAILED = "Failed to load MCP server config: "


def servers_layer(file: Path, data: bytes | None = None) -> tuple[Layer, list[str]]:
    """The file (whose content may have been read already) as a layer of [mcp], and the keys in it that are passed over.
    Raises ConfigError."""
    try:
        text = read_text(file, data)
        lines = KeyLines(text, json=True)
        servers, passed = _servers(_parsed(text, file, lines), file, lines)
    except ConfigError as error:
        raise ConfigError(f"{_FAILED}{error.what}", hint=error.hint) from None

    def line(path: KeyPath) -> int:
        return lines.line(("mcpServers", *path[2:]))  # of: mcp, servers, the name …

    def where(path: KeyPath) -> str:
        return f"{file}, line {line(path)}"

    return Layer("servers", {"mcp": {"servers": servers}}, where, file, line, strict=True, prefix=_FAILED), passed


def _servers(data: dict[str, Any], file: Path, lines: KeyLines) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The servers without the keys that mean nothing here, and these keys."""

    def at(*path: str) -> str:
        return f"{file}, line {lines.line(path)}"

    others = [name for name in data if name != "mcpServers"]
    if others and "mcpServers" not in data:
        raise ConfigError(f"{at(others[0])}: unknown key {others[0]}", hint=nearest(others[0], {"mcpServers": None}))
    servers = data.get("mcpServers", {})
    if not isinstance(servers, dict):
        raise ConfigError(f"{at('mcpServers')}: mcpServers must be an object: servers by their names")
    passed = list(others)
    for name, server in servers.items():
        if not isinstance(server, dict):
            raise ConfigError(f"{at('mcpServers', name)}: the server {name!r} must be an object")
        passed += [f"{name}.{key}" for key in server if key in _OF_OTHERS]
    kept = {name: {k: v for k, v in server.items() if k not in _OF_OTHERS} for name, server in servers.items()}
    return kept, passed


def _parsed(text: str, file: Path, lines: KeyLines) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise _RepeatedKey
        return dict(pairs)

    def no_number(name: str) -> None:
        raise ValueError(f"{name} is no number in JSON")

    try:
        data = json.loads(text, object_pairs_hook=unique, parse_constant=no_number) if text.strip() else {}
    except _RepeatedKey:
        path, first, number = lines.repeated() or (("a key",), 1, 1)
        raise ConfigError(f"{file}, line {number}: {path[-1]} is set twice; first on line {first}") from None
    except json.JSONDecodeError as error:
        raise ConfigError(f"{file}, line {error.lineno}: this is not valid JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:
        raise too_much(text, file, lines, error) from None
    if too_deep(data):
        raise too_much(text, file, lines, RecursionError())
    if half := _half_a_character(text, data):
        raise ConfigError(f"{file}, line {text.count(chr(10), 0, half.start()) + 1}: {half[0]} is half of a character")
    if not isinstance(data, dict):
        raise ConfigError(f'{file}, line 1: this must be an object: {{"mcpServers": {{…}}}}')
    return data


def _half_a_character(text: str, data: Any) -> re.Match[str] | None:
    """The first escape that no other completes to a character, as no text can hold it."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return _HALF.search(text)
    return None


class _RepeatedKey(ValueError):
    """A key stands twice in one object."""
