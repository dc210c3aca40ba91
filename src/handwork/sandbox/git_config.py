"""What a repository's settings would have git run: read without git, and without believing that they are well formed."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SECTION = re.compile(r'\[[ \t]*+([^\s\]"]++)[ \t]*+(?:"((?:[^"\\\n]|\\.)*+)"[ \t]*+)?\]')
_BACKSLASHED = re.compile(r"\\(.)")
_NAME = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=?)")
_PIECE = re.compile(r'[^\\"#;\n]+|\\[\s\S]|["#;]')
_ESCAPED = {"n": "\n", "t": "\t", "b": "\b", "\n": ""}
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
    text = text.lstrip("\ufeff").replace("\r\n", "\n")
    section, at = "", 0
    while at < len(text):
        if found := _SECTION.match(text, at):
            name, inner = found.groups()
            below = "" if inner is None else "." + _BACKSLASHED.sub(r"\1", inner)
            section, at = f"{name.lower()}{below}", found.end()
        elif found := _NAME.match(text, at):
            value, at = _value(text, found.end()) if found[2] else ("", _next_line(text, found.end()))
            if section:
                yield f"{section}.{found[1].lower()}", value.partition("\0")[0]  # where git's own words end
        else:
            at = at + 1 if text[at].isspace() else _next_line(text, at)


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


def _next_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _value(text: str, at: int) -> tuple[str, int]:
    """The value that begins there, without quotes, escapes and the comment behind it, and where the next line begins.

    A line goes on after a backslash at its end, but not in a comment.
    """
    parts, quoted = list[str](), False
    while piece := _PIECE.match(text, at):
        at, word = piece.end(), piece[0]
        if word == '"':
            quoted = not quoted
        elif word in "#;" and not quoted:
            break
        else:
            parts.append(_ESCAPED.get(word[1:], word[1:]) if word[0] == "\\" else word)
    return "".join(parts).strip(), _next_line(text, at)
