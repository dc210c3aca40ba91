"""What an edit changed, as a person reads it: the lines that went and came, under how many they are."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from handwork.cli.clean import clean_for_terminal, show_exactly
from handwork.cli.columns import fit, width
from handwork.tool.editor_show import LEFT_OUT

Row = tuple[str, str]
"""Text and style."""
_STYLES = {"+": "green", "-": "red"}
_RANGE = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_TAB = 4


def diff_rows(diff: str, lines: int, columns: int) -> list[Row]:
    """(text, style) of each row of a unified diff, cut to the width; at most `lines` of them, and a note of how many more."""
    rows = [row for row in clean_for_terminal(diff).expandtabs(4).splitlines() if not _is_head(row)]
    counts = {mark: sum(row.startswith(mark) for row in rows) for mark in _STYLES}
    if not any(counts.values()):
        return []
    shown = [(f"+{counts['+']} −{counts['-']} lines", "dim")]
    for row in rows[:lines]:
        text = "⋮" if row.startswith("@@") else fit(row, columns)
        shown.append((text, _STYLES.get(row[:1], "dim")))
    if len(rows) > lines:
        shown.append((f"… {len(rows) - lines:,} more rows", "dim"))
    return shown


@dataclass(slots=True)
class ExactDiff:
    """A diff that somebody decides by: `heads` say what it is, `rows` are all of it; `whole` is False where it was cut or is none."""

    heads: list[Row] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    whole: bool = False


def exact_rows(diff: str) -> ExactDiff:
    """Every line of a unified diff with what could hide spelt out; tabs are shown as ⇥ with blanks behind it."""
    if not diff:
        return ExactDiff()
    whole = not diff.endswith(LEFT_OUT)
    lines = diff.removesuffix(LEFT_OUT).split("\n")
    heads, body = lines[:2], [line for line in lines[2:] if line]
    returns = [line for line in body if line[0] in "+- " and line.endswith("\r")]
    all_return = bool(returns) and len(returns) == sum(line[0] in "+- " for line in body)
    rows = [_exact_row(line.removesuffix("\r") if all_return else line) for line in body]
    added, removed = (sum(line.startswith(mark) for line in body) for mark in "+-")
    told = [f"+{added:,} −{removed:,} lines{_of_file(heads)}"]
    if all_return:
        told.append("lines end with a carriage return (CRLF or CR)")
    if not whole:
        told.append("too long to be shown as a diff in whole, so the call follows with all its text")
    return ExactDiff([(f"  {' · '.join(told)}", "bold")], rows, whole)


def _of_file(heads: list[str]) -> str:
    if heads[0].endswith("/dev/null"):
        return " · a new file"
    return " · the file goes" if heads[-1].endswith("/dev/null") else ""


def _exact_row(line: str) -> Row:
    if found := _RANGE.match(line):
        return f"⋮ line {found[3] if found[4] != '0' else found[1]}", "dim"
    return show_exactly(_with_tabs(line)), _STYLES.get(line[:1], "dim")


def _with_tabs(line: str) -> str:
    if "\t" not in line:
        return line
    out = line[:1]
    for place, piece in enumerate(line[1:].split("\t")):
        if place:
            out += "⇥".ljust(_TAB - (width(out) - 1) % _TAB)
        out += piece
    return out


def _is_head(row: str) -> bool:
    return row.startswith(("--- ", "+++ ", "@@ -0,0", "@@ -1,", "@@ -1 ", "\\ No newline"))
