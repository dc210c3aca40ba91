"""What a connection to an MCP server needs of the session that it belongs to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from handwork.sandbox.base import Process
from handwork.schema import Notify
from handwork.tool.call_clock import CallClock

AskHuman: TypeAlias = Callable[[str], Awaitable[str]]
"""Put a question to the human; raises Waiting when nobody is there."""


class Spawn(Protocol):
    """Start a server's program: in the session's sandbox, or beside it. Its standard error is kept apart (`Process.errors`)."""

    async def __call__(
        self, argv: Sequence[str], *, cwd: str | None, env: Mapping[str, str], contained: bool
    ) -> Process: ...


def _nobody(secrets: Iterable[str]) -> None:
    """Where nothing is shown or kept, nothing need be hidden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """`ask` is None where nobody is there to be asked: what servers ask is answered cancel. `home` is the folder of what is kept about
    servers (tokens, approved definitions, installed programs). `hide` is told what must never be shown: tokens, values of headers."""

    spawn: Spawn
    workspace: str
    home: Path
    notify: Notify
    ask: AskHuman | None = None
    clock: CallClock = field(default_factory=CallClock)
    environ: Mapping[str, str] = field(default_factory=dict)
    hide: Callable[[Iterable[str]], None] = _nobody
