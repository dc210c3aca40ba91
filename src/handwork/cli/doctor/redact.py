"""Takes out of a text what names a person, a machine or a place, and what may be a secret: for reports that are sent away."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from handwork.config import Settings
from handwork.config.providers import PROVIDERS
from handwork.config.user_proxy import is_loopback

HIDDEN = "<hidden>"
_SECRET_NAME = re.compile(r"key|token|secret|pass|pwd|credential|auth|cookie|private|signature|dsn", re.IGNORECASE)
_SHORTEST = 6
"""Shorter values are common words and numbers: they are kept out by never writing a value of the environment."""
_TOKENS = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:sk|pk|rk|gsk|csk|gh[a-z]|glpat|hf|xox[a-z]|xai|tgp|fw|r8|nvapi|pplx)[-_]|AKIA|ASIA|AIza|AQ\.|eyJ)"
    r"[-_A-Za-z0-9.]{8,}|github_pat_\w{10,}|(?:[Bb]earer|[Bb]asic)\s+[\w.~+/=-]{8,}"
    r"|(?<![\w-])(?=[\w+/=-]*\d)(?=[\w+/=-]*[A-Za-z])[\w+=-]{28,}(?![\w-])"
)
"""Keys in the forms that providers give them, and what is too long and mixed for a word."""
_URL = re.compile(r"\b([a-z][a-z0-9+.-]*)://([^\s\"'<>()]+)", re.IGNORECASE)
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ADDRESS = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_PATH = re.compile(r"(?<![\w.<>/~-])(?:/(?!/)|~/)[^\s\"'`,;:()<>|]+")
_WINDOWS_PATH = re.compile(r"\b[A-Za-z]:\\[^\s\"'`,;()<>|]+")
_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/etc",
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/nonexistent",
    "/var/lib",
)
_GENERAL = {
    "root",
    "user",
    "users",
    "admin",
    "home",
    "ubuntu",
    "debian",
    "runner",
    "localhost",
    "python",
    "handwork",
    "linux",
}
"""Names that name nobody."""


class Redactor:
    """Knows what is secret or personal on this machine; made once a report."""

    def __init__(self, settings: Settings, workspace: Path) -> None:
        environ = settings.environ
        people = dict.fromkeys(_people(environ), "<user>")
        secrets = {*_secrets(settings), *_secret_values(environ)} - {*people}
        self._secrets = _either(value for value in secrets if len(value) >= _SHORTEST)
        self._places = _places(settings, workspace)
        self._known_hosts = {str(urlsplit(each.base_url).hostname) for each in PROVIDERS.values()}
        hosts = {*_hosts(environ), *_configured_hosts(settings)} - self._known_hosts
        self._names = _words({**dict.fromkeys(hosts, "<host>"), **people})

    def text(self, text: str) -> str:
        """The text without them."""
        text = _MAIL.sub("<mail>", _URL.sub(self._url, text))
        for place, name in self._places:
            text = re.sub(rf"{re.escape(place)}(?![\w.-])", name, text)
        text = _TOKENS.sub(HIDDEN, self._secrets.sub(HIDDEN, text))
        text = _WINDOWS_PATH.sub("<path>", _PATH.sub(_path, text))
        text = _ADDRESS.sub(lambda found: found[0] if is_loopback(found[0]) else "<address>", text)
        return self._names(text)

    def _url(self, found: re.Match[str]) -> str:
        """Scheme and port stay, and the host if it is a provider's or this machine; nothing behind it does."""
        try:
            parts = urlsplit(found[0])
            host, port = parts.hostname or "", parts.port
        except ValueError:
            return f"{found[1]}://{HIDDEN}"
        shown = host if host in self._known_hosts or is_loopback(host) else "<host>"
        return f"{parts.scheme}://{shown}{f':{port}' if port else ''}"


def _secrets(settings: Settings) -> Iterator[str]:
    """What the configuration holds of keys, passwords and headers, what stands in addresses and arguments, the stored keys."""
    yield from settings.secrets()
    yield from settings.keys.readable()
    yield from _deep(settings.model_dump(exclude={"home", "environ", "notices", "withheld"}), secret=False)


def _deep(value: object, *, secret: bool) -> Iterator[str]:
    """The texts below a key that looks like one of a secret, or below env, headers and args."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            hides = secret or str(key) in ("env", "headers", "args") or bool(_SECRET_NAME.search(str(key)))
            yield from _deep(inner, secret=hides)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _deep(inner, secret=secret)
    elif isinstance(value, str):
        yield from _of_address(value)
        if secret:
            yield value


def _secret_values(environ: Mapping[str, str]) -> Iterator[str]:
    for name, value in environ.items():
        if _SECRET_NAME.search(name) and not value.startswith("/"):
            yield value
            yield value.strip()
        yield from _of_address(value)


def _of_address(value: str) -> Iterator[str]:
    """User, password and parameters of an address, as they are written and as they are meant."""
    for found in re.finditer(r"://([^/?#\s]*)@", value):
        for part in (found[1], *found[1].split(":", 1)):
            yield part
            yield unquote(part)
    for found in re.finditer(r"://[^?#\s]*\?([^#\s]*)", value):
        for pair in found[1].split("&"):
            yield pair.partition("=")[2]
            yield unquote(pair.partition("=")[2])


def _places(settings: Settings, workspace: Path) -> list[tuple[str, str]]:
    """Paths of this machine and what is written for them, the longest first."""
    own, environ = settings.home, settings.environ
    named = {
        "<workspace>": [workspace],
        "<data>": [own.data],
        "<cache>": [own.cache],
        "<config>": [own.config],
        "<store>": [settings.store_path],
        "<handwork>": [Path(__file__).parents[2]],
        "<python>": [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).parent],
        "<here>": [_current()],
        "~": _homes(environ),
    }
    for name, value in environ.items():
        for part in value.split(os.pathsep):
            if part.startswith("/") and "\n" not in part:
                named.setdefault(f"<${name}>", []).append(Path(part))
    pairs: dict[str, str] = {}
    for name, paths in named.items():
        for path in paths:
            for each in (str(path), os.path.realpath(path)):
                if len(each) > 1 and not _is_system(each):
                    pairs.setdefault(each.rstrip("/"), name)
    return sorted(pairs.items(), key=lambda pair: -len(pair[0]))


def _current() -> Path:
    with contextlib.suppress(FileNotFoundError):
        return Path.cwd()
    return Path("/")


def _homes(environ: Mapping[str, str]) -> list[Path]:
    homes = [Path(environ[name]) for name in ("HOME", "USERPROFILE") if environ.get(name)]
    with contextlib.suppress(ImportError, KeyError):
        import pwd

        homes.append(Path(pwd.getpwuid(os.getuid()).pw_dir))
    return homes


def _path(found: re.Match[str]) -> str:
    return found[0] if _is_system(found[0]) or found[0] == "~/" else "<path>"


def _is_system(path: str) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in _SYSTEM)


def _people(environ: Mapping[str, str]) -> Iterator[str]:
    yield from (environ.get(name, "") for name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER"))
    yield from (home.name for home in _homes(environ))
    with contextlib.suppress(ImportError, KeyError):
        import pwd

        account = pwd.getpwuid(os.getuid())
        yield account.pw_name
        full = account.pw_gecos.partition(",")[0]
        yield from (full, *full.split())


def _hosts(environ: Mapping[str, str]) -> Iterator[str]:
    for name in (
        socket.gethostname(),
        os.uname().nodename if hasattr(os, "uname") else "",
        environ.get("HOSTNAME", ""),
    ):
        yield from (name, name.partition(".")[0])
    for name, value in environ.items():
        if name.lower().endswith("_proxy"):
            for entry in value.split(","):
                host = (entry.partition("://")[2] or entry).rpartition("@")[2].partition("/")[0].partition(":")[0]
                yield host.strip().lstrip("*.")


def _configured_hosts(settings: Settings) -> Iterator[str]:
    """The hosts of all addresses in the configuration."""
    dumped = str(settings.model_dump(exclude={"home", "environ", "notices", "withheld"}))
    for found in _URL.finditer(dumped):
        with contextlib.suppress(ValueError):
            yield urlsplit(found[0]).hostname or ""


def _either(values: Iterator[str] | set[str]) -> re.Pattern[str]:
    longest_first = sorted(set(values), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) if longest_first else r"(?!)")


def _words(names: Mapping[str, str]) -> Callable[[str], str]:
    """Replaces whole words, in any case."""
    known = {name.lower(): put for name, put in names.items() if len(name) > 1 and not _is_general(name)}
    longest_first = sorted(known, key=len, reverse=True)
    if not longest_first:
        return lambda text: text
    pattern = re.compile(
        rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, longest_first))})(?![A-Za-z0-9])", re.IGNORECASE
    )
    return lambda text: pattern.sub(lambda found: known[found[0].lower()], text)


def _is_general(name: str) -> bool:
    return name.lower() in _GENERAL or is_loopback(name) or name.isdigit()
