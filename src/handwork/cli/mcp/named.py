"""A server as it is typed: by its name, its address or its command."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import PurePath
from urllib.parse import urlsplit

from handwork.config import MCPServerSettings
from handwork.config.masking import without_secrets
from handwork.config.settings import Home
from handwork.errors import ConfigError, MCPUnavailable
from handwork.mcp.described import described
from handwork.mcp.own_command import own_command
from handwork.mcp.programs import package_of, resolved

_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)


def named_servers(typed: Collection[str], known: Mapping[str, MCPServerSettings]) -> dict[str, MCPServerSettings]:
    """Each of what --mcp named; one that was typed twice counts once. Raises ConfigError."""
    found: dict[str, MCPServerSettings] = {}
    for text in dict.fromkeys(typed):
        name, settings = named_server(text, known, taken=found)
        found[name] = settings
    return found


def named_server(
    text: str, known: Mapping[str, MCPServerSettings], taken: Collection[str] = ()
) -> tuple[str, MCPServerSettings]:
    """The name and settings of NAME, URL or "COMMAND ARGS"; one that is disabled was wanted. Raises ConfigError."""
    text = text.strip()
    if text in known:
        return text, known[text].model_copy(update={"disabled": False})
    if _ADDRESS.fullmatch(text):
        name = _free(_host(text), {*known, *taken})
        return name, described(name, {"url": text})
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"{text} is no command: {error}", hint="close its quotes") from None
    if not words or (len(words) == 1 and "/" not in text and shutil.which(text) is None):
        raise _unknown(text, known)
    settings = MCPServerSettings(command=words[0], args=tuple(words[1:]))
    return _free(_called(settings), {*known, *taken}), settings


def check_installed(name: str, settings: MCPServerSettings, home: Home) -> None:
    """Raises ConfigError for a command that was typed whose program `mcp add` has to install first: it names the whole line."""
    try:
        resolved(name, settings, home)
    except MCPUnavailable as error:
        line = shlex.join([settings.command, *settings.args])
        hint = f"{own_command('add', name)} -- {line}" if _names_a_package(settings) else error.hint
        raise ConfigError(error.what, hint=hint) from None


def _names_a_package(settings: MCPServerSettings) -> bool:
    """Whether a package runner's command names a package as `mcp add` takes it."""
    try:
        return package_of(settings) is not None
    except MCPUnavailable:
        return False


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "server"
    except ValueError as error:
        raise ConfigError(f"{without_secrets(url)} is no address: {error}") from None


def _called(settings: MCPServerSettings) -> str:
    """What a command is called: its package, its module, its script, or itself."""
    try:
        if package := package_of(settings):
            return package.name.rpartition("/")[2]
    except MCPUnavailable:  # see check_installed
        pass
    args = list(settings.args)
    if args[:1] == ["-m"] and len(args) > 1:
        return args[1].rpartition(".")[2]
    if (
        PurePath(settings.command).name.startswith(("python", "node", "deno", "ruby"))
        and args
        and not args[0].startswith("-")
    ):
        return PurePath(args[0]).stem
    return PurePath(settings.command).name


def _free(name: str, taken: Collection[str]) -> str:
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:40] or "server"
    number, found = 1, plain
    while found in taken:
        number += 1
        found = f"{plain}-{number}"
    return found


def _unknown(text: str, known: Mapping[str, MCPServerSettings]) -> ConfigError:
    near = get_close_matches(text, known, 1, 0.5)
    there = f"configured are: {', '.join(known)}" if known else "none is configured"
    hint = f"did you mean {near[0]}?" if near else f'{there}; a URL and "COMMAND ARGS" can be named as well'
    return ConfigError(f"There is no MCP server {text!r}, and no program of that name", hint=hint)
