"""The token that a client over HTTP must know: kept in a file that its owner alone can read."""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from pathlib import Path

from handwork.errors import ConfigError

_LEAST = 16
"""Characters of a token that somebody chose."""
_LONGEST = 4096


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
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    token = secrets.token_urlsafe(32)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as opened:
        opened.write(f"{token}\n")
    return token


def _read(file: Path) -> str:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise ConfigError(f"The token file {file} cannot be read: {error.strerror}") from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise ConfigError(f"The token file {file} is no file", hint="name a file, or one that is not there yet")
    with os.fdopen(descriptor, "rb") as opened:
        if found.st_mode & 0o077 or found.st_uid not in (os.geteuid(), 0):
            raise ConfigError(f"The token file {file} can be read by others", hint=f"chmod 600 {file}")
        data = opened.read(_LONGEST + 1)
    try:
        token = data.decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not _LEAST <= len(token) < _LONGEST or not token.isprintable() or " " in token:
        raise ConfigError(
            f"The token file {file} holds no token: {_LEAST} or more letters, digits and signs in one line",
            hint="delete it, and a new one is made",
        )
    return token


def is_token(given: str, token: str) -> bool:
    """Whether it is the token; how long the answer takes says nothing about it."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())
