"""Which package indexes this machine uses: the environment, pip's configuration files, else the public default."""

from __future__ import annotations

import configparser
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from handwork.errors import ConfigError
from handwork.llm.local.catalog import DEFAULT_INDEX

_SECTIONS = ("global", "install")
_TRUE = {"1", "true", "yes", "on", "y", "t"}


@dataclass(frozen=True, slots=True)
class Sources:
    """Where wheels may lie: `links` are folders or pages (pip's find-links), `indexes` the roots of simple indexes.

    `cafile` is the CA bundle for HTTPS, '' for the system's; hosts in `trusted` (host or host:port) need no valid certificate.
    URLs may hold credentials: show them only through `shown`.
    """

    links: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    cafile: str = ""
    trusted: frozenset[str] = frozenset()


def package_sources(environ: Mapping[str, str]) -> Sources:
    """What pip and uv would use. An environment variable wins over the files, pip's over uv's.

    Raises ConfigError for a configuration file that cannot be parsed.
    """
    files = _pip_settings(environ)

    def setting(pip_name: str, *uv_names: str) -> str:
        variables = (f"PIP_{pip_name.upper().replace('-', '_')}", *uv_names)
        return next((value for name in variables if (value := environ.get(name, "").strip())), "") or files.get(
            pip_name, ""
        )

    links = tuple(setting("find-links", "UV_FIND_LINKS").replace(",", " ").split())
    cafile = setting("cert", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
    trusted = frozenset(setting("trusted-host", "UV_INSECURE_HOST").split())
    if setting("no-index", "UV_NO_INDEX").lower() in _TRUE:
        return Sources(links, (), cafile, trusted)
    first = setting("index-url", "UV_DEFAULT_INDEX", "UV_INDEX_URL") or DEFAULT_INDEX
    more = [*setting("extra-index-url", "UV_EXTRA_INDEX_URL").split(), *environ.get("UV_INDEX", "").split()]
    indexes = dict.fromkeys(_url_of(part) for part in (first.split()[0], *more))
    # What lies on this machine is asked first: it is quick, and the file is known by its hash wherever it comes from.
    return Sources(links, tuple(sorted(indexes, key=lambda url: not url.startswith("file:"))), cafile, trusted)


def _url_of(text: str) -> str:
    """uv allows `name=url`."""
    return re.sub(r"\A[\w.-]+=(?=\w+:)", "", text)


def _pip_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """pip's settings, later files over earlier ones, as pip itself reads them."""
    settings: dict[str, str] = {}
    for path in _pip_files(environ):
        try:
            text = path.read_text(encoding="utf-8")
        except OSError:
            continue
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(text)
        except configparser.Error as error:
            raise ConfigError(
                f"pip's configuration file {path} cannot be read: {error.message.splitlines()[0]}"
            ) from error
        for section in _SECTIONS:
            if parser.has_section(section):
                settings |= {key.replace("_", "-"): value.strip() for key, value in parser.items(section) if value}
    return settings


def _pip_files(environ: Mapping[str, str]) -> Iterator[Path]:
    """System, user, virtual environment, then PIP_CONFIG_FILE; the null device there switches all files off."""
    named = environ.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return
    for folder in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(os.pathsep):
        yield Path(folder) / "pip" / "pip.conf"
    yield Path("/etc/pip.conf")
    if home := environ.get("HOME"):
        yield Path(home) / ".pip" / "pip.conf"
        if sys.platform == "darwin":
            yield Path(home) / "Library" / "Application Support" / "pip" / "pip.conf"
        yield Path(environ.get("XDG_CONFIG_HOME") or f"{home}/.config") / "pip" / "pip.conf"
    yield Path(sys.prefix) / "pip.conf"
    if named:
        yield Path(named).expanduser()
