"""What was found, for people: groups, one line a finding, what to do below it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

from handwork.cli.clean import clean_for_terminal
from handwork.cli.doctor.finding import Finding
from handwork.cli.lines import Screen

_MARKS = {"ok": ("✓", "green"), "note": ("·", "dim"), "warning": ("!", "yellow"), "problem": ("✗", "bold red")}
_WIDEST = 110


def passed(findings: Sequence[Finding]) -> bool:
    """Whether nothing essential fails."""
    return not any(finding.essential and finding.status == "problem" for finding in findings)


def draw(findings: Sequence[Finding], screen: Screen) -> None:
    """Draw all findings, what follows from them, and the count."""
    columns = min(screen.columns, _WIDEST) - 1
    for group, members in groupby(findings, key=lambda finding: finding.group):
        screen.line(group, "bold")
        for finding in members:
            _draw_one(finding, screen, columns)
    screen.line()
    _draw_count(findings, screen)


def _draw_one(finding: Finding, screen: Screen, columns: int) -> None:
    mark, style = _MARKS[finding.status]
    first, *rest = _wrapped(finding.text, columns - 4) or [""]
    screen.write(f"  {mark} ", style)
    screen.line(first)
    for row in rest:
        screen.line(f"    {row}")
    for number, row in enumerate(_wrapped(finding.fix, columns - 6)):
        screen.line(f"    {'→' if number == 0 else ' '} {row}", "cyan")


def _wrapped(text: str, columns: int) -> list[str]:
    """The text in lines; a word is never cut, so that a path or a command can be copied."""
    clean = clean_for_terminal(text).replace("\n", " ")
    return textwrap.wrap(clean, max(columns, 20), break_long_words=False, break_on_hyphens=False)


def _draw_count(findings: Sequence[Finding], screen: Screen) -> None:
    problems = sum(finding.status == "problem" for finding in findings)
    warnings = sum(finding.status == "warning" for finding in findings)
    good = sum(finding.status == "ok" for finding in findings)
    without_model = any(finding.id == "model" and finding.status == "warning" for finding in findings)
    parts = [f"{good} ok", f"{warnings} warning{'' if warnings == 1 else 's'}"]
    parts.append(f"{problems} problem{'' if problems == 1 else 's'}")
    if not passed(findings):
        verdict, style = "Handwork cannot work here until what is marked ✗ is mended.", "bold red"
    elif without_model:
        verdict, style = (
            "Nothing essential fails, but nothing can run before there is a model: `handwork setup`.",
            "yellow",
        )
    elif problems or warnings:
        verdict, style = "Nothing essential fails; look at the lines with an arrow.", "yellow"
    else:
        verdict, style = "All is well.", "green"
    screen.line(verdict, style)
    screen.line(", ".join(parts))


def as_json(findings: Sequence[Finding]) -> str:
    """One object: ok, and the findings with all that they say."""
    shown = [asdict(finding) for finding in findings]
    for each in shown:
        each["text"], each["fix"] = clean_for_terminal(each["text"]), clean_for_terminal(each["fix"])
    return json.dumps({"ok": passed(findings), "findings": shown}, ensure_ascii=False)
