"""A background job of the shell: what it writes, whether it lives, and its end."""

from __future__ import annotations

from handwork.sandbox.base import Sandbox
from handwork.tool.jobs import short_label
from handwork.tool.process_end import how_it_ended
from handwork.tool.process_tree import end_tree
from handwork.tool.shell_process import Bash
from handwork.tool.shell_slot import Slot
from handwork.tool.shell_table import Entry
from handwork.tool.terminal_text import plain_ends

_ASK_SECONDS = 2.0
_NOT_KNOWN = 127
"""What `wait` answers about a process that it does not know."""


class ShellJob:
    """A job that a command left. Its output has a pipe of its own, which it shares with the other jobs of that command."""

    def __init__(self, sandbox: Sandbox, bash: Bash, entry: Entry, slot: Slot | None) -> None:
        self.name, self.label = f"%{entry.number}", short_label(entry.command)
        self.number, self.pids = entry.number, entry.pids
        self.bash, self.slot = bash, slot
        self.told = False
        self.ended = False
        self.exit_code: int | None = None
        self._how = "running"
        self._sandbox = sandbox

    @property
    def unread(self) -> bool:
        return self.slot is not None and self.slot.output.after.total > 0

    def state(self) -> str:
        return self._how

    def fresh(self) -> str:
        return plain_ends(self.slot.output.take_after()) if self.slot else ""

    async def stop(self) -> None:
        await end_tree(self._sandbox, list(self.pids), "TERM")

    def see(self, entry: Entry | None, living: set[int]) -> None:
        """Learn from the shell's table, and from the processes that live."""
        if self.ended:
            return
        if entry and entry.pids == self.pids:
            self._how = "running" if entry.state.startswith("Running") else entry.state.lower()
            if not entry.alive:
                self._end(entry.exit_code, entry.state.lower())
        elif not living.intersection(self.pids):
            self._end(None, "its exit code is not known")

    async def ask_how(self) -> None:
        """The shell's table forgets a job that was killed, or that the command itself has looked at; its `wait` still knows."""
        if not self.ended or self.exit_code is not None or self.bash.over:
            return
        said = await self.bash.ask(f"\\builtin wait {self.pids[-1]} 2>/dev/null; \\builtin printf %s $?", _ASK_SECONDS)
        words = b"".join(said.ends()).split() if said else []
        if words and words[-1].isdigit() and (status := int(words[-1])) != _NOT_KNOWN:
            self._end(-(status - 128) if 128 < status <= 192 else status, "")

    def _end(self, code: int | None, words: str) -> None:
        self.ended, self.exit_code = True, code
        self._how = words if code is None else how_it_ended(code)
