"""A supervised sandbox on a workspace with protected names: programs meet the mounts, file tools an error that says why."""

from __future__ import annotations

import errno
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from handwork.config.user_proxy import handed_on
from handwork.errors import ConfigError
from handwork.sandbox.client import SupervisedSandbox
from handwork.sandbox.closed import Rules
from handwork.sandbox.connection import Connection
from handwork.sandbox.git_place import repository_outside
from handwork.sandbox.guard import Guard
from handwork.sandbox.limits import Limits
from handwork.sandbox.ruled import remedy
from handwork.sandbox.texts import shown
from handwork.schema import Notify

_NO_GIT = "The repository that this workspace belongs to lies outside of it and is not shown here: git does not work."


class GuardedSandbox(SupervisedSandbox):
    """Looks through the workspace at each start, after each call, and when it ends."""

    holds = True
    """Whether the backend mounts read-only what is protected; else it is compared and put back."""

    def __init__(
        self,
        workspace: Path,
        artifacts: Path,
        notify: Notify,
        limits: Limits | None = None,
        *,
        writable: Sequence[str] = (),
        rules: Rules | None = None,
    ) -> None:
        super().__init__(workspace, artifacts, notify, limits)
        self._writable, self._rules = tuple(writable), rules or Rules()
        self._guard: Guard | None = None
        self._warned = set[str]()

    @abstractmethod
    def _launch_in(self, guard: Guard) -> Connection:
        """Start a supervisor for the workspace as the guard found it. Raises SandboxUnavailable."""

    def _launch(self) -> Connection:
        guard = self._look()
        try:
            return self._launch_in(guard)
        except BaseException:
            self._let_go()
            raise

    def _look(self) -> Guard:
        """Look through the workspace before a start. Raises ConfigError where it cannot be opened."""
        self._let_go()  # of a start before, which failed
        try:
            guard = Guard(
                self._workspace, self._artifacts, self._notify, writable=self._writable, holds=self.holds,
                rules=self._rules,
            )  # fmt: skip
        except OSError as error:
            raise ConfigError(
                f"The workspace {self._workspace} cannot be opened: {_why(error)}",
                hint="see what stands there now, or choose another with --workspace",
            ) from error
        self._guard = guard
        self._warn_once(guard)
        return guard

    def _outside(self, place: Path) -> Path:
        """Where a place inside lies out here."""
        return place

    def _warn_once(self, guard: Guard) -> None:
        status = self._workspace.stat()
        if status.st_uid != os.geteuid() and not os.access(self._workspace, os.W_OK):
            self._warn(
                "owner", f"The workspace {self._workspace} belongs to another user: programs cannot write there."
            )
        if not guard.found.complete:
            self._warn(
                "search",
                "The workspace is so large that not all of it was searched for repositories: in those that were not found, "
                "programs can change hooks and settings.",
            )
        if guard.too_large:
            self._warn("large", f"Too large to be put back if programs change it: {', '.join(guard.too_large[:5])}")

        self._warn_of_rules(guard)
        if (said := repository_outside(self._workspace)) and "git" not in self._warned:
            self._warn("git", said, "info")
            self._tell(_NO_GIT)

    def _warn_of_rules(self, guard: Guard) -> None:
        ruled = guard.ruled
        if not ruled.found.complete:
            self._warn(
                "rules",
                "The workspace is so large that not all of it was searched for what the rules of [policy] close: "
                "where it was not, they bind tools alone, and programs can read and write.",
            )
        if ruled.masked and guard.found.repositories and "masked" not in self._warned:
            self._warned.add("masked")
            some = ", ".join(shown(path) for path in sorted(ruled.masked)[:5])
            more = f" and {len(ruled.masked) - 5} more" if len(ruled.masked) > 5 else ""
            self._tell(
                f"Rules of the user deny reading {some}{more}: git status shows that as changed, though it is not, and `git add -A`, "
                "`git commit -a` and `git stash` fail over it, so leave it out."
            )
        if ruled.open:
            paths = ", ".join(shown(path) for path in ruled.open[:5])
            more = f" and {len(ruled.open) - 5} more" if len(ruled.open) > 5 else ""
            self._warn(
                "readable",
                f"Rules forbid reading {paths}{more}, but bind tools alone there: "
                f"the {self.name} sandbox cannot hide {'more places' if self.holds else 'what lies in the workspace'} "
                "from programs.",
            )

    def _proxies(self, network: bool) -> Mapping[str, str]:
        """The user's own proxies for programs that have the whole network: without them there is none behind a company's."""
        given, kept = handed_on(os.environ) if network else ({}, [])
        if kept:
            self._warn(
                "proxy",
                f"{', '.join(kept)} names a user or password and is not handed to programs in the sandbox: with a list of hosts "
                "(--allow-net) they get through that proxy without knowing it.",
            )
        return given

    def _warn(self, topic: str, text: str, level: str = "warning") -> None:
        if topic not in self._warned:
            self._warned.add(topic)
            self._notify(level, text)

    # ---- after a call, and at the end

    def _tidy(self) -> list[str]:
        return self._guard.tidy() if self._guard is not None else []

    def _clean(self) -> None:
        super()._clean()
        if self._guard is not None:
            guard, self._guard = self._guard, None
            for sentence in guard.end():
                self._tell(sentence)

    def _let_go(self) -> None:
        if self._guard is not None:
            guard, self._guard = self._guard, None
            guard.close()

    # ---- files

    async def write(
        self,
        path: str,
        data: bytes,
        *,
        mode: int | None = None,
        exclusive: bool = False,
        expected: str | None = None,
    ) -> None:
        await self._refuse_protected(path)
        await super().write(path, data, mode=mode, exclusive=exclusive, expected=expected)

    async def remove(self, path: str, *, expected: str | None = None) -> None:
        await self._refuse_protected(path)
        await super().remove(path, expected=expected)

    async def _refuse_protected(self, path: str) -> None:
        # Of a link both count: where it leads, and where it lies, as it can be replaced.
        around, _slash, name = self._path(path).rstrip("/").rpartition("/")
        places = {Path(await self.resolve(path)), Path(await self.resolve(around or "/")) / name}
        for place in places:
            if self._guard is not None and (why := self._guard.why(self._outside(place))):
                text = f"It is protected: {why}. {remedy(why).capitalize()}"
                raise OSError(errno.EROFS, text, path)


def _why(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "a part of the path is a link or no folder by now"
    return error.strerror or str(error)
