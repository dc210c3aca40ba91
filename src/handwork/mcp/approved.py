"""The definitions of servers' tools as they were approved, kept for the next session: so a server is known before it is started."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from handwork.config import MCPServerSettings
from handwork.config.keys import write_privately
from handwork.config.one_writer import alone_in
from handwork.errors import ConfigError
from handwork.mcp.offer import Offer
from handwork.schema import JSON

FOLDER = "approved"
_LARGEST = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Record:
    """What is kept of one server: its offer as it was approved, when that was written (UTC, as events have it), and of what."""

    name: str
    key: str
    when: str
    offer: Offer

    def is_about(self, settings: MCPServerSettings) -> bool:
        """Whether a server with these settings is the same one; under its name another may have come."""
        return self.key == key_of(settings)


def key_of(settings: MCPServerSettings) -> str:
    """What makes a server this one: what is started or asked, as it was written. Values of variables and headers may change, their
    names may not; and in another workspace it is the same server."""
    settings = settings.written
    words = {
        "type": settings.type,
        "command": settings.command,
        "args": list(settings.args),
        "url": settings.url,
        "env": sorted(settings.env),
        "headers": sorted(settings.headers),
        "cwd": settings.cwd,
    }
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()


class Approved:
    """The records of one user; made without reading anything.

    Every method raises ConfigError if a record is damaged, may be changed by others, or cannot be read or written.

    Args:
        home: the folder of what is kept about servers (`Surroundings.home`).
    """

    def __init__(self, home: Path) -> None:
        self.folder = home / FOLDER

    def record(self, name: str, settings: MCPServerSettings) -> Record | None:
        """What is kept of exactly this server; else what was kept last under its name, and `is_about` is false."""
        return self._record(self._file(name, key_of(settings)), name) or self._last(name)

    def _last(self, name: str) -> Record | None:
        found = list[tuple[float, Path]]()
        with suppress(OSError):
            found = [(file.lstat().st_mtime, file) for file in self.folder.glob(f"{_begin(name)}-*.json")]
        for _, file in sorted(found, reverse=True):
            with suppress(ConfigError):  # it is told where that server is used
                return self._record(file, name)
        return None

    def _record(self, file: Path, name: str) -> Record | None:
        data = self._read(file)
        if data is None:
            return None
        match data:
            case {"version": 1, "server": str(server), "key": str(key), "when": str(when), "offer": dict(offer)}:
                if self._file(server, key) != file:
                    raise _damaged(file, "it is about another server")
                try:
                    return Record(name, key, when, Offer.from_json(offer))
                except (ValidationError, ValueError, RecursionError):
                    raise _damaged(file, "what it says of the tools makes no sense") from None
        raise _damaged(file, "it is no record of a server")

    def find(self, name: str, settings: MCPServerSettings) -> Offer | None:
        """The approved offer of exactly this server."""
        found = self._record(self._file(name, key_of(settings)), name)
        return found.offer if found else None

    def keep(self, name: str, settings: MCPServerSettings, offer: Offer) -> None:
        """Remember an offer as approved, in the place of an earlier one of this server."""
        record: Mapping[str, JSON] = {
            "version": 1,
            "server": name,
            "key": key_of(settings),
            "when": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "offer": offer.to_json(),
        }
        file, text = self._file(name, key_of(settings)), json.dumps(record) + "\n"
        if len(text) > _LARGEST:
            raise ConfigError(
                f"What the MCP server {name} offers is too large to be kept: {len(text) >> 20} MB",
                hint='take fewer of its tools: "tools" and "without_tools" of its entry; its tools are compared with what was kept before',
            )
        try:
            with alone_in(self.folder):
                write_privately(file, text)
        except OSError as error:
            raise ConfigError(
                f"What the MCP server {name} offers cannot be kept in {file}: {error.strerror or error}",
                hint="free or open that folder, or name another in HANDWORK_HOME",
            ) from None

    def forget(self, name: str, settings: MCPServerSettings) -> bool:
        """Take the server's next offer as it is; whether anything was kept. A damaged record goes as well."""
        file = self._file(name, key_of(settings))
        try:
            with alone_in(self.folder):
                file.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise ConfigError(
                f"{file} cannot be deleted: {error.strerror or error}", hint="delete it yourself"
            ) from None
        return True

    def _file(self, name: str, key: str) -> Path:
        """A folder of the user's may have another server under the same name: each keeps what was approved of it."""
        return self.folder / f"{_begin(name)}-{hashlib.sha256(key.encode()).hexdigest()[:12]}.json"

    def _read(self, file: Path) -> Any:
        """The record's JSON; None if there is none."""
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise ConfigError(
                f"The record of an MCP server, {file}, cannot be read: {error.strerror or error}",
                hint="check whose file it is, or delete it: the server's tools are then taken as they are",
            ) from None
        try:
            self._check(file, os.fstat(descriptor))
        except ConfigError:
            os.close(descriptor)
            raise
        with os.fdopen(descriptor, "rb") as opened:  # of a folder it makes nothing
            try:
                return json.loads(opened.read(_LARGEST + 1))
            except (ValueError, RecursionError):
                raise _damaged(file, "it is no JSON") from None

    def _check(self, file: Path, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode):
            raise _damaged(file, "it is no regular file")
        if stat.S_IMODE(found.st_mode) & 0o022 or found.st_uid not in (os.getuid(), 0):
            raise ConfigError(
                f"The record of an MCP server, {file}, may be changed by others than you",
                hint=f"delete it, or look at it and make it yours alone: chmod 600 {file}",
            )


def _begin(name: str) -> str:
    """Names may be spelt alike and hold anything: the digest tells them apart."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:40]
    return f"{plain}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def _damaged(file: Path, why: str) -> ConfigError:
    return ConfigError(
        f"The record of an MCP server, {file}, cannot be used: {why}",
        hint="delete the file; the server's tools are then taken as they are at its next start",
    )
