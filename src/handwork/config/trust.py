"""Which workspaces may configure Handwork: what their users answered, and about which files."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from handwork.config.carried import Carried
from handwork.config.files import read_regular
from handwork.config.keys import write_privately
from handwork.config.one_writer import alone_in
from handwork.errors import ConfigError

FILE = "trusted.json"
Answer: TypeAlias = Literal["trusted", "never"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What was answered about one workspace.

    folder, inode: the real path, and which folder was there.
    answer: trusted, or never to be asked about again.
    when: UTC, as events have it.
    files: the digest of each file that was there then, by its path in the workspace.
    """

    folder: str
    inode: int
    answer: Answer
    when: str
    files: Mapping[str, str]

    def is_about(self, carried: Carried) -> bool:
        """Whether that folder is this one, and no other in its place."""
        return (self.folder, self.inode) == (str(carried.folder), carried.inode)

    def changed(self, carried: Carried) -> tuple[str, ...]:
        """The files that are new, different or gone since."""
        now = carried.digests
        return tuple(sorted(name for name in now.keys() | self.files.keys() if now.get(name) != self.files.get(name)))


class TrustRecord:
    """The decisions of one user; made without reading anything.

    Every method raises ConfigError if the file is damaged, may be changed by others, or cannot be read or written.

    Args:
        folder: the configuration folder.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def decisions(self) -> tuple[Decision, ...]:
        """All of them, by folder."""
        return tuple(sorted(self._read().values(), key=lambda each: each.folder))

    def decision(self, carried: Carried) -> Decision | None:
        """What was answered about this workspace, whatever it carried then."""
        found = self._read().get(str(carried.folder)) if carried.files else None
        return found if found and found.is_about(carried) else None

    def trusts(self, carried: Carried) -> bool:
        """Whether exactly what this workspace carries now was trusted."""
        found = self.decision(carried)
        return found is not None and found.answer == "trusted" and not found.changed(carried)

    def keep(self, carried: Carried, answer: Answer) -> None:
        """Remember an answer about what a workspace carries, in the place of an earlier one."""
        when = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        with alone_in(self.path.parent):
            decision = Decision(str(carried.folder), carried.inode, answer, when, carried.digests)
            self._write(self._read() | {decision.folder: decision})

    def forget(self, folder: Path) -> bool:
        """Ask about that folder again; whether there was an answer."""
        with alone_in(self.path.parent):
            found = self._read()
            if found.pop(os.path.realpath(folder), None) is None:
                return False
            self._write(found)
        return True

    # ---- the file

    def _read(self) -> dict[str, Decision]:
        try:
            data = json.loads(read_regular(self.path))
            found = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (ValueError, RecursionError):
            raise self._damaged("it is no JSON") from None
        except OSError as error:
            what = f"The record of trusted folders, {self.path}, cannot be read: {error.strerror or error}"
            raise ConfigError(what, hint="check whose file it is") from None
        if stat.S_IMODE(found.st_mode) & 0o022 or found.st_uid not in (os.getuid(), 0):
            raise ConfigError(
                f"The record of trusted folders, {self.path}, may be changed by others than you",
                hint=f"delete it, or look at what it trusts and make it yours alone: chmod 600 {self.path}",
            )
        folders = data.get("folders") if isinstance(data, dict) else None
        if not isinstance(folders, dict):
            raise self._damaged("it holds no folders")
        return {name: self._decision(name, raw) for name, raw in folders.items()}

    def _decision(self, folder: str, raw: Any) -> Decision:
        match raw:
            case {
                "inode": int(inode),
                "answer": "trusted" | "never" as answer,
                "when": str(when),
                "files": dict(files),
            }:
                if all(isinstance(digest, str) for digest in files.values()):
                    return Decision(folder, inode, answer, when, files)
        raise self._damaged(f"the entry {folder!r} is none")

    def _damaged(self, why: str) -> ConfigError:
        return ConfigError(
            f"The record of trusted folders, {self.path}, cannot be used: {why}",
            hint="delete the file; you will be asked again",
        )

    def _write(self, decisions: Mapping[str, Decision]) -> None:
        folders = {
            each.folder: {"answer": each.answer, "when": each.when, "inode": each.inode, "files": dict(each.files)}
            for each in decisions.values()
        }
        try:
            write_privately(self.path, json.dumps({"version": 1, "folders": folders}, indent=2) + "\n")
        except OSError as error:
            raise ConfigError(
                f"The answer cannot be kept in {self.path}: {error.strerror}",
                hint="free or open that folder, or name another in HANDWORK_HOME",
            ) from None
