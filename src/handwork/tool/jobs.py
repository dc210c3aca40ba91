"""What runs beside the commands: background jobs and terminals, under the names by which the model reads and stops them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from handwork.errors import ToolError

_REMEMBERED = 32
"""Jobs that have ended and are still known."""


class Job(Protocol):
    """One of them. `name` is %1 as the shell calls its own, t1 for a terminal; `told` says that the model knows of its end."""

    name: str
    label: str
    told: bool

    @property
    def ended(self) -> bool: ...

    @property
    def exit_code(self) -> int | None:
        """None while it runs, and where nobody knows it; negative for a signal."""
        ...

    @property
    def unread(self) -> bool:
        """Whether it has written what was not read yet."""
        ...

    def state(self) -> str:
        """Running, or how it ended, in words."""
        ...

    def fresh(self) -> str:
        """What it wrote since the last time, as text."""
        ...

    async def stop(self) -> None:
        """End it with all that it started, and nothing else."""
        ...


class Jobs:
    """The jobs of one shell's session."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._terminals = 0

    def __iter__(self) -> Iterator[Job]:
        return iter(list(self._jobs.values()))

    def get(self, name: str) -> Job | None:
        return self._jobs.get(name)

    def next_terminal(self) -> str:
        """A name for another terminal; none is used twice."""
        self._terminals += 1
        return f"t{self._terminals}"

    def add(self, job: Job) -> None:
        """Take one in; what ended and is told makes room. One that lives (of a shell that is gone) gives up its name, but not its place."""
        former = self._jobs.pop(job.name, None)
        self._jobs[job.name] = job
        if former and not former.ended:
            former.name = f"{former.name}-old"
            self.add(former)
        over = [job for job in self if job.ended and job.told]
        for old in over[:-_REMEMBERED]:
            del self._jobs[old.name]

    def clear(self) -> None:
        """Forget all."""
        self._jobs.clear()

    def find(self, name: str) -> Job:
        """The job that the model means: t1, %1, or 1 if that is clear. Errors: ToolError with the names that there are."""
        plain = name.strip().lower().removeprefix("job").strip()
        meant = [job for job in self if plain in (job.name, job.name[1:])]
        exact = [job for job in meant if job.name == plain]
        if len(found := exact or meant) == 1:
            return found[0]
        names = ", ".join(job.name for job in self)
        if not names:
            raise ToolError(f"There is no job {name!r}: no job is running.")
        raise ToolError(f"There is {'more than one' if meant else 'no'} job {name!r}: the jobs are {names}.")

    def news(self) -> list[str]:
        """One sentence for each job whose end was not told yet."""
        over = [job for job in self if job.ended and not job.told]
        for job in over:
            job.told = True
        return [f"Job {job.name} ({job.label}) has ended: {job.state()}." for job in over]


def short_label(command: str) -> str:
    """A command in one short line."""
    line = " ".join(command.split())
    return line if len(line) <= 80 else f"{line[:79]}…"
