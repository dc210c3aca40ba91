"""What a repository's settings would have git run: read without git, and without believing that they are well formed."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE = re.compile(r'\s*\[\s*([^\s\]"]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]?(.*)', re.DOTALL)
_RUNS = {
    "hookspath", "sshcommand", "gitproxy", "askpass", "alternaterefscommand", "fsmonitor", "editor", "pager", "textconv",
    "driver", "clean", "smudge", "process", "program", "helper", "cmd", "command", "external", "difffilter",
    "packobjectshook", "defaultkeycommand", "tunnel", "uploadpack", "receivepack", "vcs", "recentobjectshook", "browser",
    "path", "smtpserver", "tocmd", "cccmd", "headercmd", "templatedir", "interactivecommand",
}  # fmt: skip
"""Last names of settings that hold a program, or lead to more settings (include.path)."""
_SECTIONS_OF_PROGRAMS = frozenset({"pager", "hook"})
_HARMLESS = frozenset({"true", "false", "yes", "no", "on", "off", "1", "0", "", "never", "always", "auto"})


def entries(text: str) -> Iterator[tuple[str, str]]:
    """Names (`core.fsmonitor`, the parts in between as they are) and values, in order; what makes no sense is passed over."""
    section = ""
    for line in _whole_lines(text.lstrip("\ufeff")):
        rest = line
        if rest.lstrip().startswith("["):
            if (found := _LINE.match(rest)) is None:
                continue
            name, inner, rest = found.groups()
            section = f"{name.lower()}.{inner}" if inner is not None else name.lower()
        name, _sign, value = rest.partition("=")
        name = name.strip()
        if section and name and name[0].isalpha():
            yield f"{section}.{name.split()[0].lower()}", _value(value)


def programs(text: str) -> list[str]:
    """The settings that have git run something, as `name = value`."""
    return [f"{name} = {value}" for name, value in entries(text) if _runs(name, value)]


def paths(text: str) -> tuple[list[str], list[str]]:
    """The folders that the settings name for hooks, and the files that they include."""
    found = list(entries(text))
    hooks = [value for name, value in found if name == "core.hookspath" and value]
    files = [
        value for name, value in found if name.split(".")[0] in ("include", "includeif") and name.endswith(".path")
    ]
    return hooks, files


def _runs(name: str, value: str) -> bool:
    first, last = name.partition(".")[0], name.rpartition(".")[2]
    if first == "alias":
        return value.startswith("!")
    if value.lower() in _HARMLESS:
        return False
    if first in _SECTIONS_OF_PROGRAMS:
        return True
    if first == "submodule":
        return last == "update" and value.startswith("!")
    if first in ("url", "remote") and "ext::" in f"{name} {value}":
        return True
    return last in _RUNS


def _whole_lines(text: str) -> Iterator[str]:
    """Lines, with those that end with a backslash joined to the next."""
    waiting = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        waiting += line
        if waiting.endswith("\\") and not waiting.endswith("\\\\"):
            waiting = waiting[:-1]
            continue
        yield waiting
        waiting = ""
    yield waiting


def _value(text: str) -> str:
    """A value without quotes, escapes and the comment behind it."""
    value, quoted, escaped = "", False, False
    for letter in text.strip():
        if escaped:
            value, escaped = value + {"n": "\n", "t": "\t", "b": ""}.get(letter, letter), False
        elif letter == "\\":
            escaped = True
        elif letter == '"':
            quoted = not quoted
        elif letter in "#;" and not quoted:
            break
        else:
            value += letter
    return value.strip()
