"""The session's Python kernel: code runs with a time limit, and the truth about what was lost is told."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from handwork.sandbox.base import Sandbox, Spent
from handwork.schema import scrub
from handwork.tool.call_clock import CallClock
from handwork.tool.kernel_link import Link
from handwork.tool.process_end import how_it_ended
from handwork.tool.spent import used_since
from handwork.tool.terminal_text import Fresh, plain

_ANSWER_SECONDS = 1.0
"""How long a kernel may take to answer an interrupt before it is killed (CONTRACT A8)."""
_GATHER_SECONDS = 0.05
_LOST = "all variables and imports are gone"


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure: base64 text; empty when it was too large to be brought over (`size` characters)."""

    media_type: str
    data: str
    size: int


@dataclass(slots=True)
class Outcome:
    """What came of a piece of code. `survived` says whether the kernel's state is still there."""

    text: str = ""
    traceback: str = ""
    error_name: str = ""
    pictures: list[Picture] = field(default_factory=list)
    omitted: int = 0
    pictures_omitted: int = 0
    timed_out: bool = False
    survived: bool = True
    left: bool = False
    """The code asked the kernel to end (exit())."""
    exit_code: int | None = None
    log: str = ""
    spent: Spent = field(default_factory=Spent)
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)


class Kernel:
    """A persistent Python kernel of a session; a resource with `close()`."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.started = False
        """Whether it has ever run."""
        self._sandbox = sandbox
        self._link: Link | None = None
        self._notes: list[str] = []
        self._lock = asyncio.Lock()
        self._stopping: asyncio.Task[bool] | None = None

    async def run(
        self, code: str, timeout: float, progress: Callable[[str], Awaitable[None]], clock: CallClock | None = None
    ) -> Outcome:
        """Run code for at most `timeout` seconds (by `clock`); then, and on cancel, it is interrupted, and
        killed if that does not help.

        Errors: SandboxError when no kernel can be started.
        """
        async with self._lock:
            link = await self._ready()
            outcome = Outcome(notes=self._notes)
            self._notes = []
            used = await link.process.spent()
            began = time.monotonic()
            try:
                async with (clock or CallClock()).limit(timeout) as limit:
                    await link.say(op="execute", code=code)
                    over = await _collect(link, outcome, progress)
                    if over == "gone":  # it died between the calls: this code has not begun to run
                        link = await self._again(outcome)
                        await link.say(op="execute", code=code)
                        over = await _collect(link, outcome, progress)
            except TimeoutError:
                if not limit.expired():
                    raise
                outcome.timed_out = True
                outcome.survived = await self._interrupt(link, outcome)
            except asyncio.CancelledError:
                self._notes = outcome.notes
                await self._cancelled(link)
                raise
            else:
                if over != "done" or outcome.left:
                    outcome.survived = False
                    await self._discard(link)
            outcome.text = scrub(plain(outcome.text))
            outcome.seconds = round(time.monotonic() - began, 3)
            outcome.spent = used_since(used, await link.process.spent())
            return outcome

    async def close(self) -> None:
        """Kill the kernel with all that it started."""
        if self._stopping:
            await asyncio.wait({self._stopping})
        link, self._link = self._link, None
        if link:
            await link.close()

    async def _ready(self) -> Link:
        """The kernel to use; a new one, with a note of what was lost, when there is none that works."""
        if self._stopping:
            await asyncio.wait({self._stopping})
            lives, self._stopping = self._stopping.result(), None
            fate = "interrupted; the kernel's state survived" if lives else f"killed with the kernel, so {_LOST}"
            self._notes.append(f"The code before was cancelled and {fate}.")
        old = self._link
        if old and not old.over and old.generation == self._sandbox.generation:
            return old
        if old:
            await self._discard(old)
        link = self._link = await Link.start(self._sandbox)
        self.started = True
        if old:
            anew = old.generation != link.generation
            why = (
                "The sandbox was started anew, so this is a new kernel"
                if anew
                else "The kernel before had ended, so this is a new one"
            )
            self._notes.append(f"{why}: {_LOST}.")
        return link

    async def _again(self, outcome: Outcome) -> Link:
        died = f" ({how_it_ended(outcome.exit_code)})"
        outcome.notes.append(f"The kernel had died{died} since the last call, so this is a new one: {_LOST}.")
        outcome.exit_code, outcome.log = None, ""
        await self.close()
        return await self._ready()

    async def _interrupt(self, link: Link, outcome: Outcome) -> bool:
        """Interrupt and wait for the answer to the request, without which the next one would be lost; else kill. Whether it lives."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ANSWER_SECONDS):
                await link.say(op="interrupt")
                if await _collect(link, outcome, _nobody) == "done" and not outcome.left:
                    return True
        await self._discard(link)
        return False

    async def _discard(self, link: Link) -> None:
        """Kill this kernel and forget it."""
        if self._link is link:
            self._link = None
        await link.close()

    async def _cancelled(self, link: Link) -> None:
        """Stop the running code even if we are cancelled once more; the next result says what became of the state."""
        self._stopping = asyncio.create_task(self._interrupt(link, Outcome()))
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(self._stopping)


async def _nobody(_text: str) -> None:
    pass


class _Live:
    """Shows output while code runs: at once, and then what comes within a moment together."""

    def __init__(self, progress: Callable[[str], Awaitable[None]]) -> None:
        self._progress = progress
        self._fresh = Fresh()
        self._waiting = False
        self._told = 0.0

    def add(self, text: str) -> None:
        self._fresh.add(text.encode("utf-8", "replace"))
        self._waiting = True

    async def during(self, hear: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """The next message; what waits to be shown is shown meanwhile."""
        if self._waiting and (wait := self._told + _GATHER_SECONDS - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    return await hear()
        if self._waiting:
            await self.tell()
        return await hear()

    async def tell(self) -> None:
        if self._waiting and (text := self._fresh.take()):
            await self._progress(scrub(text))
        self._waiting, self._told = False, time.monotonic()


async def _collect(link: Link, outcome: Outcome, progress: Callable[[str], Awaitable[None]]) -> str:
    """Take what comes until the code has ended; returns how: done, died, gone (before it began) or over."""
    live = _Live(progress)
    while True:
        message = await live.during(link.hear)
        kind = message["kind"]
        if kind == "text":
            outcome.text += message["text"]
            live.add(message["text"])
        elif kind in ("image", "error", "late"):
            _part(kind, message, outcome)
        else:
            await live.tell()
            outcome.left = bool(message.get("leaving"))
            if message.get("gap"):
                outcome.notes.append("The end of the output never came: some of it may be missing.")
            outcome.exit_code = message.get("code")
            outcome.log = plain(message.get("log") or "").strip()
            return str(kind)


def _part(kind: str, message: dict[str, Any], outcome: Outcome) -> None:
    if kind == "image":
        outcome.pictures.append(Picture(message["media_type"], message["data"], message["size"]))
    elif kind == "error":
        outcome.error_name = message["name"]
        outcome.traceback = scrub(plain(message["traceback"]))
    else:
        outcome.omitted, outcome.pictures_omitted = message["omitted"], message["images_omitted"]
        gap = f"\n[... {outcome.omitted} characters omitted ...]\n" if outcome.omitted else ""
        outcome.text += gap + message["text"]
