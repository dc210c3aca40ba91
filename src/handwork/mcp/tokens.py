"""Tokens of MCP servers, kept for the next run: each for one server at one address, in the keyring or a private file."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as validated

from handwork.config.keys import KeyStore
from handwork.errors import ConfigError, MCPUnavailable
from handwork.mcp.address import Address
from handwork.mcp.own_command import own_command
from handwork.schema.values import STRICT
from handwork.tool.threads import run_in_thread

_SOON = 30.0
"""Seconds before its end at which a token is renewed: a request under way must not outlive it."""
_WAIT = 90.0
_LOOK = 0.05
T = TypeVar("T")
Kept: TypeAlias = Literal["none", "kept", "ended"]
"""Of a login: `ended` is one whose token has ended and cannot be renewed."""


@validated(frozen=True, slots=True, config=STRICT)
class Grant:
    """What a login brought. Its client and tokens belong to `issuer`, and are asked for and taken back at its addresses.

    `until` is when the access token ends (seconds since 1970), 0 where nobody said.
    """

    issuer: str
    token_endpoint: str
    client_id: str
    resource: str
    access_token: str = field(repr=False)
    refresh_token: str = field(default="", repr=False)
    client_secret: str = field(default="", repr=False)
    client_method: str = "none"
    revocation_endpoint: str = ""
    scope: str = ""
    until: float = 0.0

    @property
    def secrets(self) -> frozenset[str]:
        """What must never be shown."""
        return frozenset({self.access_token, self.refresh_token, self.client_secret} - {""})

    def ends_soon(self, now: float | None = None) -> bool:
        """Whether a new token should be had before the next request."""
        return bool(self.until) and (time.time() if now is None else now) > self.until - _SOON

    def over(self) -> bool:
        """Whether the token has ended."""
        return bool(self.until) and time.time() >= self.until

    def renewed(self, access_token: str, refresh_token: str, lifetime: float, scope: str) -> Grant:
        """With the tokens of an answer; what it leaves out stays (RFC 6749, 5.1 and 6). `lifetime` is in seconds, 0: unknown."""
        return replace(
            self,
            access_token=access_token,
            refresh_token=refresh_token or self.refresh_token,
            scope=scope or self.scope,
            until=time.time() + lifetime if lifetime else 0.0,
        )


class TokenStore:
    """The tokens for one server: another name, origin or path is another server. Made without reading anything. `tell`
    is told what the user should know: others could read the file, a keyring failed.

    What cannot be read or written raises MCPUnavailable.
    """

    def __init__(self, home: Path, address: Address, tell: Callable[[str], None] = lambda text: None) -> None:
        self._address, self._tell = address, tell
        words = "\0".join((address.name, address.origin, address.resource))
        digest = hashlib.sha256(words.encode(errors="surrogatepass")).hexdigest()[:16]
        slug = re.sub(r"[^A-Za-z0-9_-]+", "_", address.name)[:40]
        self.folder = home / "tokens" / f"{slug}-{digest}"
        self._entry = f"mcp {slug} {digest}"

    def state(self) -> Kept:
        """Whether a login is kept, by its file alone: a keyring, which may wait for its user, is not asked."""
        keys = KeyStore(self.folder)
        with self._told(keys):
            entry = keys.entry(self._entry)
        if entry is None or not entry.fits(self._address.origin):
            return "none"
        if not entry.key:  # the keyring holds it
            return "kept"
        grant = _grant_in(entry.key)
        if grant is None:
            return "none"
        return "ended" if grant.over() and not grant.refresh_token else "kept"

    async def read(self) -> Grant | None:
        """What the last login or renewal left; None if there is nothing for this server."""
        return await self._do(self._read)

    async def write(self, grant: Grant) -> str:
        """Keep it in place of what was there; returns where it is now, in words."""
        text = TypeAdapter(Grant).dump_json(grant).decode()
        return await self._do(lambda keys: keys.set(self._entry, text, base_url=self._address.origin))

    async def forget(self) -> bool:
        """Keep nothing; whether there was something."""
        return await self._do(lambda keys: keys.delete(self._entry))

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """While this block runs no other process, and nobody else here, renews these tokens. What was read before may be old by now."""
        descriptor = self._lock_file()
        try:
            end = time.monotonic() + _WAIT
            while descriptor is not None and not _locked(descriptor):
                if time.monotonic() > end:
                    raise MCPUnavailable(
                        f"Another program has been renewing the login at {self._address.name} for too long"
                    )
                await asyncio.sleep(_LOOK)
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _lock_file(self) -> int | None:
        """None where there are no locks."""
        if os.name != "posix":
            return None
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise self._failed(f"{self.folder}: {error.strerror}", "free or open that folder") from None

    def _read(self, keys: KeyStore) -> Grant | None:
        entry = keys.entry(self._entry)
        if entry is None or not entry.fits(self._address.origin):
            return None
        return _grant_in(keys.get(self._entry))

    async def _do(self, work: Callable[[KeyStore], T]) -> T:
        """In a thread: a keyring may wait for its user."""
        keys = KeyStore(self.folder)
        with self._told(keys):
            return await run_in_thread(work, keys)

    @contextlib.contextmanager
    def _told(self, keys: KeyStore) -> Iterator[None]:
        """Inside the block, what goes wrong with the keys is said of this server, and what the user should know is told."""
        try:
            yield
        except ConfigError as error:
            raise self._failed(error.what, f"{own_command('login', self._address.name)} stores it anew") from None
        finally:
            for text in keys.take_notices():
                self._tell(text)

    def _failed(self, why: str, hint: str) -> MCPUnavailable:
        return MCPUnavailable(f"The login at the MCP server {self._address.name}: {why}", hint=hint, lasting=True)


def _grant_in(text: str) -> Grant | None:
    """None for what is of another version, or damaged: a login puts it right."""
    try:
        return TypeAdapter(Grant).validate_json(text)
    except ValidationError:
        return None


def _locked(descriptor: int) -> bool:
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
