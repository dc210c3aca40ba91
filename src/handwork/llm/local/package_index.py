"""Simple package indexes: the page of a package, as HTML (PEP 503) or JSON (PEP 691), and the files that it names. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit
from urllib.request import url2pathname

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file that a page names; `sha256` is '' if the page does not say it."""

    name: str
    url: str
    sha256: str = ""


def page_url(index: str, package: str) -> str:
    """The page of a package below an index's root."""
    return f"{index.rstrip('/')}/{re.sub(r'[-_.]+', '-', package).lower()}/"


def files_of(page: str, url: str) -> list[IndexedFile]:
    """The files of a page that came from `url` (after redirects, with the index's credentials if it has any).

    JSON is told by its first character, since mirrors answer it with any media type. Raises ValueError for neither.
    """
    found = _json_files(page, url) if page.lstrip().startswith("{") else _html_files(page, url)
    return [IndexedFile(file.name, with_login(file.url, url), file.sha256) for file in found]


def _json_files(page: str, url: str) -> Iterator[IndexedFile]:
    files = json.loads(page).get("files")
    if not isinstance(files, list):
        raise ValueError("the page lists no files")
    for file in files:
        if isinstance(file, dict) and isinstance(file.get("filename"), str) and isinstance(file.get("url"), str):
            hashes = file.get("hashes")
            digest = hashes.get("sha256") if isinstance(hashes, dict) else ""
            yield IndexedFile(file["filename"], urljoin(url, file["url"]), str(digest or "").lower())


class _Links(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__()
        self.base, self.links = base, list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if not href:
            return
        if tag == "base":
            self.base = urljoin(self.base, href)
        elif tag == "a":
            self.links.append(urljoin(self.base, href.strip()))


def _html_files(page: str, url: str) -> Iterator[IndexedFile]:
    parser = _Links(url)
    parser.feed(page)
    for link in parser.links:
        address, fragment = urldefrag(link)
        name = unquote(urlsplit(address).path.rpartition("/")[2])
        digest = fragment.removeprefix("sha256=").lower() if fragment.startswith("sha256=") else ""
        if name:
            yield IndexedFile(name, address, digest)


def with_login(url: str, origin: str) -> str:
    """The URL with the credentials of `origin`, if it is on the same host and has none of its own."""
    parts, source = urlsplit(url), urlsplit(origin)
    login, _, host = source.netloc.rpartition("@")
    if not login or "@" in parts.netloc or (parts.scheme, parts.netloc) != (source.scheme, host):
        return url
    return urlunsplit(parts._replace(netloc=f"{login}@{host}"))


def shown(url: str) -> str:
    """The URL for people: without credentials, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def local_path(location: str) -> Path | None:
    """The path of a file: URL or of a plain path; None for an address on a network."""
    parts = urlsplit(location)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path))
    return None if parts.scheme in ("http", "https") else Path(location).expanduser()
