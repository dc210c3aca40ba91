"""Keys that `handwork setup` stored: in the system's keyring where one works, else in a file that only its user may read."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from handwork.config.credentials import url_origin
from handwork.config.files import read_regular
from handwork.config.one_writer import alone_in
from handwork.errors import ConfigError

FILE = "keys.json"
SERVICE = "handwork"
"""Under this name the system's keyring holds the keys, one for each entry's name."""
_RECOMMENDED = 1
"""The least priority of a backend that its own library recommends: below are those without encryption, and none at all."""
_PATIENCE = 30.0
"""Seconds that the keyring has: its user may have to type a password."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredKey:
    """What the file says of one key.

    name: the provider's name; a base URL for a server that has no name of its own.
    base_url: the address that it was stored for: it goes to that origin and to no other.
    model: the model that was chosen with it, by its name at the provider; '' takes the provider's default.
    key: the key, if the file holds it; '' if the keyring does.
    """

    name: str
    base_url: str
    model: str = ""
    key: str = field(default="", repr=False)

    @property
    def origin(self) -> str:
        return url_origin(self.base_url)

    def fits(self, address: str) -> bool:
        """Whether the key may go to this address."""
        return url_origin(address) == self.origin

    @property
    def place(self) -> str:
        """Where the key lies, in words."""
        return f"the file {FILE}" if self.key else "the system's keyring"


class KeyStore:
    """The stored keys of one user; made without reading anything.

    Every method raises ConfigError if the file is damaged or cannot be read or written; it names the file and what to do.

    Args:
        folder: the configuration folder.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.used: set[str] = set()
        """The keys that this object has handed out: what must be masked."""
        self.notices: list[str] = []
        """What the user should be told of: mended permissions, a keyring that failed."""

    def take_notices(self) -> list[str]:
        """The notices, which are told once."""
        taken, self.notices = self.notices, []
        return taken

    def entries(self) -> tuple[StoredKey, ...]:
        """What is stored, in the order in which it was; keys of the keyring are not read."""
        found: list[StoredKey] = []
        for name, raw in self._read().items():
            if not isinstance(raw, dict) or not (isinstance(raw.get("key"), str) or raw.get("keyring") is True):
                raise self._damaged(f"the entry {name!r} is none")
            texts = {part: raw.get(part, "") for part in ("base_url", "model", "key")}
            if not all(isinstance(text, str) for text in texts.values()):
                raise self._damaged(f"the entry {name!r} is none")
            found.append(StoredKey(name, **texts))
            self.used |= {texts["key"]} - {""}
        return tuple(found)

    def entry(self, name: str) -> StoredKey | None:
        """What is stored under this name."""
        return next((entry for entry in self.entries() if entry.name == name), None)

    def get(self, name: str) -> str:
        """The key of that name; '' if none is stored. Raises ConfigError if the keyring has it and does not give it."""
        entry = self.entry(name)
        return self._key_of(entry) if entry else ""

    def key_for(self, origin: str, name: str) -> str:
        """The key that was stored for this origin, first that of the provider of this name; '' if there is none."""
        fitting = [entry for entry in self.entries() if entry.origin == origin]
        fitting.sort(key=lambda entry: entry.name != name)
        return self._key_of(fitting[0]) if fitting else ""

    def set(self, name: str, key: str, *, base_url: str, model: str = "") -> str:
        """Store a key in place of what was there; it counts as the newest. Returns where it is now, in words."""
        self._read()  # a damaged file is said before a keyring is asked
        where = self._keyring_set(name, key)
        kept: dict[str, str | bool] = {"keyring": True}
        if not where:
            where, kept = str(self.path), {"key": key}
        with alone_in(self.path.parent):
            entries = self._read()
            before = entries.pop(name, None)
            self._write(entries | {name: kept | {"base_url": base_url, "model": model}})
        if "key" in kept and isinstance(before, dict) and before.get("keyring"):
            self._keyring_delete(name)
        self.used.add(key)
        return where

    def delete(self, name: str) -> bool:
        """Forget a key; whether there was one."""
        if name not in self._read():
            return False
        with alone_in(self.path.parent):
            entries = self._read()
            found = entries.pop(name, None)
            self._write(entries)
        if isinstance(found, dict) and found.get("keyring"):
            self._keyring_delete(name)
        return True

    def readable(self) -> frozenset[str]:
        """The keys that must never be shown: those handed out and those in the file, as far as it can be read."""
        with contextlib.suppress(ConfigError):
            self.entries()
        return frozenset(self.used)

    # ---- the file

    def _read(self) -> dict[str, Any]:
        try:
            text = read_regular(self.path)
            self._mend(self.path.stat().st_mode)
            data = json.loads(text)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (ValueError, RecursionError):
            raise self._damaged("it is no JSON") from None
        except OSError as error:
            raise ConfigError(
                f"The stored keys, {self.path}, cannot be read: {error.strerror or error}",
                hint="check whose file it is",
            ) from None
        if not isinstance(data, dict) or not isinstance(data.get("keys"), dict):
            raise self._damaged("it holds no keys")
        entries: dict[str, Any] = data["keys"]
        return entries

    def _damaged(self, why: str) -> ConfigError:
        return ConfigError(
            f"The stored keys, {self.path}, cannot be used: {why}",
            hint="delete the file and run `handwork setup` again",
        )

    def _mend(self, mode: int) -> None:
        """Others must not read the file: take the permission away, and say so."""
        if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
            with contextlib.suppress(OSError):
                self.path.chmod(0o600)
                self.notices.append(
                    f"{self.path} could be read by others and now cannot: if somebody may have, make new keys"
                )

    def _write(self, entries: Mapping[str, Any]) -> None:
        """Put the file in place as a whole, so that a crash leaves the old one or the new one."""
        try:
            write_privately(self.path, json.dumps({"version": 1, "keys": dict(entries)}, indent=2) + "\n")
        except OSError as error:
            raise ConfigError(
                f"The key cannot be stored in {self.path}: {error.strerror}",
                hint="free or open that folder, or name another in HANDWORK_HOME; or set the provider's variable instead",
            ) from None

    # ---- the keyring

    def _key_of(self, entry: StoredKey) -> str:
        key = entry.key or self._keyring_get(entry.name)
        self.used.add(key)
        return key

    def _keyring_get(self, name: str) -> str:
        try:
            key = _ask_keyring(lambda keyring: keyring.get_password(SERVICE, name))
        except _KeyringFailed as failed:
            raise ConfigError(
                f"The key of {name} is in the system's keyring, and that failed: {failed}",
                hint="unlock or install it, or run `handwork setup` and store the key again",
            ) from None
        if not key or not isinstance(key, str):
            raise ConfigError(
                f"The key of {name} is no longer in the system's keyring",
                hint="run `handwork setup` and store it again",
            )
        return key

    def _keyring_set(self, name: str, key: str) -> str:
        """The keyring's name if it has the key now, else ''."""

        def store(keyring: Any) -> str:
            backend = keyring.get_keyring()
            if backend.priority < _RECOMMENDED:
                return ""
            keyring.set_password(SERVICE, name, key)
            if keyring.get_password(SERVICE, name) != key:
                raise _KeyringFailed("it did not keep the key")
            return f"the system's keyring ({backend.name})"

        if importlib.util.find_spec("keyring") is None:
            return ""
        try:
            return _ask_keyring(store)
        except _KeyringFailed as failed:
            self.notices.append(f"The system's keyring was not used: {failed}")
            return ""

    def _keyring_delete(self, name: str) -> None:
        try:
            _ask_keyring(lambda keyring: keyring.delete_password(SERVICE, name))
        except _KeyringFailed as failed:
            self.notices.append(f"The key of {name} may still be in the system's keyring: {failed}")


class _KeyringFailed(Exception):
    """The keyring could not be used; says why."""


def _ask_keyring(work: Callable[[Any], T]) -> T:
    """Let the package keyring do something, in a thread that may be left behind: a backend can wait for a dialogue that
    nobody sees. Raises _KeyringFailed for whatever goes wrong; backends raise errors of the services behind them."""
    outcome: Future[T] = Future()
    threading.Thread(target=_perform, args=(work, outcome), name="handwork-keyring", daemon=True).start()
    try:
        return outcome.result(_PATIENCE)
    except TimeoutError:
        raise _KeyringFailed(f"no answer within {_PATIENCE:g} s") from None


def _perform(work: Callable[[Any], T], outcome: Future[T]) -> None:
    try:
        import keyring

        outcome.set_result(work(keyring))
    except ImportError:
        outcome.set_exception(_KeyringFailed("the package keyring is not installed"))
    except Exception as error:  # the keyring is a named boundary
        failed = error if isinstance(error, _KeyringFailed) else _KeyringFailed(f"{type(error).__name__}: {error}")
        outcome.set_exception(failed)


def write_privately(path: Path, text: str) -> None:
    """Write a file that only its user may read, as a whole or not at all. Raises OSError."""
    path = path.resolve()  # the file itself, where a link leads to it
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # 0600 from the first
    made = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        made.replace(path)
    except BaseException:
        made.unlink(missing_ok=True)
        raise
