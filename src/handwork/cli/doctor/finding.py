"""What a check of the doctor says, and what it may look at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from handwork.config import Settings
from handwork.tool.threads import run_in_thread

Status = Literal["ok", "note", "warning", "problem"]
"""A `note` is neither good nor bad: what could be there and need not."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report.

    id: stable, for scripts: `sandbox.starts`.
    group: the heading that it stands under.
    text: what was found and what that means; one line.
    fix: what to do about it, as it is typed where a command helps; '' for nothing.
    essential: a problem here means that Handwork cannot work: exit code 1.
    """

    id: str
    group: str
    status: Status
    text: str
    fix: str = ""
    essential: bool = False


@dataclass(frozen=True, slots=True)
class Ground:
    """What a check may look at. Nothing may be sent anywhere but to this machine unless `online`."""

    settings: Settings
    workspace: Path
    online: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """A look at one subject.

    essential: whether a look that breaks or hangs is a problem without which Handwork cannot work.
    seconds: how long it may take.
    """

    id: str
    group: str
    look: Callable[[Ground], Awaitable[Iterable[Finding]]]
    essential: bool = False
    seconds: float = 5.0


def blocking(look: Callable[[Ground], Iterable[Finding]]) -> Callable[[Ground], Awaitable[Iterable[Finding]]]:
    """A plain function as a look: it runs in a thread of its own, which is left behind if it hangs."""

    async def wrapped(ground: Ground) -> list[Finding]:
        return await run_in_thread(lambda: list(look(ground)))

    return wrapped
