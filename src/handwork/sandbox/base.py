"""The protocol of every sandbox: one set of namespaces per session, for files, processes and ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Spent:
    """What a program with all that it started has used so far: processor time in seconds, and the largest resident memory
    of one of its processes, in bytes (0 where nobody knows)."""

    cpu_seconds: float = 0.0
    peak_memory: int = 0


@dataclass(frozen=True, slots=True)
class ExecResult:
    """What a finished command left: `output` is standard output, `stderr` standard error; both capped.

    `exit_code` is negative for a signal (-9), as in subprocess. `omitted` counts the bytes that the cap left out of both.
    """

    exit_code: int
    output: bytes
    stderr: bytes = b""
    timed_out: bool = False
    omitted: int = 0
    spent: Spent = Spent()


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder: `size` in bytes, `mode` the permission bits, `path` relative to what was listed ('' for itself).

    `links` is how many names a file has (hard links); 1 for anything else.
    """

    path: str
    kind: Literal["file", "directory", "symlink", "other"]
    size: int
    mode: int
    links: int = 1


class Process(Protocol):
    """A running program inside the sandbox; its standard output and error come merged, in order, as bytes, unless it was
    started with `apart`."""

    @property
    def pid(self) -> int:
        """The process id inside the sandbox."""
        ...

    @property
    def returncode(self) -> int | None:
        """None while it runs; negative for a signal."""
        ...

    @property
    def errors(self) -> str:
        """The end of what it wrote on its standard error, if that is kept apart (64 KB); else ''. It is always read, so that
        the program never waits for us."""
        ...

    async def write(self, data: bytes) -> None:
        """Write to its standard input (only if spawned with stdin=True or pty=True)."""
        ...

    async def close_stdin(self) -> None: ...

    async def read(self, limit: int = 65536, *, beyond: bool = False) -> bytes:
        """Up to `limit` bytes of its output; b'' when no writer is left or the process has ended and all was read.

        `beyond` its end, it waits for what those whom it left write, until none of them is left.
        """
        ...

    async def wait(self) -> int: ...

    async def signal(self, number: int) -> None:
        """Send a signal to the program itself."""
        ...

    async def kill(self, keep: Sequence[int] = ()) -> None:
        """Kill the whole tree (setsid children included) and wait until it is gone.

        All is stopped before the first is killed, so none of them sees another's end. `keep`: ids (see `descendants`) to
        spare, with all below them; the program's own id spares itself alone.
        """
        ...

    async def descendants(self) -> list[int]:
        """The process ids of all living descendants, however deep, orphans of this tree included."""
        ...

    async def spent(self) -> Spent:
        """What its tree has used until now."""
        ...


class Sandbox(Protocol):
    """A place for a session's tools. Starts at its first use; every path is absolute or relative to `workspace`.

    Errors: FileNotFoundError, IsADirectoryError, NotADirectoryError, FileExistsError, PermissionError as the kernel gives
    them (with the path as the model gave it); SandboxError when the sandbox itself broke; SandboxUnavailable when it
    cannot start.
    """

    @property
    def name(self) -> str:
        """bwrap, host, docker …"""
        ...

    @property
    def contained(self) -> bool:
        """Whether the operating system confines what runs here (False: host)."""
        ...

    @property
    def workspace(self) -> str:
        """The workspace's path as seen inside."""
        ...

    @property
    def artifacts(self) -> str:
        """The path, as seen inside, of the session's artifacts (read-only there)."""
        ...

    @property
    def python(self) -> str:
        """The Python interpreter inside, and `package` below: what runs our own parts (the kernel's bridge) there."""
        ...

    @property
    def package(self) -> str:
        """The folder of the handwork package, as seen inside."""
        ...

    @property
    def generation(self) -> int:
        """Grows whenever the sandbox had to be started anew: what ran in an earlier one is gone."""
        ...

    async def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float | None = None,
        max_output: int = 1_000_000,
    ) -> ExecResult:
        """Run a command to its end; on time-out and on cancel its whole tree is killed. Head and tail of the output are kept."""
        ...

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bool = False,
        pty: bool = False,
        apart: bool = False,
    ) -> Process:
        """Start a program that lives on (a shell, a kernel, a server). `env` is added to the sandbox's own clean environment.
        `apart` keeps its standard error out of its output (not on a terminal)."""
        ...

    async def read(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes: ...

    async def write(
        self,
        path: str,
        data: bytes,
        *,
        mode: int | None = None,
        exclusive: bool = False,
        expected: str | None = None,
    ) -> None:
        """Write a file atomically (temporary file, fsync not needed, rename over the real target of a symlink).

        Parents are made. An existing file keeps its mode unless `mode` is given; `exclusive` refuses an existing one.
        `expected`, the SHA-256 of the old content in hex, refuses a file that holds anything else by now (OSError with
        ESTALE): it is compared right before the rename, so that nobody's work in between is overwritten. A file with
        several names (hard links) gets one of its own: the others keep the old content.
        """
        ...

    async def remove(self, path: str, *, expected: str | None = None) -> None:
        """Remove a file (not a folder); `expected` as for `write`."""
        ...

    async def list(self, path: str, *, depth: int = 1, hidden: bool = True, limit: int = 10_000) -> list[Entry]:
        """The entries below a folder, sorted by path, `depth` levels deep."""
        ...

    async def stat(self, path: str) -> Entry | None:
        """What stands there, symlinks followed; None if nothing does."""
        ...

    async def resolve(self, path: str) -> str:
        """The real absolute path inside (symlinks followed as far as they exist), for policy and concurrency."""
        ...

    async def after_call(self) -> Sequence[str]:
        """A tool call has ended: what the sandbox did to it, in sentences that the model should read (a program ended at a
        limit, a file that may not appear in a workspace and was moved to the artifacts). Does nothing in a sandbox that was
        never started, and never raises for what the call did."""
        ...

    async def close(self) -> None:
        """Kill everything inside and free it; no process is left. Closing twice is fine."""
        ...
