"""`handwork policy list` and `forget`: what may run without a question, and taking back what was allowed for good."""

from __future__ import annotations

import json
import os
import sys
from difflib import get_close_matches
from pathlib import Path

from handwork.cli.clean import one_line, show_exactly
from handwork.cli.columns import fit
from handwork.cli.screen import open_screen
from handwork.cli.workspace import real_folder
from handwork.config.approvals import Approvals
from handwork.config.load import load_configuration
from handwork.config.settings import Home
from handwork.errors import ConfigError

_WIDEST = 2_000


def print_rules(config: Path | None, workspace: Path | None, as_json: bool) -> None:
    """Print the rules of [policy] and the approvals of the workspace. Raises ConfigError."""
    folder = real_folder(workspace)
    configuration = load_configuration(config, workspace=folder)
    settings, approvals = configuration.settings, Approvals(configuration.settings.home.config)
    kept, anywhere = approvals.rules(folder), approvals.rules(folder, anywhere=True)
    if as_json:
        found = {
            "rules": list(settings.policy.rules),
            "workspace": str(folder),
            "allowed": list(kept),
            "allowed_without_sandbox": list(anywhere),
            "file": str(approvals.path),
        }
        print(json.dumps(found, ensure_ascii=False, indent=2))
        return
    screen = open_screen(sys.stdout, spins=False)
    origin = configuration.origins.get(("policy", "rules"))
    screen.line(f"Rules of [policy]{f', {origin}' if origin else ''}: the first that fits decides", "bold")
    for rule in settings.policy.rules or ("(none)",):
        screen.line(f"  {_shown(rule)}")
    screen.line(f"\nAllowed for good in {one_line(str(folder), 200)}", "bold")
    for number, rule in enumerate((*kept, *anywhere), 1):
        where = "" if number <= len(kept) else "  (without a sandbox, too)"
        screen.line(f"  {number}. {_shown(rule)}{where}")
    if not kept and not anywhere:
        screen.line("  (nothing)")
    others = len(approvals.workspaces() - {os.path.realpath(folder)})
    if others:
        screen.line(f"\nIn {others} other folder{'s' if others > 1 else ''}, too: {approvals.path}")


def forget_rules(rules: tuple[str, ...], everything: bool, workspace: Path | None) -> None:
    """Take rules of the workspace back and print which. Raises ConfigError for one that is not there."""
    if everything == bool(rules):
        raise ConfigError("Which rules?", hint="name one as `handwork policy list` shows it, or all of them by --all")
    folder = real_folder(workspace)
    approvals = Approvals(Home.from_environ(os.environ).config)
    kept = (*approvals.rules(folder), *approvals.rules(folder, anywhere=True))
    named = None if everything else [_named(rule, kept) for rule in rules]
    gone = approvals.forget(folder, named)
    screen = open_screen(sys.stdout, spins=False)
    for rule in gone:
        screen.line(f"Taken back: {_shown(rule)}")
    if not gone:
        screen.line("Nothing was allowed for good in this folder.")


def _named(text: str, kept: tuple[str, ...]) -> str:
    if text in kept:
        return text
    if text.isascii() and text.isdigit() and 0 < int(text[:9]) <= len(kept):
        return kept[int(text) - 1]
    near = get_close_matches(text, kept, 1, 0.4)
    hint = f"did you mean {_shown(near[0])}?" if near else "`handwork policy list` shows what is there"
    raise ConfigError(f"Nothing of the kind was allowed in this folder: {_shown(text)}", hint=hint)


def _shown(rule: str) -> str:
    """A rule as it is kept, with every blank, so that it can be copied; one that hides something goes by its number."""
    return fit(show_exactly(rule).replace("\n", "⟨U+000A⟩"), _WIDEST)
