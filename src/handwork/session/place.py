"""Where a session's tools work: its sandbox, opened at the first use, and what it is opened to."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from handwork.config import SandboxSettings, Settings
from handwork.errors import SandboxError
from handwork.sandbox.base import Sandbox
from handwork.sandbox.open import open_sandbox
from handwork.session.grants import Grants
from handwork.session.hosts import Hosts

_KEEPS_A_LIST = ("auto", "bwrap")
"""Backends that can open the network for chosen hosts alone."""


class Holds(Protocol):
    """What this needs of its session."""

    settings: Settings
    workspace: Path
    artifacts: Path
    grants: Grants

    def notify(self, level: str, text: str) -> None: ...


class Place:
    """The sandbox of one session; `settings` says what it is opened with."""

    def __init__(self, session: Holds, hosts: Hosts) -> None:
        self._session, self._hosts = session, hosts
        self.settings: SandboxSettings = session.settings.sandbox
        self._readable: list[Path] = []
        self._sandbox: Sandbox | None = None
        self._proved = self.settings.chosen != "auto"

    def open_to(self, paths: Sequence[str], hosts: Sequence[str]) -> None:
        """Let the whole sandbox read these as well, and reach these hosts: before it is opened, else they are not there."""
        self._readable += [path for path in map(_real_name, paths) if path not in self._readable]
        if hosts and self.keeps_a_list:
            listed = dict.fromkeys((*self.settings.allow_net, *hosts))
            self.settings = self.settings.model_copy(update={"allow_net": tuple(listed)})
            self._hosts.add(hosts)

    @property
    def keeps_a_list(self) -> bool:
        """Whether it can be opened to chosen hosts: not where the network is open, or the backend knows all or nothing."""
        return self.settings.chosen in _KEEPS_A_LIST and not self.settings.network

    @property
    def is_open(self) -> bool:
        """Whether the sandbox was asked for already: what it is opened to is settled."""
        return self._sandbox is not None

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox; it starts at its first use. Raises ConfigError for a workspace that cannot be one."""
        if self._sandbox is None:
            session = self._session
            self._sandbox = open_sandbox(
                self.settings,
                workspace=session.workspace,
                artifacts=session.artifacts,
                notify=session.notify,
                hide=session.settings.own_files,
                daytona=session.settings.daytona,
                environ=session.settings.environ,
                allow_host=self._hosts.allow,
                rules=session.grants.closing,
                readable=self._readable,
                installed=session.settings.home.programs,
            )
        return self._sandbox

    async def promises_less(self) -> bool:
        """Whether the sandbox turns out to be a weaker one at its first start, which this is: before a call is allowed for being
        contained. One that cannot start at all is met by the call."""
        if self._proved:
            return False
        promised = self.sandbox.contained
        with suppress(OSError, SandboxError):
            await self.sandbox.resolve(".")
        self._proved = True
        return promised and not self.sandbox.contained

    async def after_call(self) -> Sequence[str]:
        """A tool that works in the sandbox has ended its call: what the sandbox did to it, in sentences for the model."""
        self._hosts.call_over()
        return await self._sandbox.after_call() if self._sandbox is not None else ()

    async def close(self) -> None:
        """Close the sandbox, if it was opened."""
        if self._sandbox is not None:
            await self._sandbox.close()


def _real_name(path: str) -> Path:
    return Path(path).expanduser().absolute()
