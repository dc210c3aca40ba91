"""One bash: how a command is handed to it, and how its end is known without trusting what the command prints."""

from __future__ import annotations

import asyncio
import contextlib
import secrets

from handwork.errors import SandboxError
from handwork.sandbox.base import Process, Sandbox
from handwork.sandbox.capture import Capture
from handwork.tool.shell_output import End, Output
from handwork.tool.shell_slot import Slot, may_leave_jobs
from handwork.tool.shell_state import OPENING, States, quoted, saving, taken, taking_up

_SLOTS, _KEPT_SLOTS = 16, 64
"""Pipes that are open, and with those whose output nobody has read, for commands that left jobs; later ones share the shell's own."""
_LATE_SECONDS = 0.2
_STATE_SECONDS, _STATE_PAUSE = 1.0, 0.02
_TAKE_UP_SECONDS = 5.0
_KILLED_STATUS = 128 + 9
_ENVIRONMENT = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    # Vim without a terminal would wait for keys for ever, unless it was given commands.
    "VIMINIT": r"""if !has("ttyin") && match(v:argv, '^\(-[cSesE]\|+\|--cmd\)') < 0 | cquit | endif""",
}
# The shell reads our lines as its script. Its own output goes to /dev/null, so that what `set -x` and traps say about
# our lines is not seen; descriptor 19 is the real output, given to each command as 1 and 2 and closed under that number.
# Descriptor 17 is the pipe on which the shell tells its state.
_OPENING = 'exec 19>&1 1>/dev/null 2>&1\nshopt -s expand_aliases\n__handwork_status() { return "$1"; }\n' + OPENING


def frame(command: str, last_status: int, token: str, pipe: str = "") -> str:
    """The lines that run a command and then print `<token> <status> <folder>NUL<table of jobs>NUL`.

    The command is one quoted word, so nothing in it can end early or swallow what follows. The token stands in a later line of the
    script, which the shell has not read while the command runs: the command cannot print it, and all that it wrote before
    its end comes before it. `$?` is restored first, as a person would expect from a shell. `pipe` is the path of a pipe that
    takes the output instead of the shell's own; its descriptor is 18.
    """
    out = 18 if pipe else 19
    run = f"\\builtin eval {quoted(command)} 0</dev/null 1>&{out} 2>&1 19>&- 18>&- 17>&-"
    if last_status:
        run = f"__handwork_status {last_status} || {run}"
    opening = f"\\exec 18>{quoted(pipe)}\n" if pipe else ""
    closing = "\\exec 18>&-\n" if pipe else ""
    # Three plain commands: a group would be a syntax error after one of the command's, and show what a DEBUG trap prints.
    mark = (
        f'\\builtin printf \'%s %s %s\\0\' {token} "$?" "${{PWD::3000}}" 1>&{out}\n'
        f"\\builtin jobs -l 1>&{out}\n\\builtin printf '\\0' 1>&{out}"
    )
    return f"{opening}LINENO=0\n{run}\n{mark}\n{closing}"


class Bash:
    """A running bash. Its output is read all the time, so that a background job never blocks on a full pipe."""

    def __init__(self, sandbox: Sandbox, process: Process) -> None:
        self.process = process
        self.generation = sandbox.generation
        self.status = 0
        self.folder = ""
        self.over = False
        """Whether the shell has ended."""
        self.own = Output()
        """Its own pipe; a command that may leave jobs has a slot instead."""
        self.slot: Slot | None = None
        self.slots: list[Slot] = []
        self._sandbox = sandbox
        self._states = States()
        self._channel: Slot | None = None
        self._saved = self._saving = ""
        """The mark of the state that the last command left, and of the one that comes after the running one."""
        self._current = self.own
        self._woken = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, sandbox: Sandbox) -> Bash:
        """Start one in the workspace."""
        bash = await cls._start(sandbox)
        await bash._write(bash._expect_state())
        bash._saved = bash._saving
        return bash

    @classmethod
    async def succeed(cls, sandbox: Sandbox, former: Bash) -> tuple[Bash, str]:
        """Start one that takes up the state of another which was killed in a command; and how far it did (see `taken`)."""
        if state := await former._states.get(former._saved, _STATE_SECONDS):
            bash = await cls._start(sandbox)
            said = await bash.ask(taking_up(state), _TAKE_UP_SECONDS)
            if said and (how := taken(b"".join(said.ends()))):
                await bash._write(bash._expect_state())
                bash._saved, bash.status = bash._saving, _KILLED_STATUS
                return bash, how
            await bash.close()  # half of a state is none
        return await cls.start(sandbox), ""

    @classmethod
    async def _start(cls, sandbox: Sandbox) -> Bash:
        process = await sandbox.spawn(["bash", "--noprofile", "--norc"], env=_ENVIRONMENT, stdin=True)
        bash = cls(sandbox, process)
        try:
            slot = await Slot.open(sandbox, asyncio.Event(), bash._states, pause=_STATE_PAUSE)
        except asyncio.CancelledError:
            await bash.close()
            raise
        if slot:
            bash._channel = slot
            await bash._write(f"exec 17>{quoted(slot.path)}\n")
        await bash._write(_OPENING)
        return bash

    def _expect_state(self) -> str:
        """The line that has the shell tell its state; none where there is no pipe for it."""
        self._saving = secrets.token_hex(16) if self._channel else ""
        if not self._saving:
            return ""
        self._states.expect(self._saving)
        return saving(self._saving)

    async def begin(self, command: str, *, save: bool = False) -> None:
        """Hand a command over; follow it by `changed` and `settled`, and `finish` it. `save` has the shell tell the state that
        it leaves, after the end: there it costs the call no time."""
        await self._drop_closed_slots()
        self.slot = None
        open_slots = sum(not slot.output.closed for slot in self.slots)
        if may_leave_jobs(command) and open_slots < _SLOTS and len(self.slots) < _KEPT_SLOTS:
            self.slot = await Slot.open(self._sandbox, self._woken)
        if self.slot:
            self.slots.append(self.slot)
        self._current = self.slot.output if self.slot else self.own
        token = secrets.token_hex(16)
        self._current.expect(token)
        tell = self._expect_state() if save else ""
        await self._write(frame(command, self.status, token, self.slot.path if self.slot else "") + tell)

    @property
    def done(self) -> bool:
        """Whether the command (or the shell itself) has ended."""
        return self.over or self._current.end is not None

    @property
    def end(self) -> End | None:
        return self._current.end

    def fresh(self) -> str:
        """What the running command wrote since the last time, to be shown while it runs."""
        return self._current.fresh.take()

    async def changed(self) -> None:
        """Wait until there is more output, or the end."""
        if not self.done:
            await self._woken.wait()
            self._woken.clear()

    async def settled(self, seconds: float) -> bool:
        """Wait at most this long for the end; whether it came."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.done:
                    await self.changed()
        return self.done

    async def finish(self) -> Capture:
        """Take what the command wrote; from now on output belongs to background jobs."""
        if (
            self.over and self.slot and not self._current.end
        ):  # what a shell wrote before its end may still be on its way
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LATE_SECONDS):
                    while not self.slot.output.closed:
                        await self._woken.wait()
                        self._woken.clear()
        if end := self._current.end:
            self.status, self.folder = end.status, end.folder
            self._saved = self._saving or self._saved
        return self._current.finish()

    async def ask(self, command: str, seconds: float) -> Capture | None:
        """What a command of ours prints, which must be short and change nothing; None if the shell does not answer."""
        status = self.status
        await self.begin(command)
        if not await self.settled(seconds) or self.over:
            return None
        capture = await self.finish()
        self.status = status
        return capture

    async def close(self) -> None:
        """Kill the shell with all that it started."""
        with contextlib.suppress(SandboxError, OSError):
            await self.process.kill()
        await asyncio.gather(*(slot.close() for slot in [*self.slots, *([self._channel] if self._channel else [])]))
        self._reader.cancel()
        await asyncio.wait({self._reader})

    async def _drop_closed_slots(self) -> None:
        for slot in [slot for slot in self.slots if slot.output.closed and not slot.output.after.total]:
            self.slots.remove(slot)
            await slot.close()

    async def _write(self, text: str) -> None:
        # A shell that is gone is noticed by the reader.
        with contextlib.suppress(OSError):
            await self.process.write(text.encode("utf-8", "surrogateescape"))

    async def _read(self) -> None:
        try:
            with contextlib.suppress(OSError, SandboxError):
                while chunk := await self.process.read():
                    self.own.feed(chunk)
                    self._woken.set()
        finally:
            self.over = True
            self._woken.set()
        with contextlib.suppress(OSError, SandboxError):
            while chunk := await self.process.read(beyond=True):  # jobs that it left would wait for ever on a full pipe
                self.own.feed(chunk)
