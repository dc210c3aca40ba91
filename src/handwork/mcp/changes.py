"""What a server offers now beside what was approved: what changed, what is new, what is gone."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handwork.mcp.cleaning import clean, one_line
from handwork.mcp.offer import Offer, ToolOffer
from handwork.tool.editor_diff import changes as places_of
from handwork.tool.editor_diff import with_context

LONGEST = 250_000
"""Characters of a comparison; one that is longer is none, for one that was cut would be taken for all that changes."""
TOO_LONG = "(The differences take {length:,} characters, too many to be looked at.)\n"
_AROUND = 3


@dataclass(frozen=True, slots=True)
class Changes:
    """The server's names of tools that are described otherwise, new or gone, sorted; `words`: what else is different and alarms
    nobody (its instructions, its prompts)."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def alarming(self, *, new_tools: bool = False) -> bool:
        """Whether a person should look at them before they count."""
        return bool(self.changed or (self.added and not new_tools))

    def __bool__(self) -> bool:
        return bool(self.changed or self.added or self.gone or self.words)


def changes(old: Offer, new: Offer) -> Changes:
    """What differs; the order of tools, and of the names in their definitions, does not count."""
    before, after = _by_name(old.tools), _by_name(new.tools)
    others = (("instructions", old.instructions != new.instructions), ("prompts", old.prompts != new.prompts))
    return Changes(
        changed=tuple(name for name in sorted(before.keys() & after.keys()) if not _same(before[name], after[name])),
        added=tuple(sorted(after.keys() - before.keys())),
        gone=tuple(sorted(before.keys() - after.keys())),
        words=tuple(word for word, differs in others if differs),
    )


def difference(
    before: Sequence[ToolOffer],
    after: Sequence[ToolOffer],
    *,
    instructions: tuple[str, str] = ("", ""),
    longest: int = LONGEST,
) -> str:
    """A unified diff for people: the server's instructions before and after, then the definitions of tools by name, with all that a
    model is told and that decides what a call may do. '' if nothing differs. One that is_too_long says so and nothing else."""
    old, new = _by_name(before), _by_name(after)
    told, telling = instructions
    lines = [*_differing("the server's instructions", *map(_text_lines, (told, telling)))]
    for name in sorted(old.keys() | new.keys()):
        lines += _differing(one_line(name), _lines(old.get(name)), _lines(new.get(name)))
    text = "\n".join(lines) + "\n" if lines else ""
    return text if len(text) <= longest else TOO_LONG.format(length=len(text))


def is_too_long(text: str) -> bool:
    """Whether a difference says only that it is: nobody has seen then what would be approved."""
    return text.startswith(TOO_LONG.partition("{")[0])


def _differing(title: str, one: list[str], two: list[str]) -> Iterator[str]:
    if not (places := places_of(one, two)):
        return
    yield f"--- {title}" if one else "--- /dev/null"
    yield f"+++ {title}" if two else "+++ /dev/null"
    for group in with_context(places, _AROUND):
        begin, end = max(group[0][0] - _AROUND, 0), min(group[-1][1] + _AROUND, len(one))
        there, until = begin + group[0][2] - group[0][0], end + group[-1][3] - group[-1][1]
        yield f"@@ -{_span(begin, end)} +{_span(there, until)} @@"
        at = begin
        for a, b, c, d in group:
            yield from (f" {line}" for line in one[at:a])
            yield from (f"-{line}" for line in one[a:b])
            yield from (f"+{line}" for line in two[c:d])
            at = b
        yield from (f" {line}" for line in one[at:end])


def _span(begin: int, end: int) -> str:
    size = end - begin
    first = begin + 1 if size else begin
    return f"{first}" if size == 1 else f"{first},{size}"


def _lines(tool: ToolOffer | None) -> list[str]:
    """A definition as lines: the same for the same one."""
    if tool is None:
        return []
    text = f"name: {one_line(tool.name)}" + (f"\ntitle: {one_line(tool.title)}" if tool.title else "")
    text += "\ndescription:\n" + textwrap.indent(tool.description, "  ") if tool.description else ""
    for what, value in (("parameters", tool.parameters), ("annotations", tool.annotations), ("returns", tool.returns)):
        if value:
            text += f"\n{what}: {json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)}"
    return clean(text, len(text) + 1).split("\n")


def _text_lines(text: str) -> list[str]:
    """A text as lines, indented: none of them can pass for the beginning of another definition."""
    return textwrap.indent(clean(text, len(text) + 1), "  ").split("\n") if text else []


def _by_name(tools: Sequence[ToolOffer]) -> dict[str, ToolOffer]:
    return {tool.name: tool for tool in tools}


def _same(one: ToolOffer, two: ToolOffer) -> bool:
    return one.digest == two.digest  # and not ==, for which 1 is True
