"""What may stand at the cursor of a shell: commands, options, and the values of options."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from handwork.cli.completion.line import typed_line
from handwork.cli.completion.values import values_of


@dataclass
class Found:
    """Values with what they mean, and where files stand: `files`, `folders` or nowhere. `cut` is how much of the word's
    beginning the shell holds as words of their own."""

    values: list[tuple[str, str]] = field(default_factory=list)
    place: str = ""
    cut: int = 0


def print_completions(shell: str, arguments: Sequence[str]) -> int:
    """One value a line, in zsh and fish with a tab and what it means; a line `:files` or `:folders` asks for those, too."""
    try:
        found = _find(shell, arguments)
        lines = [_line(value[found.cut :], help, shell) for value, help in found.values]
        text = "".join(f"{line}\n" for line in (*lines, *([f":{found.place}"] if found.place else [])))
        os.write(1, text.encode("utf-8", "surrogateescape"))
    except Exception:  # in the middle of a line that somebody types, no words are better than an error
        return 1
    return 0


def _find(shell: str, arguments: Sequence[str]) -> Found:
    import typer

    from handwork.cli.app import app

    if shell == "bash":
        line = typed_line(os.environ)
        words, word, cut = line.words, line.word, line.cut
    else:
        *words, word = arguments or [""]
        cut = 0
    found = complete(list(words), word, typer.main.get_command(app))
    found.cut = cut
    return found


def _line(value: str, help: str, shell: str) -> str:
    meaning = " ".join(help.split())
    return f"{value}\t{meaning}" if meaning and shell != "bash" else value


def complete(words: list[str], word: str, group: Any) -> Found:
    """What may stand for `word`, after `words` (without the program's name). A bare task is a run's, as it is for `route`."""
    commands = _chosen(words, group)
    options = [option for command in commands for option in command.params if option.param_type_name == "option"]
    by_name = {name: option for option in options for name in (*option.opts, *option.secondary_opts)}
    if "--" not in words:
        if words and (option := by_name.get(words[-1])) is not None and not option.is_flag:
            return _values(option, commands[-1], word)
        name, equals, value = word.partition("=")
        if equals and name.startswith("--") and (option := by_name.get(name)) is not None:
            return _after_equals(_values(option, commands[-1], value), name)
        if word.startswith("-"):
            return Found(list(_options(options, words, word)))
    return _positional(words, word, commands)


def _chosen(words: list[str], group: Any) -> list[Any]:
    """The commands whose options may stand here; the last is the one that was named, or the group that may name one."""
    run = group.commands["run"]
    named = list(_positionals(words, run))
    if not named:
        return [run, group]
    command = group.commands.get(named[0])
    if command is None:
        return [run]
    if hasattr(command, "commands"):
        return [command.commands.get(named[1], command) if len(named) > 1 else command]
    return [command]


def _positionals(words: list[str], run: Any) -> Iterator[str]:
    with_value = {name for option in run.params if not getattr(option, "is_flag", False) for name in option.opts}
    place = 0
    while place < len(words):
        if words[place] in with_value:
            place += 1
        elif not words[place].startswith("-") or words[place] == "-":
            yield words[place]
        place += 1


def _options(options: list[Any], words: list[str], word: str) -> Iterator[tuple[str, str]]:
    for option in options:
        names = [*option.opts, *option.secondary_opts]
        if option.hidden or (not option.multiple and any(name in words for name in names)):
            continue
        for name in names:
            if name.startswith(word) and (name.startswith("--") or word == name):
                yield name, option.help or ""


def _positional(words: list[str], word: str, commands: list[Any]) -> Found:
    command = commands[-1]
    if hasattr(command, "commands"):
        below = [(name, one) for name, one in command.commands.items() if not one.hidden and name.startswith(word)]
        return Found([(name, one.get_short_help_str(100)) for name, one in below])
    argument = next((one for one in command.params if one.param_type_name == "argument"), None)
    return _values(argument, command, word) if argument is not None else Found()


def _values(parameter: Any, command: Any, word: str) -> Found:
    found = values_of(parameter, command)
    if isinstance(found, str):
        return Found(place=found)
    return Found([(value, help) for value, help in found if value.startswith(word)])


def _after_equals(found: Found, name: str) -> Found:
    return Found([(f"{name}={value}", help) for value, help in found.values], found.place)
