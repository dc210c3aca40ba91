"""What the editor shows: numbered lines, snippets around a change, unified diffs, all bounded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from handwork.tool.editor_diff import Change, changes, with_context
from handwork.tool.editor_text import FileText, visible

AROUND = 4
"""Lines shown before and after a change."""
MAX_VIEW = 200_000
"""Characters of one view."""
_MAX_LINE = 20_000
_MAX_DIFF = 200_000
_CONTEXT = 3
LEFT_OUT = "[the rest of the diff is left out]\n"
"""The last line of a diff that is not whole."""


def numbered(lines: Iterable[str], first: int = 1) -> tuple[str, int]:
    """The lines as `cat -n` shows them, tabs untouched, and the number of the last line shown (the rest did not fit)."""
    shown: list[str] = []
    size, number = 0, first - 1
    for line in lines:
        text = f"{number + 1:6}\t{_shortened(visible(line))}"
        if shown and size + len(text) > MAX_VIEW:
            break
        shown.append(text)
        size += len(text) + 1
        number += 1
    return "\n".join(shown), number


def _shortened(line: str) -> str:
    return (
        line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]} [{len(line) - _MAX_LINE} more characters in this line]"
    )


def snippets(file: FileText, spans: Sequence[tuple[int, int]]) -> str:
    """The lines around these spans of the text, numbered; neighbours become one piece."""
    pieces: list[list[int]] = []
    for start, end in sorted(spans):
        last = max(start, end - 1 if file.text.endswith(("\n", "\r"), 0, end) else end)
        low = max(file.line_at(start) - AROUND, 1)
        high = min(file.line_at(last) + AROUND, len(file.lines))
        if pieces and low <= pieces[-1][1] + 1:
            pieces[-1][1] = max(pieces[-1][1], high)
        else:
            pieces.append([low, high])
    return "\n   ...\n".join(_piece(file, low, high) for low, high in pieces)


def _piece(file: FileText, low: int, high: int) -> str:
    if not file.lines:
        return "(the file is empty)"
    text, last = numbered(file.lines[low - 1 : high], low)
    return text if last >= high else f"{text}\n[lines {last + 1} to {high} are not shown here]"


@dataclass(frozen=True, slots=True)
class Diff:
    """A unified diff, and how many lines came and went in all, also where its text is cut; `whole` says whether it is not."""

    text: str
    added: int
    removed: int
    whole: bool = True


def unified(before: FileText | None, after: FileText | None, path: str) -> Diff:
    """The change as a unified diff with three lines of context; None stands for no file."""
    old, new = before.lines if before else [], after.lines if after else []
    found = changes(old, new)
    added, removed = sum(d - c for _, _, c, d in found), sum(b - a for a, b, _, _ in found)
    out = [
        f"--- {_name(f'a/{path}') if before else '/dev/null'}\n",
        f"+++ {_name(f'b/{path}') if after else '/dev/null'}\n",
    ]
    size = 0
    for group in with_context(found, _CONTEXT):
        for line in _hunk(group, old, new):
            size += len(line)
            if size > _MAX_DIFF:
                return Diff("".join([*out, LEFT_OUT]), added, removed, whole=False)
            out.append(line)
    return Diff("".join(out), added, removed)


def _name(path: str) -> str:
    """A path as a diff's head can hold it: on one line, quoted as git does where it must be."""
    return path if path.isprintable() else json.dumps(path, ensure_ascii=not path.isascii())


def _hunk(group: list[Change], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    lead = min(group[0][0], _CONTEXT)
    low, high = group[0][0] - lead, min(group[-1][1] + _CONTEXT, len(old))
    start, end = group[0][2] - lead, min(group[-1][3] + _CONTEXT, len(new))
    yield f"@@ -{_range(low, high - low)} +{_range(start, end - start)} @@\n"
    for a, b, c, d in group:
        yield from (_line(" ", line) for line in old[low:a])
        yield from (_line("-", line) for line in old[a:b])
        yield from (_line("+", line) for line in new[c:d])
        low = b
    yield from (_line(" ", line) for line in old[low:high])


def _range(start: int, count: int) -> str:
    return f"{start + 1 if count else start}" if count == 1 else f"{start + 1 if count else start},{count}"


def _line(sign: str, line: str) -> str:
    end = "\n" if line.endswith(("\n", "\r")) else "\n\\ No newline at end of file\n"
    ending = "\r" if line.endswith(("\r\n", "\r")) else ""
    return f"{sign}{visible(line)}{ending}{end}"
