"""`handwork setup`: walks a person at a terminal to a model that works, step by step, and leaves nothing half done."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from handwork.cli.models import look_around
from handwork.cli.outcome import complaint
from handwork.cli.program import program
from handwork.cli.screen import is_terminal, open_screen
from handwork.cli.setup.talk import Left, Talk
from handwork.cli.setup.ways import Ways
from handwork.config import Settings
from handwork.config.setup_file import write_choice
from handwork.errors import ConfigError, HandworkError, NoModelError
from handwork.llm.choice import WAYS_ON, Candidate, Survey

_HEADLESS = "without one, " + WAYS_ON.removeprefix("run `handwork setup`; or ")


def run_setup(config: Path | None) -> int:
    """Set a model up; the exit code: 0, also when the person leaves, 130 after Ctrl-C. Raises ConfigError when headless."""
    if not _person_is_there():
        raise ConfigError("`handwork setup` asks questions, and there is no terminal", hint=_HEADLESS)
    return Setup(config, Talk(open_screen(), sys.stdin)).run()


def offer_setup(settings: Settings, error: NoModelError, config: Path | None = None) -> bool:
    """At a terminal, offer to set a model up now; True if one was. Headless: False, at once.

    Must not be called while an event loop runs in this thread; load the settings anew after True.

    Args:
        settings: those without a model.
        error: what was said of it.
        config: the configuration file that was named, if one was.
    """
    if not _person_is_there():
        return False
    talk = Talk(open_screen(), sys.stdin)
    if file := settings.unread_config:
        talk.say(f"{file} is not read by itself; to use it, say n and give --config {shlex.quote(str(file))}", "yellow")
    try:
        named = any(llm.model for llm in settings.llm.values())  # a newcomer has named none
        if not talk.agree(f"{f'{error.what}.' if named else 'No model yet.'} Set one up now?"):
            return False
    except Left:
        return False
    except KeyboardInterrupt:
        talk.screen.line()
        raise
    setup = Setup(config, talk, by_itself=False)
    return setup.run() == 0 and setup.done


def _person_is_there() -> bool:
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


class Setup:
    """One conversation; `done` says that a model was set up in it. `by_itself`: nothing follows it that would use the model."""

    def __init__(self, config: Path | None, talk: Talk, *, by_itself: bool = True) -> None:
        self._config, self._talk, self._by_itself = config, talk, by_itself
        self.done = False

    def run(self) -> int:
        """Go through it; the exit code."""
        self._talk.say("Handwork needs a model to work with. Nothing is kept before it works; q leaves at any time.")
        try:
            while not self.done and self._turn():
                pass
        except Left:
            self._talk.say("Left." if self.done else "Left; nothing was changed by this step.", "dim")
        except KeyboardInterrupt:
            self._talk.screen.line()
            self._talk.say("Left." if self.done else "Left; nothing was changed by this step.", "dim")
            return 130
        return 0

    def _turn(self) -> bool:
        """Show what is there, let one way be chosen and go it; False when the person is through."""
        settings, found = look_around(self._config)
        self._tell(found)
        ways = Ways(settings, found, self._talk)
        rows = ways.rows()
        place = self._talk.choose([row for row, _ in rows], "Which? (Enter or q leaves) ")
        if place is None:
            return False
        try:
            candidate = rows[place][1]()
            if candidate is not None:
                self._prefer(candidate)
        except HandworkError as error:
            self._talk.say(f"✗ {complaint(error)}", "red")
        return True

    def _tell(self, found: Survey) -> None:
        self._talk.say()
        for text in filter(None, (found.unfinished, found.problem, *found.idle)):
            self._talk.say(f"! {text}", "yellow")
        winner = found.winner
        self._talk.say(f"Now: {winner.place} ({winner.why})" if winner else "Now: no model.", "bold")

    # ---- the end

    def _prefer(self, candidate: Candidate) -> None:
        """Have the model that was set up used: as it is where it comes first, else as the configured choice if wanted."""
        settings, found = look_around(self._config)
        first = found.winner
        if not _same(first, candidate):
            self._talk.say()
            if first is not None and not self._wanted(first, candidate):
                self._end(first, settings)
                return
            write_choice(settings.home.config, candidate.model, candidate.base_url)
            settings, found = look_around(self._config)
            if (used := found.winner) is not None and not _same(used, candidate):
                self._talk.say(
                    f"! {used.model} goes over this choice ({used.why}): change that, or give --model {candidate.model}.",
                    "yellow",
                )
                self._end(used, settings)
                return
        self._end(candidate, settings)

    def _wanted(self, first: Candidate, candidate: Candidate) -> bool:
        self._talk.say(f"Without more, {first.model} is used ({first.why}), since that comes first.")
        return self._talk.agree(f"Use {candidate.model} from now on?")

    def _end(self, used: Candidate, settings: Settings) -> None:
        self.done = True
        for text in settings.keys.take_notices():
            self._talk.say(f"! {text}", "yellow")
        self._talk.say()
        self._talk.say(f"Ready: {used.model} is used.", "bold green")
        if self._by_itself:
            self._talk.say("Type next:")
            self._talk.say(f'  {program()} "your task"')
            self._talk.say(f"  {program()} model detect     to see what else was found")


def _same(first: Candidate | None, candidate: Candidate) -> bool:
    return first is not None and (first.model, first.base_url) == (candidate.model, candidate.base_url)
