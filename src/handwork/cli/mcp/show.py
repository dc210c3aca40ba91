"""What was found at a server, drawn for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from handwork.cli.clean import one_line
from handwork.cli.diff import Row, exact_rows
from handwork.cli.lines import Screen
from handwork.cli.mcp.advice import Problem, effect, tokens_of
from handwork.cli.mcp.look import Looked
from handwork.mcp.offer import Offer
from handwork.mcp.own_command import own_command
from handwork.mcp.prompts import usage
from handwork.tool.wording import counted

_LISTED = 20
"""Resources that are named."""


def draw(looked: Looked, found: Sequence[Problem], screen: Screen) -> None:
    """All of it, the worst last, where it is read."""
    offer = looked.offer
    if offer is not None:
        screen.line(f"{one_line(looked.name, 60)} · {_about(offer)} · connected in {looked.seconds:.1f} s", "bold")
        _draw_tools(looked, screen)
        _draw_prompts(looked, offer, screen)
        _draw_resources(looked, screen)
        draw_changes(looked, screen)
    for problem in found:
        failed = offer is None and problem is found[0]
        screen.line(f"{'✗' if failed else '!'} {_text(problem.what)}", "red" if failed else "yellow")
        if problem.mend:
            screen.line(f"  → {_text(problem.mend)}")
    if offer is not None and not found:
        screen.line("Nothing is wrong with it.", "green")


def draw_changes(looked: Looked, screen: Screen) -> None:
    """What differs from what was approved."""
    if looked.record is None or looked.offer is None:
        return
    if not looked.record.is_about(looked.settings):
        screen.line("Another server was approved under this name; what this one offers is taken as it is.", "yellow")
        return
    if not looked.differs:
        screen.line(f"As approved on {looked.record.when[:10]}.", "dim")
        return
    screen.line(f"Since {looked.record.when[:10]}, when it was approved: {_words(looked)}", "yellow")
    if looked.differs.alarming(new_tools=looked.settings.new_tools):
        screen.line(f"  → {own_command('approve', looked.name)} shows it, and asks")


def draw_diff(looked: Looked, screen: Screen) -> None:
    """Every line of what differs, with what could hide spelt out."""
    for text, style in rows_of(looked.diff):
        screen.line(f"  {text}", style)


def rows_of(diff: str) -> Iterator[Row]:
    """What differs as rows to decide by: the name of each tool, and below it what of it."""
    for block in _blocks(diff):
        title = block.split("\n", 2)[1 if block.startswith("--- /dev/null") else 0][4:]
        yield _text(title), "bold"
        yield from ((f"│ {text}", style) for text, style in exact_rows(block).rows)


def as_json(looked: Looked, found: Sequence[Problem]) -> dict[str, Any]:
    """The same for programs, with all keys at any time."""
    offer, record = looked.offer, looked.record
    about: dict[str, Any] = {"name": looked.name, "connected": offer is not None, "seconds": round(looked.seconds, 3)}
    for key in ("server", "version", "protocol", "instructions"):
        about[key] = getattr(offer, key) if offer is not None else None
    about["tokens"] = tokens_of(looked.tools) if offer is not None else None
    about["tools"] = [
        {
            "name": tool.original_name,
            "called": tool.name,
            "description": tool.description,
            "does": effect(tool),
            "tokens": tokens_of([tool]),
        }
        for tool in looked.tools
    ]
    about["prompts"] = [usage(looked.name, each) for each in (offer.prompts if offer else ())]
    about["resources"] = [each.uri for each in looked.resources]
    about["approved"] = record.when if record and record.is_about(looked.settings) else None
    differs = looked.differs
    about["differs"] = {
        "changed": differs.changed,
        "added": differs.added,
        "gone": differs.gone,
        "words": differs.words,
    }
    about["problems"] = [{"what": each.what, "mend": each.mend} for each in found]
    return about


# ---- parts


def _draw_tools(looked: Looked, screen: Screen) -> None:
    if not looked.tools:
        return
    total = f"about {tokens_of(looked.tools):,} tokens of each request"
    screen.line(f"\n{counted(len(looked.tools), 'tool')}, {total}")
    for tool in looked.tools:
        screen.line(f"  {_text(tool.name)}")
        first = next(iter((tool.description or "").strip().splitlines()), "") or "(no description)"
        screen.line(f"      {one_line(first, max(screen.columns - 8, 40))}", "dim")
        screen.line(f"      {effect(tool)} · about {tokens_of([tool]):,} tokens", "dim")


def _draw_prompts(looked: Looked, offer: Offer, screen: Screen) -> None:
    if not offer.prompts:
        return
    screen.line(f"\n{counted(len(offer.prompts), 'prompt')}, in a chat")
    for prompt in offer.prompts:
        screen.line(f"  {_text(usage(looked.name, prompt))}")
        if prompt.description:
            screen.line(f"      {one_line(prompt.description, max(screen.columns - 8, 40))}", "dim")


def _draw_resources(looked: Looked, screen: Screen) -> None:
    if not looked.resources:
        screen.line()
        return
    screen.line(f"\n{counted(len(looked.resources), 'resource')}, which the agent reads by the tool mcp_resources")
    for each in looked.resources[:_LISTED]:
        screen.line(f"  {one_line(each.uri, max(screen.columns - 4, 40))}", "dim")
    if len(looked.resources) > _LISTED:
        screen.line(f"  … {len(looked.resources) - _LISTED:,} more", "dim")
    screen.line()


def _about(offer: Offer) -> str:
    name = " ".join(filter(None, (offer.server, offer.version))) or "a server without a name"
    return f"{one_line(name, 80)} · protocol {one_line(offer.protocol, 20)}"


def _words(looked: Looked) -> str:
    differs = looked.differs
    parts = [("changed", differs.changed), ("new", differs.added), ("gone", differs.gone), ("other", differs.words)]
    return "; ".join(f"{what}: {one_line(', '.join(names), 300)}" for what, names in parts if names)


def _blocks(diff: str) -> list[str]:
    """A diff of several tools as one diff each."""
    blocks: list[str] = []
    for line in diff.splitlines(keepends=True):
        if line.startswith("--- ") or not blocks:
            blocks.append("")
        blocks[-1] += line
    return blocks


def _text(text: str) -> str:
    return one_line(text, 2_000)
