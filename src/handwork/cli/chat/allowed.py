"""/allowed: what was allowed for this session, and taking it back."""

from __future__ import annotations

from handwork.cli.clean import show_exactly
from handwork.cli.lines import Screen
from handwork.errors import ConfigError
from handwork.session import Session
from handwork.session.taking_back import take_back


async def show_or_forget(screen: Screen, session: Session, wanted: str) -> None:
    """List the rules, or take back the one of this number, or `all`. Raises ConfigError for what is not there."""
    kept = session.grants.for_session
    verb, _, which = wanted.partition(" ")
    if wanted and verb != "forget":
        raise ConfigError(f"/allowed does not know {show_exactly(verb[:60])}", hint="/allowed forget N, or forget all")
    if wanted:
        for rule in await take_back(session, _named(which.strip(), kept)):
            screen.line(f"Taken back: {_shown(rule)}", "dim")
        return
    for number, rule in enumerate(kept, 1):
        screen.line(f"  {number}. {_shown(rule)}")
    if kept:
        screen.line(
            "For this session. Taking one back: /allowed forget N. Allowed for good: handwork policy list", "dim"
        )
    else:
        screen.line("Nothing was allowed for this session. Allowed for good: handwork policy list", "dim")


def _named(which: str, kept: tuple[str, ...]) -> tuple[str, ...]:
    if which == "all":
        return kept
    if which.isascii() and which.isdigit() and 0 < int(which[:9]) <= len(kept):
        return (kept[int(which) - 1],)
    raise ConfigError(
        f"There is no number {show_exactly(which[:60]) or '(none)'}", hint="/allowed lists them; or: forget all"
    )


def _shown(rule: str) -> str:
    return show_exactly(rule).replace("\n", "⟨U+000A⟩")
