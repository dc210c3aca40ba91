"""The one question that a workspace's configuration is worth: asked before anything else, and only of a person at a terminal."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from handwork.cli.clean import show_exactly
from handwork.cli.screen import is_terminal, open_screen
from handwork.cli.setup.talk import Left, Talk
from handwork.cli.trust.server_words import replaced_servers
from handwork.cli.trust.words import Meaning, meanings
from handwork.cli.workspace import real_folder
from handwork.config.carried import CONFIGS, SERVERS, Carried, carried_by
from handwork.config.from_workspace import unnamed
from handwork.config.load import LASTING, own_configurations
from handwork.config.settings import Home
from handwork.config.tables import TABLES
from handwork.config.trust import TrustRecord
from handwork.errors import ConfigError

_EFFECTS, _ROWS = 60, 400
"""Of one file: effects that the question names, lines of its content that are shown."""
_PROMPT = "Trust it? [y]es, [n]ot now, ne[v]er ask here again, [s]how the files: "


def ask_about(workspace: Path | None, config: Path | None = None) -> bool | None:
    """Ask about a workspace if it carries something that its user has not decided on. Raises ConfigError.

    Returns False if it is not to be trusted this time; None leaves it to the record of answers, in which a lasting one now
    stands. Nobody at a terminal: None, at once.
    """
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return None
    home = Home.from_environ(os.environ)
    carried = carried_by(real_folder(workspace), TABLES)
    record = TrustRecord(home.config)
    decision = record.decision(carried)
    asked = unnamed(carried, config)
    settled = decision is not None and (decision.answer == "never" or not decision.changed(carried))
    if not asked.files or settled or carried.folder == Path(os.path.realpath(home.config)):
        return None
    changed = decision.changed(carried) if decision else ()
    return Question(carried, changed, Talk(open_screen(), sys.stdin), replaced_by(carried, home)).settle(record)


def replaced_by(carried: Carried, home: Home) -> str:
    """What becomes of the user's own configuration and servers, in words; '' if that is nothing."""
    own, theirs = next(iter(own_configurations(home)), None), carried.first(CONFIGS)
    found = []
    if own is not None and theirs is not None:
        found.append(f"In this folder {theirs} takes the place of {own}, of which {LASTING} still hold.")
    if names := replaced_servers(carried, home.config / SERVERS[0]):
        found.append(f"In this folder its MCP servers take the place of yours of the same names: {names}.")
    return " ".join(found)


class Question:
    """What a workspace carries, shown to a person who decides.

    changed: the files that differ from what was trusted before.
    replaced: what becomes of the user's own configuration, in words.
    """

    def __init__(self, carried: Carried, changed: tuple[str, ...], talk: Talk, replaced: str = "") -> None:
        self._carried, self._changed, self._talk, self._replaced = carried, changed, talk, replaced

    def settle(self, record: TrustRecord) -> bool | None:
        """Ask, and keep a lasting answer. Returns as `ask_about`."""
        self._describe()
        answer = self._answer()
        if answer == "not now":
            self._talk.say("Nothing of it is used now.", "dim")
            return False
        record.keep(self._carried, "trusted" if answer == "yes" else "never")
        words = (
            "Trusted, until one of these files changes."
            if answer == "yes"
            else "Never used, and not asked about again."
        )
        self._talk.say(f"{words} `handwork trust --forget` takes that back.", "dim")
        return None

    def _describe(self) -> None:
        say = self._talk.say
        if self._changed:
            say("What this folder brings along for Handwork has changed since you trusted it:", "bold")
        else:
            say("This folder brings its own configuration for Handwork:", "bold")
        say(f"  {show_exactly(str(self._carried.folder))}")
        describe(self._talk, meanings(self._carried, self._changed), _EFFECTS)
        if gone := [name for name in self._changed if name not in self._carried.files]:
            say(f"  gone: {show_exactly(', '.join(gone))}")
        if self._replaced:
            say(show_exactly(self._replaced))
        say("Until you trust it, nothing of this is used.")

    def _answer(self) -> str:
        answers = {
            "y": "yes",
            "yes": "yes",
            "n": "not now",
            "no": "not now",
            "not now": "not now",
            "v": "never",
            "never": "never",
        }
        while True:
            _forget_what_was_typed_before()
            try:
                typed = self._talk.ask(_PROMPT).lower()
            except Left:
                return "not now"
            except KeyboardInterrupt:
                self._talk.screen.line()
                raise
            if typed in answers:
                return answers[typed]
            if typed in ("s", "show"):
                self._show()
            else:
                self._talk.say("Type y, n, v or s.", "yellow")

    def _show(self) -> None:
        for name, data in self._carried.files.items():
            self._talk.say(f"── {show_exactly(name)}", "bold")
            text = data.decode(errors="replace").replace("\r\n", "\n").replace("\t", "    ").removesuffix("\n")
            rows = show_exactly(text).split("\n")
            self._talk.say("\n".join(f"  │ {row}" for row in rows[:_ROWS]))
            if len(rows) > _ROWS:
                self._talk.say(f"  … {len(rows) - _ROWS:,} more lines")


def describe(talk: Talk, found: list[Meaning], most: int | None = None) -> None:
    """Each file with what it would do."""
    for each in found:
        talk.say(f"  {each.name}{' (new or changed)' if each.changed else ''}", "bold")
        for effect in each.effects[:most]:
            talk.say(f"    · {effect}")
        if most and len(each.effects) > most:
            weighty = (
                f", {each.weighty - most:,} of them servers, models or rules that allow" if each.weighty > most else ""
            )
            talk.say(f"    · and {len(each.effects) - most:,} more{weighty}: s shows the file")


def _forget_what_was_typed_before() -> None:
    """What was typed before the question could be read is no answer to it."""
    import termios

    with suppress(termios.error, OSError, ValueError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def check_can_be_decided(carried: Carried) -> None:
    """Raise ConfigError if there is nothing in a workspace to trust."""
    if carried.files:
        return
    why = "".join(f"\n{name}: {reason}" for name, reason in carried.refused.items())
    raise ConfigError(
        f"There is nothing to trust in {carried.folder}: no handwork.toml, config/config.toml, mcp.json, .handwork{why}",
        hint="nothing is used of a folder without these",
    )
