"""A server as it was typed, and the entry in mcp.json that says the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handwork.config import MCPServerSettings
from handwork.config.layers import Layer
from handwork.config.masking import without_secrets
from handwork.errors import ConfigError

_NAME = re.compile(r"[A-Za-z0-9_](?:[\w.-]{0,62}[A-Za-z0-9_])?", re.ASCII)
NAMES = "up to 64 letters, digits, `-`, `_` and `.`"
_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class AddOptions:
    """What was typed behind `handwork mcp add`; None, False and () are what was not given."""

    name: str | None = None
    command: tuple[str, ...] = ()
    url: str | None = None
    type: str | None = None
    header: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: float | None = None
    cwd: str | None = None
    path: tuple[str, ...] = ()
    allow_net: tuple[str, ...] = ()
    no_sandbox: bool = False
    workspace: bool = False
    folder: Path | None = None
    source: Path | None = None
    replace: bool = False
    yes: bool = False
    scripts: bool = False
    strict: bool = False
    no_test: bool = False
    config: Path | None = None

    @property
    def says_what(self) -> bool:
        """Whether it says what is to be started or asked."""
        return bool(self.command or self.url)

    @property
    def says_more(self) -> bool:
        """Whether it says anything that stands in an entry beside that."""
        return bool(_details(self))


def is_name(name: str) -> bool:
    """Whether a server can be called so."""
    return bool(_NAME.fullmatch(name))


def check_name(name: str) -> str:
    """The name, if a server can be called so. Raises ConfigError."""
    if not is_name(name):
        raise ConfigError(f"{name!r} is no name for a server", hint=f"{NAMES}, such as github")
    return name


def entry_of(options: AddOptions) -> dict[str, Any]:
    """The entry, without what is the default. Raises ConfigError for what does not go together."""
    command: tuple[str, ...] = options.command
    url = options.url
    if len(command) == 1 and _ADDRESS.fullmatch(command[0]) and url is None:
        url, command = command[0], ()
    if bool(command) == bool(url):
        raise ConfigError(
            "A server has either a command or an address",
            hint="handwork mcp add NAME -- COMMAND ARGS…, or handwork mcp add NAME --url URL",
        )
    if command and command[0].startswith("-"):
        raise ConfigError(
            f"There is no option {command[0]}",
            hint="what belongs to the server's own command stands behind --: handwork mcp add NAME -- COMMAND ARGS…",
        )
    if url and "${" not in url and not _ADDRESS.fullmatch(url):
        raise ConfigError(
            f"{without_secrets(url)} is no address of a server", hint="it begins with https:// or http://"
        )
    _check_kind(options, bool(command))
    if url:
        return {"url": url, **_details(options)}
    args = {"args": list(command[1:])} if command[1:] else {}
    return {"command": command[0], **args, **_details(options)}


def with_more(entry: Mapping[str, Any], options: AddOptions) -> dict[str, Any]:
    """The entry of a server that is there with what was typed besides: lists and tables grow. Raises ConfigError as entry_of."""
    _check_kind(options, "command" in entry)
    more = dict(entry)
    for key, value in _details(options).items():
        before = more.get(key)
        if isinstance(before, list) and isinstance(value, list):
            value = list(dict.fromkeys((*before, *value)))
        elif isinstance(before, dict) and isinstance(value, dict):
            value = before | value
        more[key] = value
    return more


def _details(options: AddOptions) -> dict[str, Any]:
    """What was typed beside the command or address, without what was not."""
    found: dict[str, Any] = {"type": options.type if options.type != "stdio" else None}
    found |= {"env": _pairs("--env", options.env), "headers": _pairs("--header", options.header)}
    found |= {"cwd": options.cwd, "timeout": options.timeout, "paths": [_path(each) for each in options.path]}
    found |= {"allow_net": list(options.allow_net), "sandbox": False if options.no_sandbox else None}
    return {key: value for key, value in found.items() if value not in (None, [], {}, "")}


def settings_of(name: str, entry: dict[str, Any], where: str = "what was typed") -> MCPServerSettings:
    """The entry as settings, its variables not looked up yet. Raises ConfigError for what it must not hold."""
    layer = Layer("command line", {}, lambda path: where, strict=True)
    return MCPServerSettings.model_validate(layer.checked(MCPServerSettings, entry, ("mcp", "servers", name)))


def _check_kind(options: AddOptions, stdio: bool) -> None:
    if options.type and (options.type == "stdio") != stdio:
        raise ConfigError(
            f"--type {options.type} and what it is for do not fit: stdio is a command, http and sse an address"
        )
    only_command: dict[str, Any] = {"--env": options.env, "--path": options.path, "--allow-net": options.allow_net}
    only_command |= {"--no-sandbox": options.no_sandbox, "--cwd": options.cwd}
    only_address: dict[str, Any] = {"--header": options.header}
    for name, given in (only_address if stdio else only_command).items():
        if given:
            kind = "an address" if stdio else "a command"
            raise ConfigError(f"{name} is for servers that have {kind}")


def _pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE`, or `Name: value` of a header as other programs take it."""
    found: dict[str, str] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if option == "--header" and ":" in name:
            name, sign, value = text.partition(":")
        if not sign or not (name := name.strip()):
            raise ConfigError(f"{option} {text.split('=')[0]}: what is its value?", hint=f"{option} NAME=VALUE")
        found[name] = value.strip() if option == "--header" else value
    return found


def _path(text: str) -> str:
    """A path that means the same wherever the agent works later; `~` stays, as it means the same for each user."""
    return text if text.startswith("~") else str(Path(text).absolute())
