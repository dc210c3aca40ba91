"""Which command is meant: a bare task is `run`, and options may stand before or after it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from handwork.cli.coming import check_is_here
from handwork.cli.program import program

_OF_THE_GROUP = ("-h", "--help", "-V", "--version", "--install-completion", "--show-completion")
_OF_RUN = ("--prompt", "--json", "--quiet", "-q")
"""Options that make a run of what has no task."""
_WORD = re.compile(r"[A-Za-z][\w-]*", re.ASCII)


class UsageProblem(Exception):
    """What was typed is no command and no task."""


def route(arguments: list[str], group: Any, *, at_terminal: bool = False) -> list[str]:
    """The arguments with their command in front; without a task that is `chat` for a person at a terminal.

    `group` is the program's command group. Raises UsageProblem for a single word that is no command: a mistyped command must
    never become a task; ConfigError for what a later version has.
    """
    commands: dict[str, Any] = group.commands
    found = list(_positionals(arguments, commands["run"]))
    check_is_here([arguments[place] for place, escaped in found if not escaped], arguments)
    if not found:
        if any(word in arguments for word in _OF_THE_GROUP):
            return arguments
        if at_terminal and not any(word.partition("=")[0] in _OF_RUN for word in arguments):
            return ["chat", *arguments]
        return ["run", *arguments] if arguments else arguments
    place, escaped = found[0]
    word = arguments[place]
    if word in commands and not escaped:
        return [word, *arguments[:place], *arguments[place + 1 :]]
    if not escaped and (len(found) > 1 or _WORD.fullmatch(word)):
        raise UsageProblem(_unknown(word, len(found), list(commands)))
    return ["run", *arguments]


def _positionals(arguments: list[str], run: Any) -> Iterator[tuple[int, bool]]:
    """Places of the arguments that are no options nor their values, and whether `--` stands before."""
    with_value = {name for option in run.params if not getattr(option, "is_flag", False) for name in option.opts}
    place, escaped = 0, False
    while place < len(arguments):
        word = arguments[place]
        if escaped or not word.startswith("-") or word == "-":
            yield place, escaped
        elif word == "--":
            escaped = True
        elif word in with_value:
            place += 1
        place += 1


def _unknown(word: str, words: int, commands: list[str]) -> str:
    near = get_close_matches(word.lower(), commands, 1, 0.5)
    meant = f" Did you mean `handwork {near[0]}`?" if near else f" The commands are {', '.join(commands)}."
    shown = word if len(word) <= 60 else word[:59] + "…"
    if words == 1:
        return f"{shown!r} is no command.{meant}\n→ To give it as a task: {program()} run {shlex.quote(word)}"
    return f'{shown!r} is no command.{meant}\n→ A task is one argument, in quotes: {program()} "…"'
