"""The token that a client over HTTP must know: kept in a file that its owner alone can read."""

from __future__ import annotations

import hmac
import os
import secrets
import shlex
import stat
from contextlib import suppress
from pathlib import Path

from handwork.errors import ConfigError

_LEAST = 16
"""Characters of a token that somebody chose."""
_LONGEST = 4096
_ANOTHER = "name another file: one that is not there yet is made"


def token_of(file: Path) -> tuple[str, bool]:
    """The token in a file, and whether it was made just now. Raises ConfigError for a file that others can read, or without a
    usable token."""
    try:
        return _made(file), True
    except FileExistsError:
        return _read(file), False
    except OSError as error:
        raise ConfigError(f"The token file {file} cannot be made: {error.strerror}", hint="name another") from error


def _made(file: Path) -> str:
    """The token of a new file; raises FileExistsError if there is one.

    The file appears with the token in it, so that a server which starts at the same moment never reads half of it.
    """
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    token = secrets.token_urlsafe(32)
    beside = file.with_name(f".{secrets.token_hex(8)}.token")
    try:
        _write(beside, token)
        os.link(beside, file)
    except FileExistsError:
        raise
    except OSError:
        _write(file, token)  # there are file systems without hard links
    finally:
        with suppress(OSError):
            beside.unlink()
    return token


def _write(file: Path, token: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as opened:
        opened.write(f"{token}\n")


def _read(file: Path) -> str:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise ConfigError(f"The token file {file} cannot be read: {error.strerror}", hint=_ANOTHER) from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise ConfigError(f"The token file {file} is no file", hint=_ANOTHER)
    with os.fdopen(descriptor, "rb") as opened:
        data = opened.read(_LONGEST + 1)
    token = _token_in(data)
    if found.st_uid not in (os.geteuid(), 0):
        raise ConfigError(f"The token file {file} belongs to somebody else", hint=_ANOTHER)
    if found.st_mode & 0o077:
        ours = bool(token) and found.st_uid == os.geteuid()
        raise ConfigError(
            f"The token file {file} can be read by others",
            hint=f"chmod 600 {shlex.quote(str(file))}" if ours else _ANOTHER,
        )
    if not token:
        raise ConfigError(
            f"The token file {file} holds no token: {_LEAST} or more letters, digits and signs in one line",
            hint=_ANOTHER if data.strip() else "delete it, and a new one is made",
        )
    return token


def _token_in(data: bytes) -> str:
    """The token that a file holds; '' if it is one of something else, which nobody should change on our word."""
    try:
        token = data.decode("ascii").strip()
    except UnicodeDecodeError:
        return ""
    good = _LEAST <= len(token) < _LONGEST and token.isprintable() and " " not in token
    return token if good else ""


def is_token(given: str, token: str) -> bool:
    """Whether it is the token; how long the answer takes says nothing about it."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())
