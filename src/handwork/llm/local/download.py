"""HTTP for large files: pages, and downloads that resume, over the user's proxies and certificates."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from io import FileIO
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit, urlunsplit

from handwork.config.user_proxy import proxy_for
from handwork.errors import ConfigError
from handwork.llm.failures import mask
from handwork.llm.local.package_index import ACCEPT, shown
from handwork.llm.local.package_sources import Sources

Progress = Callable[[int, int], None]
"""progress(bytes done, bytes in all)."""
ATTEMPTS = 5
"""Failures in a row, without a byte between them, after which a download is given up."""
_PAGE_LIMIT = 16_000_000
_CHUNK = 1 << 17


class Unavailable(Exception):
    """This address does not give the file; the message says why, without credentials. Another source may."""


class Downloads:
    """A client for the length of a fetch. `pause`: seconds before the first retry; it doubles."""

    def __init__(self, sources: Sources, environ: Mapping[str, str], *, pause: float = 0.5) -> None:
        self._sources, self._environ, self._pause = sources, environ, pause
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        import aiohttp

        # Silence is bounded, the whole is not: a slow line may take an hour.
        limits = aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=60)
        session = aiohttp.ClientSession(
            timeout=limits, cookie_jar=aiohttp.DummyCookieJar(), skip_auto_headers=["User-Agent"]
        )
        self._session: Any = await self._stack.enter_async_context(session)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    async def page(self, url: str) -> tuple[str, str]:
        """A page and the address that it came from in the end. Raises Unavailable."""
        import aiohttp

        for failures in range(ATTEMPTS):
            try:
                async with self._get(url, {"Accept": ACCEPT}) as response:
                    self._check(response, url)
                    body = await response.content.read(_PAGE_LIMIT)
                    while more := await response.content.read(_PAGE_LIMIT):
                        body += more
                        if len(body) > _PAGE_LIMIT:
                            raise Unavailable(f"{shown(url)}: the page is too large for an index")
                    return body.decode("utf-8", "replace"), str(response.url)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                reason = _reason(url, error)
                if isinstance(error, aiohttp.InvalidURL | aiohttp.ClientSSLError) or failures == ATTEMPTS - 1:
                    raise Unavailable(reason) from error
                await asyncio.sleep(self._pause * 2**failures)
        raise AssertionError("unreachable")

    async def file(self, url: str, part: Path, size: int, progress: Progress) -> None:
        """Bring `part` up to `size` bytes, going on with what it holds. Its hash is the caller's to check.

        Raises Unavailable; ConfigError when it cannot be written.
        """
        import aiohttp

        failures = 0
        while (have := size_of(part)) != size:
            if have > size:
                remove(part)
                continue
            try:
                await self._stretch(url, part, size, progress)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                failures = 1 if size_of(part) > have else failures + 1
                if isinstance(error, aiohttp.ClientSSLError) or failures >= ATTEMPTS:
                    raise Unavailable(_reason(url, error)) from error
                await asyncio.sleep(self._pause * 2 ** (failures - 1))

    async def _stretch(self, url: str, part: Path, size: int, progress: Progress) -> None:
        """One request: from where the part ends until the answer does."""
        have = size_of(part)
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        async with self._get(url, headers) as response:
            if response.status == 416:
                remove(part)
                raise OSError("the server cannot go on where the download stopped")
            self._check(response, url)
            resumes = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
            if response.status == 206 and not resumes:
                remove(part)
                raise OSError("the server sent another range than it was asked for")
            done = have if resumes else 0
            with _open(part, "a" if resumes else "w") as out:
                async for chunk in response.content.iter_chunked(_CHUNK):
                    done += len(chunk)
                    if done > size:
                        remove(part)
                        raise Unavailable(f"{shown(url)}: the file is larger than it should be ({size} bytes)")
                    _write(out, chunk, part)
                    progress(done, size)
        if done < size:
            raise OSError(f"it ended after {done} of {size} bytes")

    def _check(self, response: Any, url: str) -> None:
        status = response.status
        if status < 400:
            return
        if status in (408, 429) or status >= 500:
            raise OSError(f"the server answered {status}")
        hints = {
            401: "it wants a login: put user and password into the index's URL",
            403: "it refuses access",
            404: "it has no such file",
        }
        raise Unavailable(f"{shown(url)}: {hints.get(status, f'the server answered {status}')}")

    def _get(self, url: str, headers: dict[str, str]) -> Any:
        parts = urlsplit(url)
        login, _, host = parts.netloc.rpartition("@")
        if login:  # as a header, which aiohttp drops when it is sent on to another host
            headers |= {"Authorization": f"Basic {base64.b64encode(unquote(login).encode()).decode()}"}
            url = urlunsplit(parts._replace(netloc=host))
        options: dict[str, Any] = {"proxy": proxy_for(url, self._environ)}
        if parts.scheme == "https":
            if {parts.hostname, f"{parts.hostname}:{parts.port or 443}"} & self._sources.trusted:
                options["ssl"] = False
            elif self._sources.cafile:
                options["ssl"] = _context(self._sources.cafile)
        return self._session.get(url, headers=headers, **options)


def _context(cafile: str) -> Any:
    import ssl

    try:
        return ssl.create_default_context(cafile=cafile)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"The CA bundle {cafile} (PIP_CERT, SSL_CERT_FILE or pip's `cert`) cannot be read: {error}"
        ) from error


def _reason(url: str, error: Exception) -> str:
    text = str(error) or type(error).__name__
    for secret in filter(None, (urlsplit(url).password, urlsplit(url).username)):
        text = mask(mask(text, secret), unquote(secret))
    return f"{shown(url)}: {text}"


def size_of(path: Path) -> int:
    """A file's bytes; 0 if there is none."""
    return path.stat().st_size if path.exists() else 0


def remove(path: Path) -> None:
    """Delete a file that may be gone already."""
    path.unlink(missing_ok=True)


def cannot_write(path: Path, error: OSError) -> ConfigError:
    """The error for a disk that takes no more, or a folder that may not be written."""
    return ConfigError(
        f"{path} cannot be written: {error.strerror or error}. Make room, or choose another folder (HANDWORK_HOME)."
    )


def _open(path: Path, mode: str) -> FileIO:
    try:
        return FileIO(path, mode)
    except OSError as error:
        raise cannot_write(path, error) from error


def _write(out: FileIO, data: bytes, path: Path) -> None:
    try:
        while data:
            data = data[out.write(data) :]
    except OSError as error:
        raise cannot_write(path, error) from error
