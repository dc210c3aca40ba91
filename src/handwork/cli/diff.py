"""What an edit changed, as a person reads it: the lines that went and came, under how many they are."""

from __future__ import annotations

from handwork.cli.clean import clean_for_terminal
from handwork.cli.columns import fit

_STYLES = {"+": "green", "-": "red"}


def diff_rows(diff: str, lines: int, columns: int) -> list[tuple[str, str]]:
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


def _is_head(row: str) -> bool:
    return row.startswith(("--- ", "+++ ", "@@ -0,0", "@@ -1,", "@@ -1 ", "\\ No newline"))
