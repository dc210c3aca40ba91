"""One server's entry as other programs write it, in our words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_NEW_NAMES = {
    "serverUrl": "url",  # Windsurf
    "httpUrl": "url",  # Gemini CLI
    "transport": "type",
    "transportType": "type",  # Cline
    "environment": "env",  # OpenCode
    "includeTools": "tools",  # Gemini CLI
    "enabledTools": "tools",
    "excludeTools": "without_tools",  # Gemini CLI
    "disabledTools": "without_tools",  # Roo Code, Kiro, Windsurf
    "auth": "oauth",  # Cursor
}
"""Their keys that mean what a key of ours does."""
_SWITCHES = ("enabled", "isActive")
"""Their keys that mean the contrary of `disabled`."""
_DECORATION = {
    "$schema",
    "_comment",
    "author",
    "comment",
    "description",
    "displayName",
    "gallery",
    "icon",
    "id",
    "logoUrl",
    "name",
    "note",
    "provider",
    "providerUrl",
    "source",
    "tags",
    "title",
    "version",
}
"""Keys that do nothing for whoever wrote them either."""
_OF_OTHERS = {
    "alwaysAllow",
    "alwaysLoad",
    "authProviderType",
    "autoApprove",
    "bundled",
    "debug",
    "deferTools",
    "dev",
    "envFile",
    "extensionName",
    "filterMapping",
    "headersHelper",
    "initTimeout",
    "isDefaultServer",
    "longRunning",
    "networkTimeout",
    "oidc",
    "sandboxEnabled",
    "settings",
    "startupTimeout",
    "targetAudience",
    "targetServiceAccount",
    "trust",
    "watchPaths",
}
"""Keys that do something there and nothing here."""
_LOGIN_NAMES = {
    "clientId": "client_id",
    "CLIENT_ID": "client_id",
    "clientSecret": "client_secret",
    "CLIENT_SECRET": "client_secret",
    "scopes": "scope",
    "callbackPort": "redirect_port",
}
_LOGIN_OF_OTHERS = {
    "audiences",
    "authServerMetadataUrl",
    "authorizationUrl",
    "enabled",
    "grantType",
    "issuer",
    "redirectUri",
    "tokenParamName",
    "tokenUrl",
}
_NOT_SPOKEN = {"ws", "websocket", "sdk", "inmemory", "builtin", "platform", "sse-ide", "ws-ide"}
"""Ways to connect that other programs have and we do not: such a server is left out, and the file still counts."""
_LONGEST = 3600
"""Seconds. Who counts in seconds allows no more, so a larger number of a call's limit is one of milliseconds."""


@dataclass
class Entry:
    """One server's entry.

    keys: in our words; None: the server cannot be used here at all.
    written: how a key of ours is called there, where that differs.
    passed: keys that mean nothing here, though they do something elsewhere.
    told: what else the user should know.
    """

    name: str
    keys: dict[str, Any] | None = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    passed: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)


def in_our_words(name: str, entry: Mapping[str, Any]) -> Entry:
    """Read one entry. A key that nobody writes stays as it is, to be named as unknown."""
    found = Entry(name)
    kept: dict[str, Any] = {key: value for key, value in entry.items() if key not in _NEW_NAMES and value is not None}
    for key, value in entry.items():
        if (ours := _NEW_NAMES.get(key)) is None or value is None:
            continue
        if ours in kept:
            found.passed.append(key)
        else:
            kept[ours], found.written[ours] = value, key
    if "httpUrl" in found.written.values():
        kept.setdefault("type", "http")
    kind = kept.get("type")
    if isinstance(kind, str) and kind.lower() in _NOT_SPOKEN:
        return Entry(name, None, told=[f"the MCP server {name} is left out: Handwork does not connect by {kind}"])
    found.keys = {key: value for key, value in kept.items() if key not in _DECORATION}
    _pass_over(found, found.keys)
    _type(found.keys)
    _command(found.keys)
    _login(found, found.keys)
    _limit(found, found.keys)
    return found


def _pass_over(found: Entry, keys: dict[str, Any]) -> None:
    for key in [key for key in keys if key in _OF_OTHERS]:
        if keys.pop(key) not in (None, False, "", [], {}):
            found.passed.append(key)
    for key in _SWITCHES:
        if isinstance(value := keys.get(key), bool):
            del keys[key]
            keys["disabled"] = bool(keys.get("disabled")) or not value


def _type(keys: dict[str, Any]) -> None:
    """OpenCode's and Copilot's words: the other keys tell what is meant by remote."""
    if keys.get("type") == "local":
        keys["type"] = "stdio"
    elif keys.get("type") == "remote":
        del keys["type"]


def _command(keys: dict[str, Any]) -> None:
    """A program with its arguments in one list (OpenCode), or in a table of its own (Zed)."""
    command = keys.get("command")
    if isinstance(command, list) and command and "args" not in keys:
        keys["command"], keys["args"] = command[0], command[1:]
    elif isinstance(command, dict) and "path" in command and command.keys() <= {"path", "args", "env"}:
        del keys["command"]
        inner = {"command": command["path"], **{key: value for key, value in command.items() if key != "path"}}
        keys |= {key: value for key, value in inner.items() if key not in keys and value is not None}


def _login(found: Entry, keys: dict[str, Any]) -> None:
    login = keys.get("oauth")
    if isinstance(login, bool) or login is None:
        keys.pop("oauth", None)
    elif isinstance(login, dict):
        theirs = {_LOGIN_NAMES.get(key, key): value for key, value in login.items() if key not in _LOGIN_OF_OTHERS}
        if isinstance(scopes := theirs.get("scope"), list) and all(isinstance(each, str) for each in scopes):
            theirs["scope"] = " ".join(scopes)
        keys["oauth"] = theirs
        title = found.written.get("oauth", "oauth")
        found.passed += [
            f"{title}.{key}" for key, value in login.items() if key in _LOGIN_OF_OTHERS and not isinstance(value, bool)
        ]


def _limit(found: Entry, keys: dict[str, Any]) -> None:
    limit = keys.get("timeout")
    if isinstance(limit, int | float) and not isinstance(limit, bool) and limit > _LONGEST:
        keys["timeout"] = limit / 1000
        found.told.append(f"timeout {limit} of the MCP server {found.name} is read as milliseconds: {limit / 1000:g} s")
