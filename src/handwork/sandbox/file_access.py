"""A sandbox's files, asked of its supervisor: what comes back is not trusted, whatever it says that it is."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from abc import ABC, abstractmethod
from typing import Any

from handwork.sandbox.base import Entry
from handwork.sandbox.connection import Connection
from handwork.sandbox.inside import wire

_CHUNK = 1 << 18
WHOLE = 512 << 20
"""A file that is larger is not read whole into our memory: with holes in it, it may be larger than any disk."""


class FileAccess(ABC):
    """The operations on files that the protocol of a sandbox has."""

    @abstractmethod
    async def _running(self) -> Connection:
        """The connection to the supervisor, which is started if need be."""

    async def _ask(self, operation: str, path: str, data: bytes | None = None, **more: Any) -> tuple[Any, list[int]]:
        try:
            if "\0" in path:
                raise PermissionError(22, "A path cannot hold a NUL")
            connection = await self._running()
            fds = [] if data is None else [wire.memory_file(data)]
            return await connection.request(fds, op=operation, path=path, **more)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from None

    async def _value(self, operation: str, path: str, data: bytes | None = None, **more: Any) -> Any:
        """The answer to what is answered without a descriptor: those that come all the same are closed."""
        value, fds = await self._ask(operation, path, data, **more)
        wire.close_all(fds)
        return value

    async def read(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        _nothing, fds = await self._ask("open", path)
        try:
            return await _read_file(fds, offset, limit)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from None
        finally:
            wire.close_all(fds)

    async def write(
        self,
        path: str,
        data: bytes,
        *,
        mode: int | None = None,
        exclusive: bool = False,
        expected: str | None = None,
    ) -> None:
        await self._value("write", path, data, mode=mode, exclusive=exclusive, expected=expected)

    async def remove(self, path: str, *, expected: str | None = None) -> None:
        await self._value("remove", path, expected=expected)

    async def list(self, path: str, *, depth: int = 1, hidden: bool = True, limit: int = 10_000) -> list[Entry]:
        found = await self._value("list", path, depth=depth, hidden=hidden, limit=limit)
        return [_entry(item) for item in found] if isinstance(found, list) else []

    async def stat(self, path: str) -> Entry | None:
        if "\0" in path:
            return None
        found = await self._value("stat", path)
        return None if found is None else _entry(found)

    async def resolve(self, path: str) -> str:
        found = await self._value("resolve", path)
        return str(found)


async def _read_file(fds: list[int], offset: int, limit: int | None) -> bytes:
    # The descriptor comes from inside: what is no plain file could make us wait for ever.
    if len(fds) != 1 or not stat.S_ISREG(os.fstat(fds[0]).st_mode):
        raise PermissionError(13, "Not a regular file")
    if limit is None and (size := os.fstat(fds[0]).st_size - offset) > WHOLE:
        raise too_large(f"{size} bytes")
    parts: list[bytes] = []
    start = offset
    while limit is None or limit > 0:
        data = os.pread(fds[0], _CHUNK if limit is None else min(_CHUNK, limit), offset)
        if not data:
            break
        parts.append(data)
        offset += len(data)
        if limit is not None:
            limit -= len(data)
        elif offset - start > WHOLE:  # it grows, or its size says nothing, as with those of /proc
            raise too_large(f"no end after {WHOLE >> 20} MB")
        if len(parts) % 64 == 0:
            await asyncio.sleep(0)  # a large file must not stop the other sessions
    return b"".join(parts)


def too_large(how: str) -> OSError:
    """A file is larger than what is read whole into our memory."""
    return OSError(errno.EFBIG, f"The file is too large to be read whole ({how})")


def _entry(item: Any) -> Entry:
    path, kind, size, mode, links = item
    return Entry(path, kind, size, mode, links)
