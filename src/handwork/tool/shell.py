"""The session's shell: commands run one after another in one bash, with a time limit each, and the truth about what was lost."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from handwork.errors import SandboxError
from handwork.sandbox.base import Sandbox, Spent
from handwork.tool.call_clock import CallClock
from handwork.tool.process_end import how_it_ended
from handwork.tool.shell_jobs import ShellJobs
from handwork.tool.shell_process import Bash
from handwork.tool.spent import used_since
from handwork.tool.terminal_job import TerminalJob
from handwork.tool.terminal_text import plain_ends

_KILL_SECONDS = 5.0
_SETTLE_SECONDS = 0.5
_GATHER_SECONDS = 0.05
_LOST = "its variables, functions, aliases and current folder are gone"
_TAKEN = (
    "A new shell goes on with the state from before it (folder, variables, functions, aliases, options); what it changed itself, "
    "traps, descriptors opened by exec and the shell's own list of jobs (wait, %1) are gone."
)
_MOVED = "That folder cannot be entered, so the shell is in the workspace."


@dataclass(slots=True)
class Outcome:
    """What came of a command. `exit_code` is None when it was killed; negative when the shell itself died of a signal."""

    output: str
    background: str = ""
    """What background jobs wrote since the command before."""
    exit_code: int | None = None
    timed_out: bool = False
    fate: str = ""
    """What became of the shell when the command was killed."""
    shell_ended: bool = False
    seconds: float = 0.0
    omitted: int = 0
    folder: str = ""
    spent: Spent = field(default_factory=Spent)
    notes: list[str] = field(default_factory=list)


class Shell:
    """A persistent bash of a session, with the jobs that run beside it; a resource with `close()`."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.started = False
        """Whether it has ever run a command."""
        self.jobs = ShellJobs(sandbox)
        self._sandbox = sandbox
        self._bash: Bash | None = None
        self._former: list[Bash] = []
        self._killed = False
        """Whether we had to kill the shell."""
        self._notes: list[str] = []
        self._lock = asyncio.Lock()
        self._stopping: asyncio.Task[None] | None = None

    async def run(
        self, command: str, timeout: float, progress: Callable[[str], Awaitable[None]], clock: CallClock | None = None
    ) -> Outcome:
        """Run one command for at most `timeout` seconds (by `clock`); on time-out and on cancel its process tree is killed.

        Background jobs of earlier commands live on. Errors: SandboxError, SandboxUnavailable.
        """
        async with self._lock:
            bash, before = await self._ready_with_jobs()
            notes = self.take_notes()
            background = self.jobs.written_beside(self._bashes())
            used = await bash.process.spent()
            began = time.monotonic()
            timed_out = False
            try:
                async with (clock or CallClock()).limit(timeout) as limit:
                    await bash.begin(command, save=True)
                    await _follow(bash, progress)
            except TimeoutError:
                if not limit.expired():
                    raise
                if timed_out := not bash.done:
                    await self._stop(bash, before)
            except asyncio.CancelledError:
                self._notes = notes
                await self._cancelled(bash, before)
                raise
            outcome = await self._outcome(bash, timed_out)
            outcome.background, outcome.seconds = background, round(time.monotonic() - began, 3)
            outcome.spent = used_since(used, await bash.process.spent())
            await self.jobs.learn(bash, before)
            if timed_out:
                outcome.fate = await self._fate()
            outcome.notes = [*notes, *self.jobs.news()]
            return outcome

    async def open_terminal(self, command: str) -> TerminalJob:
        """Start a command in a terminal of its own, in the shell's folder and with its environment.

        Errors: ToolError when there are too many; SandboxError, SandboxUnavailable.
        """
        async with self._lock:
            bash = await self._ready()
            return await self.jobs.open_terminal(bash, command)

    def take_notes(self) -> list[str]:
        """What there is to tell of the shell: that it is a new one, what was lost."""
        notes, self._notes = self._notes, []
        return notes

    async def others(self) -> list[int]:
        """Living processes that commands have left and that are no jobs of the shell."""
        found = [pid for bash in self._bashes() for pid in await bash.process.descendants()]
        return self.jobs.strangers(found)

    async def look(self) -> list[str]:
        """Bring what is known of the jobs up to date; sentences about those that ended."""
        async with self._lock:
            await self.jobs.look([*self._former, *([self._bash] if self._bash and not self._stopping else [])])
            return self.jobs.news()

    async def restart(self) -> None:
        """Kill the shell with its background jobs and terminals; the next command gets a new one."""
        async with self._lock:
            await self._close_all()
            self._notes = []

    async def close(self) -> None:
        """Kill all that was started here."""
        if self._stopping:
            await asyncio.wait({self._stopping})
        await self._close_all()

    def _bashes(self) -> list[Bash]:
        return [*self._former, *([self._bash] if self._bash else [])]

    async def _close_all(self) -> None:
        bashes = self._bashes()
        self._former, self._bash, self._killed = [], None, False
        await asyncio.gather(*(bash.close() for bash in bashes), self.jobs.close())

    async def _ready_with_jobs(self) -> tuple[Bash, list[int]]:
        """The bash to use, and the processes of earlier commands."""
        bash = await self._ready()
        try:
            return bash, await bash.process.descendants()
        except SandboxError:  # the sandbox died and nobody had noticed; nothing of this command has run yet
            bash.over = True
            bash = await self._ready()
            return bash, await bash.process.descendants()

    async def _ready(self) -> Bash:
        """The bash to use; a new one, with a note of what was lost, when there is none that works."""
        bash = self._bash
        if bash and self._stopping:
            await asyncio.wait({self._stopping})
            self._stopping = None
            await bash.finish()
            self._notes.append("The command before was cancelled and killed with all its processes.")
        if bash and not bash.over and bash.generation == self._sandbox.generation:
            return bash
        if bash and self._killed and bash.generation == self._sandbox.generation:
            new, how = await Bash.succeed(self._sandbox, bash)
        else:
            new, how = await Bash.start(self._sandbox), ""
        self.started = True
        if bash:
            await self._replaced(bash, new, how)
        self._bash, self._killed = new, False
        return new

    async def _replaced(self, old: Bash, new: Bash, how: str) -> None:
        """Note what was kept or lost; a shell whose background jobs may live on is kept, to end them at the close."""
        if old.generation != new.generation:
            self._notes.append(
                f"The sandbox was started anew, so this is a new shell: {_LOST}, and so are all processes."
            )
            await old.close()
            return
        with contextlib.suppress(TimeoutError, OSError, SandboxError):
            async with asyncio.timeout(_SETTLE_SECONDS):
                await old.process.wait()
        if how:
            self._notes += [_TAKEN, _MOVED] if how == "moved" else [_TAKEN]
        elif self._killed:
            self._notes.append(
                f"The shell was killed with it, and what it had saved of its state cannot be read: {_LOST}."
            )
        else:
            ended = how_it_ended(old.process.returncode)
            self._notes.append(f"The shell before had ended ({ended}), so this is a new one: {_LOST}.")
        self._former.append(old)

    async def _fate(self) -> str:
        """Start the next shell at once, so that the result of the command that was killed can say what it took up."""
        try:
            await self._ready()
        except (OSError, SandboxError):  # the next command says what is wrong
            return f"The shell was killed with it: {_LOST}."
        return " ".join(self.take_notes())

    async def _outcome(self, bash: Bash, timed_out: bool) -> Outcome:
        capture = await bash.finish()
        end, ended = bash.end, bash.over
        code = end.status if end else (await bash.process.wait() if ended else None)
        if timed_out:
            code = None
        folder = end.folder if end else ""
        return Outcome(
            output=plain_ends(capture),
            exit_code=code,
            timed_out=timed_out,
            shell_ended=ended and end is None,
            omitted=capture.omitted,
            folder=folder,
        )

    async def _cancelled(self, bash: Bash, before: list[int]) -> None:
        """Kill the running command even if we are cancelled once more; the next result says what became of the shell."""
        self._stopping = asyncio.create_task(self._stop(bash, before))
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(self._stopping)

    async def _stop(self, bash: Bash, before: list[int]) -> None:
        """Kill the command's processes, and the shell with them unless it is through with the command.

        A shell that lived on would run the rest of the line, its loops and traps: nothing but its end prevents that.
        """
        keep = [bash.process.pid, *before] if bash.done else before
        with contextlib.suppress(TimeoutError, OSError, SandboxError):
            async with asyncio.timeout(_KILL_SECONDS):
                await bash.process.kill(keep=keep)
        if keep is before:
            await bash.settled(_SETTLE_SECONDS)
            bash.over = self._killed = True


async def _follow(bash: Bash, progress: Callable[[str], Awaitable[None]]) -> None:
    """Show output as it comes, several pieces at once, until the command ends."""
    while not bash.done:
        await bash.changed()
        await bash.settled(_GATHER_SECONDS)
        if text := bash.fresh():
            await progress(text)
