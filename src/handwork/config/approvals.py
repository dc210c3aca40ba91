"""What people allowed for good, by workspace: a file of the user's own that only its user may read and change.

What was allowed where a sandbox confined it holds there alone; what was allowed without one holds everywhere.
"""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from handwork.config.files import read_regular
from handwork.config.keys import write_privately
from handwork.config.one_writer import alone_in
from handwork.config.policy_rules import parse_rule
from handwork.errors import ConfigError
from handwork.schema import Verdict

FILE = "approvals.toml"
_HEAD = (
    "# What you answered with “always”, by workspace. Written by Handwork; `handwork policy forget` takes a rule back,\n"
    "# and so does deleting its line.\n"
)
_CONFINED, _ANYWHERE = "workspaces", "without_sandbox"
_MOST = 1_000
"""Rules of one workspace that are kept; the oldest go first."""


class Approvals:
    """The written approvals of one user; made without reading anything.

    Every method raises ConfigError if the file is damaged, may be changed by others, or cannot be read or written.

    Args:
        folder: the configuration folder, which no workspace is.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def rules(self, workspace: Path, *, anywhere: bool = False) -> tuple[str, ...]:
        """The rules that were written for a workspace, the oldest first: those for a sandbox, or those that hold `anywhere`."""
        return self._tables()[_table(anywhere)].get(_key(workspace), ())

    def workspaces(self) -> frozenset[str]:
        """The real path of every workspace for which there are rules."""
        return frozenset(name for workspaces in self._tables().values() for name in workspaces)

    def _tables(self) -> dict[str, dict[str, tuple[str, ...]]]:
        try:
            text = read_regular(self.path).decode()
            found = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return {_CONFINED: {}, _ANYWHERE: {}}
        except UnicodeDecodeError:
            raise self._damaged("it is not UTF-8 text") from None
        except OSError as error:
            raise ConfigError(
                f"The approvals, {self.path}, cannot be read: {error.strerror or error}", hint="check whose file it is"
            ) from None
        if os.name == "posix" and (stat.S_IMODE(found.st_mode) & 0o022 or found.st_uid not in (os.getuid(), 0)):
            raise ConfigError(
                f"The approvals, {self.path}, may be changed by others than you",
                hint=f"look at what it allows, then make it yours alone: chmod 600 {self.path}",
            )
        return self._read(text)

    def add(self, workspace: Path, rules: Iterable[str], *, anywhere: bool = False) -> None:
        """Write rules for a workspace; those that are there stay."""
        with alone_in(self.path.parent):
            tables = self._tables()
            there = tables[_table(anywhere)]
            kept = list(dict.fromkeys([*there.get(_key(workspace), ()), *rules]))
            there[_key(workspace)] = tuple(kept[-_MOST:])
            self._write(tables)

    def forget(self, workspace: Path, rules: Iterable[str] | None = None) -> tuple[str, ...]:
        """Take rules of a workspace back (None: all of them), wherever they hold. Returns those that were there."""
        named, gone = None if rules is None else set(rules), list[str]()
        with alone_in(self.path.parent):
            tables = self._tables()
            for workspaces in tables.values():
                before = workspaces.pop(_key(workspace), ())
                left = tuple(rule for rule in before if named is not None and rule not in named)
                gone += [rule for rule in before if rule not in left]
                if left:
                    workspaces[_key(workspace)] = left
            if gone:
                self._write(tables)
        return tuple(dict.fromkeys(gone))

    def _read(self, text: str) -> dict[str, dict[str, tuple[str, ...]]]:
        try:
            data = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._damaged(f"it is no valid TOML: {error}") from None
        tables = {name: data.pop(name, {}) for name in (_CONFINED, _ANYWHERE)}
        if data or not all(isinstance(table, dict) for table in tables.values()):
            raise self._damaged(f"it holds something else than [{_CONFINED}] and [{_ANYWHERE}]")
        return {
            name: {workspace: self._checked(workspace, rules) for workspace, rules in table.items()}
            for name, table in tables.items()
        }

    def _checked(self, workspace: str, rules: Any) -> tuple[str, ...]:
        if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules):
            raise self._damaged(f"what stands for {workspace} is no list of rules")
        for rule in rules:
            try:
                allows = parse_rule(rule).verdict is Verdict.ALLOW
            except ConfigError as error:
                raise self._damaged(f"{workspace}: {error}") from None
            if not allows:
                raise self._damaged(f"{workspace}: the rule {rule!r} does not allow, and nothing else belongs here")
        return tuple(rules)

    def _damaged(self, why: str) -> ConfigError:
        return ConfigError(
            f"The approvals, {self.path}, cannot be used: {why}",
            hint="correct the file, or delete it and be asked again",
        )

    def _write(self, tables: Mapping[str, Mapping[str, tuple[str, ...]]]) -> None:
        text = _HEAD + "".join(f"\n[{name}]\n{_rows(table)}" for name, table in tables.items() if table)
        try:
            write_privately(self.path, text)
        except OSError as error:
            raise ConfigError(
                f"The approval cannot be kept in {self.path}: {error.strerror}",
                hint="free or open that folder, or name another in HANDWORK_HOME",
            ) from None


def _table(anywhere: bool) -> str:
    return _ANYWHERE if anywhere else _CONFINED


def _rows(workspaces: Mapping[str, tuple[str, ...]]) -> str:
    return "".join(
        f"{_text(name)} = [\n{''.join(f'  {_text(rule)},{chr(10)}' for rule in rules)}]\n"
        for name, rules in workspaces.items()
    )


def _key(workspace: Path) -> str:
    return os.path.realpath(workspace)


def _text(text: str) -> str:
    """A TOML string: JSON's escapes are among TOML's, but for pairs of surrogates and DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
