"""`handwork trust`: trust what a folder brings along, see what was trusted, take it back."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from handwork.cli.clean import show_exactly
from handwork.cli.screen import is_terminal, open_screen
from handwork.cli.setup.talk import Talk
from handwork.cli.trust.question import Question, check_can_be_decided, describe, replaced_by
from handwork.cli.trust.words import meanings
from handwork.cli.workspace import real_folder
from handwork.config.carried import Carried, carried_by
from handwork.config.settings import Home
from handwork.config.tables import TABLES
from handwork.config.trust import Decision, TrustRecord
from handwork.errors import ConfigError

_STATES = {"trusted": "trusted", "never": "never asked about again, and not used"}


def run_trust(folder: Path | None, *, show: bool, forget: bool) -> int:
    """Do what was asked; the exit code. Raises ConfigError."""
    if show and forget:
        raise ConfigError("--show and --forget exclude each other")
    home = Home.from_environ(os.environ)
    record = TrustRecord(home.config)
    if forget:
        return _forget(record, folder)
    if show:
        return _show(record, folder)
    return _trust(record, folder, home)


def _trust(record: TrustRecord, named: Path | None, home: Home) -> int:
    carried = _carried(named)
    check_can_be_decided(carried)
    decision = record.decision(carried)
    talk = _talk()
    if record.trusts(carried):
        talk.say(f"{show_exactly(str(carried.folder))} is trusted as it is.")
        return 0
    changed = decision.changed(carried) if decision and decision.answer == "trusted" else ()
    if is_terminal(sys.stdin) and is_terminal(sys.stdout):
        Question(carried, changed, talk, replaced_by(carried, home)).settle(record)
        return 0
    describe(talk, meanings(carried, changed))
    record.keep(carried, "trusted")
    talk.say(f"{show_exactly(str(carried.folder))} is trusted, until one of these files changes.")
    return 0


def _show(record: TrustRecord, named: Path | None) -> int:
    talk = _talk()
    if named is None:
        decisions = record.decisions()
        for each in decisions:
            talk.say(f"{show_exactly(each.folder)}: {_state(each)} (since {each.when[:10]})")
        if not decisions:
            talk.say("No folder has been decided on yet.")
        return 0
    carried = _carried(named)
    check_can_be_decided(carried)
    decision = record.decision(carried)
    talk.say(f"{show_exactly(str(carried.folder))}: {_state(decision) if decision else 'not decided on'}")
    describe(talk, meanings(carried, decision.changed(carried) if decision else ()))
    for name, why in carried.refused.items():
        talk.say(f"  {show_exactly(name)}: never read: {why}")
    return 0


def _forget(record: TrustRecord, named: Path | None) -> int:
    folder = Path(os.path.realpath(named)) if named else real_folder(None)
    if not record.forget(folder):
        raise ConfigError(f"Nothing was decided on {folder}", hint="handwork trust --show lists the folders")
    _talk().say(f"{show_exactly(str(folder))} is asked about again.")
    return 0


def _state(decision: Decision) -> str:
    state = _STATES[decision.answer]
    now = carried_by(Path(decision.folder), TABLES)
    if not Path(decision.folder).is_dir():
        return f"{state}; it is gone"
    if not decision.is_about(now):
        return f"{state}, and another folder lies there now: not used"
    if decision.answer == "trusted" and (changed := decision.changed(now)):
        return f"{state}, and changed since ({show_exactly(', '.join(changed[:8]))}): not used"
    return state


def _carried(named: Path | None) -> Carried:
    folder = real_folder(named)
    if not folder.is_dir():
        raise ConfigError(f"There is no folder {folder}")
    return carried_by(folder, TABLES)


def _talk() -> Talk:
    return Talk(open_screen(sys.stdout, spins=False), sys.stdin)
