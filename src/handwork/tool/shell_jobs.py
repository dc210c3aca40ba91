"""The jobs of a session's shell: background jobs as its table tells of them, and terminals."""

from __future__ import annotations

import asyncio

from handwork.errors import SandboxError, SandboxLacks, ToolError
from handwork.sandbox.base import Sandbox
from handwork.tool.jobs import Jobs
from handwork.tool.shell_job import ShellJob
from handwork.tool.shell_process import Bash
from handwork.tool.shell_table import read_table
from handwork.tool.terminal_job import TerminalJob
from handwork.tool.terminal_text import plain_ends

TERMINALS = 8
"""Terminals that may be open together."""
_BESIDE = 4000
"""Bytes of a background job's output that are shown unasked with the next command."""
_ASK_SECONDS = 5.0
_OWN = ("_", "SHLVL", "VIMINIT")
"""Variables that belong to the shell itself, or are for programs without a terminal."""


class ShellJobs(Jobs):
    """Knows them, opens terminals, and ends all."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__()
        self._sandbox = sandbox

    async def open_terminal(self, bash: Bash, command: str) -> TerminalJob:
        """Start a command in a terminal, in the shell's folder and with its environment. Errors: ToolError, SandboxError."""
        open_ones = [job.name for job in self if isinstance(job, TerminalJob) and not job.ended]
        if len(open_ones) >= TERMINALS:
            raise ToolError(
                f"{TERMINALS} terminals are open, which is the most: stop one of {', '.join(open_ones)} first."
            )
        listed = await bash.ask("/usr/bin/env -0", _ASK_SECONDS)
        environment = _environment(b"".join(listed.ends())) if listed and not listed.omitted else {}
        folder = bash.folder or None
        try:
            job = await TerminalJob.start(self.next_terminal(), command, self._sandbox, folder, environment)
        except SandboxLacks as error:
            raise ToolError(f"Nothing was run. {error}.") from error
        self.add(job)
        return job

    async def look(self, bashes: list[Bash]) -> None:
        """Ask the shells that live for their tables, and the system for who lives."""
        for bash in bashes:
            living: list[int] = []
            if bash.generation == self._sandbox.generation:
                try:
                    if not bash.over:
                        await bash.ask("", _ASK_SECONDS)
                    living = await bash.process.descendants()
                except SandboxError:
                    living = []  # the sandbox is gone, and all of them with it
            await self.learn(bash, living)

    async def learn(self, bash: Bash, living: list[int]) -> None:
        """Take over what the shell's table says, and who still lives."""
        entries = {entry.number: entry for entry in read_table(bash.end.table)} if bash.end and not bash.over else {}
        alive, slot = set(living), bash.slot
        for job in self:
            if isinstance(job, ShellJob) and job.bash is bash and not job.ended:
                job.see(entries.get(job.number), alive)
                await job.ask_how()
        for entry in entries.values():
            known = self.get(f"%{entry.number}")
            same = isinstance(known, ShellJob) and known.bash is bash and known.pids == entry.pids
            if not same and (entry.alive or entry.exit_code):
                self.add(job := ShellJob(self._sandbox, bash, entry, slot))
                job.see(entry, alive)

    def written_beside(self, bashes: list[Bash]) -> str:
        """What background jobs of these wrote since the command before; what is much stays where `job` reads it."""
        parts = [plain_ends(bash.own.take_after()) for bash in bashes]
        for slot in [slot for bash in bashes for slot in bash.slots]:
            names = [job.name for job in self if isinstance(job, ShellJob) and job.slot is slot]
            written = slot.output.after.total
            if names and written > _BESIDE:
                parts.append(f'[job {names[0]} wrote {written} bytes: read them with job: "{names[0]}"]')
            elif written:
                parts += [*(f"[job {name}]" for name in names), plain_ends(slot.output.take_after())]
        return "\n".join(part.removesuffix("\n") for part in parts if part)

    def strangers(self, living: list[int]) -> list[int]:
        """Those of these processes that no job is known to be."""
        known = {pid for job in self if isinstance(job, ShellJob) for pid in job.pids}
        return [pid for pid in living if pid not in known]

    async def close(self) -> None:
        """End the terminals and forget all; background jobs end with their shell."""
        terminals = [job for job in self if isinstance(job, TerminalJob)]
        self.clear()
        await asyncio.gather(*(job.close() for job in terminals))


def _environment(listed: bytes) -> dict[str, str]:
    """What `env -0` printed; a value that is no text is left out."""
    pairs = [item.decode("utf-8", "replace").partition("=") for item in listed.split(b"\0") if b"=" in item]
    return {name: value for name, _, value in pairs if "\ufffd" not in name + value and name not in _OWN}
