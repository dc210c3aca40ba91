"""What a workspace may say to a configuration: nothing before its user trusts it, and then the bytes that were trusted."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from handwork.config.carried import AGENTS, CONFIGS, SERVERS, SKILLS, Carried, carried_by
from handwork.config.settings import Home
from handwork.config.tables import TABLES
from handwork.config.trust import Decision, TrustRecord
from handwork.errors import ConfigError

_NAMED = 4
"""Files that a notice names."""


@dataclass(frozen=True)
class FromWorkspace:
    """What was found.

    used: the files that count; none where the workspace is not trusted.
    unread: the others, each with the reason.
    notices: what the user should be told.
    remembered: the user's record says that it is trusted.
    """

    used: Carried
    unread: Mapping[Path, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    remembered: bool = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While files that count are read: one that is wrong stops every run, and the error names both ways out of that."""
        try:
            yield
        except ConfigError as error:
            if not self.remembered:
                raise
            first = error.hint or "mend it"
            way = f"have nothing read that lies in this folder: handwork trust --forget {shlex.quote(str(self.used.folder))}"
            raise ConfigError(error.what, hint=f"{first}{' Or' if first.endswith('?') else ', or'} {way}") from None

    def config(self) -> str | None:
        """The configuration that counts, by its path in the workspace."""
        return self.used.first(CONFIGS)

    def servers(self, config: str | None = None) -> str | None:
        """The MCP servers that count: those beside that configuration, else the first that are there."""
        beside = str(PurePosixPath(config).with_name("mcp.json")) if config else SERVERS[0]
        return self.used.first((beside, *SERVERS))

    def passed_over(self, config: str | None, servers: str | None) -> dict[Path, str]:
        """Files of a trusted workspace that do not count beside those that do."""
        found: dict[Path, str] = {}
        for names, taken in ((CONFIGS, config), (SERVERS, servers)):
            others = [name for name in names if name in self.used.files and name != taken]
            found |= {self.used.folder / name: f"{taken or 'another'} was taken" for name in others}
        return found


def from_workspace(
    workspace: Path | None, home: Home, named: Path | None = None, trusted: bool | None = None
) -> FromWorkspace:
    """Look at what a workspace carries, and at what its user said of it. Raises ConfigError if that cannot be known.

    Args:
        workspace: None is the current folder.
        named: the configuration file that the user named: it and what stands beside it are not the workspace's to say.
        trusted: whether what lies there now is trusted; None asks the user's record.
    """
    try:
        folder = workspace or Path.cwd()
    except OSError:  # the current one is gone
        return FromWorkspace(Carried(Path()))
    whole = carried_by(folder, TABLES)
    if whole.folder == Path(os.path.realpath(home.config)):  # the user's own files
        return FromWorkspace(Carried(whole.folder))
    record = TrustRecord(home.config)
    decision = record.decision(whole) if trusted is None else None
    carried = unnamed(whole, named)
    refused = {whole.folder / name: why for name, why in whole.refused.items()}
    quiet = trusted is False or (decision is not None and decision.answer == "never")
    told = () if quiet else tuple(_not_readable(whole))
    if trusted or (trusted is None and record.trusts(whole)):
        return FromWorkspace(carried, refused, told, remembered=trusted is None)
    unread = {whole.folder / name: "this folder is not trusted" for name in _shown(carried)}
    notices = () if quiet else (*_not_trusted(carried, whole, decision), *told)
    return FromWorkspace(Carried(whole.folder, whole.inode), unread | refused, notices)


def unnamed(carried: Carried, named: Path | None) -> Carried:
    """Without the configuration file that the user named, and the servers beside it."""
    if named is None:
        return carried
    taken: set[str] = set()
    with suppress(OSError, ValueError):  # a name that can be none is told by whoever reads it
        taken = {os.path.realpath(named), os.path.realpath(named.with_name("mcp.json"))}
    return carried.without([name for name in carried.files if str(carried.folder / name) in taken])


def _shown(carried: Carried) -> Iterator[str]:
    """The files as they are told: agents and skills by their folders."""
    for name in carried.files:
        if name in (*CONFIGS, *SERVERS):
            yield name
    yield from (tree for tree in (AGENTS, SKILLS) if any(name.startswith(f"{tree}/") for name in carried.files))


def _not_trusted(carried: Carried, whole: Carried, decision: Decision | None) -> Iterator[str]:
    """One notice of all files, and of the ways on."""
    names = list(_shown(carried))
    if not names:
        return
    named = ", ".join(str(carried.folder / name) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    are = "are" if len(names) > 1 else "is"
    why = "you have not said that you trust this folder"
    if decision is not None and decision.answer == "trusted":
        changed = decision.changed(whole)
        why = f"{', '.join(changed[:_NAMED])} changed since you trusted this folder"
    config = carried.first(CONFIGS)
    once = f"; to use the file as it is: --config {shlex.quote(str(carried.folder / config))}" if config else ""
    yield f"{named}{more} {are} not read: {why}. To look and decide: handwork trust {shlex.quote(str(whole.folder))}{once}"


def _not_readable(carried: Carried) -> Iterator[str]:
    for name, why in list(carried.refused.items())[:_NAMED]:
        yield f"{carried.folder / name} is not read: {why}"
