"""What the editor shows: numbered lines, snippets around a change, unified diffs, all bounded."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from handwork.tool.editor_text import FileText, visible

AROUND = 4
"""Lines shown before and after a change."""
MAX_VIEW = 200_000
"""Characters of one view."""
_MAX_LINE = 20_000
_MAX_DIFF = 200_000
_MAX_COMPARED = 3000


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
        last = max(start, end - 1 if file.text[:end].endswith(("\n", "\r")) else end)
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


def unified(before: FileText | None, after: FileText | None, path: str) -> str:
    """The change as a unified diff with three lines of context; None stands for no file."""
    old, new = before.lines if before else [], after.lines if after else []
    head = _common(old, new)
    tail = min(_common(old[::-1], new[::-1]), len(old) - head, len(new) - head)
    low = max(head - 3, 0)
    old, new = old[low : len(old) - max(tail - 3, 0)], new[low : len(new) - max(tail - 3, 0)]
    out = [f"--- {f'a/{path}' if before else '/dev/null'}\n", f"+++ {f'b/{path}' if after else '/dev/null'}\n"]
    size = 0
    for group in _groups(old, new, head - low):
        for line in _hunk(group, old, new, low):
            size += len(line)
            if size > _MAX_DIFF:
                return "".join([*out, "[the rest of the diff is left out]\n"])
            out.append(line)
    return "".join(out)


_Opcode = tuple[str, int, int, int, int]


def _groups(old: Sequence[str], new: Sequence[str], head: int) -> Iterable[list[_Opcode]]:
    if max(len(old), len(new)) <= _MAX_COMPARED:
        return difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3)
    tail = _common(old[::-1], new[::-1])  # too long to compare line by line: one block out, one in
    return [
        [
            ("equal", 0, head, 0, head),
            ("replace", head, len(old) - tail, head, len(new) - tail),
            ("equal", len(old) - tail, len(old), len(new) - tail, len(new)),
        ]
    ]


def _hunk(group: list[_Opcode], old: Sequence[str], new: Sequence[str], offset: int) -> Iterable[str]:
    _, i1, _, j1, _ = group[0]
    _, _, i2, _, j2 = group[-1]
    yield f"@@ -{_range(i1 + offset, i2 - i1)} +{_range(j1 + offset, j2 - j1)} @@\n"
    for tag, a, b, c, d in group:
        if tag == "equal":
            yield from (_line(" ", line) for line in old[a:b])
            continue
        yield from (_line("-", line) for line in old[a:b])
        yield from (_line("+", line) for line in new[c:d])


def _range(start: int, count: int) -> str:
    return f"{start + 1 if count else start}" if count == 1 else f"{start + 1 if count else start},{count}"


def _line(sign: str, line: str) -> str:
    end = "\n" if line.endswith(("\n", "\r")) else "\n\\ No newline at end of file\n"
    ending = "\r" if line.endswith("\r\n") else ""
    return f"{sign}{visible(line)}{ending}{end}"


def _common(one: Sequence[str], two: Sequence[str]) -> int:
    count = 0
    for a, b in zip(one, two, strict=False):
        if a != b:
            break
        count += 1
    return count
