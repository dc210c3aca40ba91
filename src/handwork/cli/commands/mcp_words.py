"""`mcp add` and `mcp test` told apart from the server's own command, whose options may stand among theirs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from typer.core import TyperCommand

from handwork.errors import ConfigError

_ADDRESS = re.compile(r"https?://\S*", re.IGNORECASE)


class AddCommand(TyperCommand):
    """`mcp add NAME -- COMMAND ARGS`: without the --, what of it is an option of whom cannot be known."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = _words(args, self.params)
        free = [place for place, word in enumerate(words) if word.kind == "free"]
        if len(free) > 1 and not ctx.resilient_parsing and not _ADDRESS.fullmatch(words[free[1]].text):
            begin = free[1]
            if behind := next((word.text for word in words[begin:] if word.kind in ("ours", "unknown")), ""):
                line = [*(word.text for word in words[:begin]), "--", *(word.text for word in words[begin:])]
                raise ConfigError(
                    f"{behind.partition('=')[0]} stands behind the server's command {words[begin].text}, and no -- before that",
                    hint=f"{_typed('add', line)}\n  (what is meant for `mcp add` itself stands before the --)",
                )
        return super().parse_args(ctx, args)


class TryCommand(TyperCommand):
    """`mcp test "COMMAND ARGS"`: a command is one argument."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = _words(args, self.params)
        begin = next((place for place, word in enumerate(words) if word.kind == "free"), len(words))
        command = [word.text for word in words[begin:] if word.kind in ("free", "unknown")]
        if len(command) > 1 and not ctx.resilient_parsing:
            ours = [word.text for word in words if word.kind in ("ours", "value")]
            raise ConfigError(
                "A server's command is given as one argument, in quotes",
                hint=_typed("test", [*ours, shlex.join(command)]),
            )
        return super().parse_args(ctx, args)


@dataclass(frozen=True, slots=True)
class _Word:
    """kind: ours (an option of this command), value (of one), unknown (an option that it does not have), free; behind --, own."""

    text: str
    kind: str


def _words(args: Sequence[str], params: Sequence[Any]) -> list[_Word]:
    """What was typed, as far as the --."""
    flags = {name for each in params if getattr(each, "is_flag", False) for name in (*each.opts, *each.secondary_opts)}
    valued = {name for each in params if not getattr(each, "is_flag", False) for name in each.opts}
    flags |= {"-h", "--help"}
    found: list[_Word] = []
    waits = False
    for place, text in enumerate(args):
        if waits:
            found.append(_Word(text, "value"))
            waits = False
        elif text == "--":
            return [*found, *(_Word(each, "own") for each in args[place:])]
        elif not text.startswith("-") or text == "-":
            found.append(_Word(text, "free"))
        else:
            name, equals, _ = text.partition("=")
            found.append(_Word(text, "ours" if name in flags | valued else "unknown"))
            waits = name in valued and not equals
    return found


def _typed(verb: str, words: Sequence[str]) -> str:
    return shlex.join(["handwork", "mcp", verb, *words])
