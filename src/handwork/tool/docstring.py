"""What a function's docstring says: its description, and one for each parameter (Google, NumPy or reST style)."""

from __future__ import annotations

import inspect
import re

_GOOGLE = re.compile(r"(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters):\s*")
_NUMPY = re.compile(r"(?:Other )?Parameters\s*")
_RULE = re.compile(r"-{3,}\s*")
_GOOGLE_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY_ITEM = re.compile(r"((?:\*{0,2}\w+)(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_REST_ITEM = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_REST_TYPE = re.compile(r":type\s+\w+\s*:.*")


def parse_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """The docstring without its parameter sections, and the parameters' descriptions by name.

    Other sections (Returns, Raises, notes) stay in the description: the model may need them.
    """
    lines = inspect.cleandoc(text or "").splitlines()
    kept: list[str] = []
    found: dict[str, list[str]] = {}
    at = 0
    while at < len(lines):
        if _GOOGLE.fullmatch(lines[at]):
            at = _read_google(lines, at + 1, found)
        elif _NUMPY.fullmatch(lines[at]) and at + 1 < len(lines) and _RULE.fullmatch(lines[at + 1]):
            at = _read_numpy(lines, at + 2, found)
        elif _REST_TYPE.fullmatch(lines[at]):
            at += 1
        elif item := _REST_ITEM.fullmatch(lines[at]):
            at = _read_more(lines, at + 1, found.setdefault(item[1], [item[2]]), 0)
        else:
            kept.append(lines[at])
            at += 1
    description = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return description, {name: " ".join(part for part in parts if part) for name, parts in found.items()}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _read_google(lines: list[str], at: int, found: dict[str, list[str]]) -> int:
    """Items stand indented below the heading; what is indented deeper goes on with the last one."""
    level: int | None = None
    while at < len(lines) and (not lines[at].strip() or _indent(lines[at])):
        if not lines[at].strip():
            at += 1
            continue
        level = _indent(lines[at]) if level is None else level
        item = _GOOGLE_ITEM.fullmatch(lines[at].strip())
        if item is None:
            at += 1
            continue
        at = _read_more(lines, at + 1, found.setdefault(item[1], [item[2].strip()]), level)
    return at


def _read_numpy(lines: list[str], at: int, found: dict[str, list[str]]) -> int:
    """Items stand at the margin (`name : type`), their text indented below; the next heading ends the section."""
    while at < len(lines):
        heading = at + 1 < len(lines) and _RULE.fullmatch(lines[at + 1])
        item = _NUMPY_ITEM.fullmatch(lines[at])
        if not lines[at].strip():
            at += 1
        elif heading or item is None:
            break
        else:
            parts: list[str] = []
            for name in item[1].split(","):
                found[name.strip().lstrip("*")] = parts
            at = _read_more(lines, at + 1, parts, 0)
    return at


def _read_more(lines: list[str], at: int, parts: list[str], level: int) -> int:
    """Take the lines that are indented deeper than `level`; a blank line counts only between such lines."""
    while at < len(lines):
        ahead = at
        while ahead < len(lines) and not lines[ahead].strip():
            ahead += 1
        if ahead == len(lines) or _indent(lines[ahead]) <= level:
            break
        parts.append(lines[ahead].strip())
        at = ahead + 1
    return at
