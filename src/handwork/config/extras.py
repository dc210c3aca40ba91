"""How a missing extra is got: by the same installer that Handwork came with."""

from __future__ import annotations

import json
import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

from handwork.errors import ConfigError

NAME = "handwork"
_OF_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


def missing_extra(extra: str, what: str) -> ConfigError:
    """The error for a package that is not there: `what` needs it, and its hint is the command that installs the extra."""
    return ConfigError(what, hint=f"get it with: {way_to_get(extra)}")


def way_to_get(extra: str) -> str:
    """The command that adds an extra to this installation, as it is typed in a shell."""
    needed, origin = _record()
    address, editable = _came_from(origin)
    prefix = Path(sys.prefix)
    if (prefix / "pipx_metadata.json").exists():
        return _typed("pipx", "inject", NAME, *_packages(needed, extra))
    if editable:
        return _typed(*_pip(), "--editable", f"{address}[{extra}]")
    wanted = f"{NAME}[{extra}] @ {address}" if address else f"{NAME}[{extra}]"
    if (prefix / "uv-receipt.toml").exists():
        return _typed("uv", "tool", "install", "--force", wanted)
    return _typed(*_pip(), wanted)


def _record() -> tuple[list[str], str]:
    """What the installed Handwork says that it needs, and its direct_url.json; both empty if it is run from its folder."""
    from importlib import metadata  # takes longer to load than all else here

    try:
        found = metadata.distribution(NAME)
    except metadata.PackageNotFoundError:
        return [], ""
    return found.requires or [], found.read_text("direct_url.json") or ""


def _came_from(origin: str) -> tuple[str, bool]:
    """The address that Handwork was installed from ('': from the index), and whether it is a folder that is used as it is."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        said = json.loads(origin or "{}")
        address, editable = str(said.get("url", "")), bool(said.get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError):
        return "", False
    if not address.startswith("file:"):
        return address, False
    path = Path(url2pathname(urlsplit(address).path))
    return (str(path) if editable else address) if path.exists() else "", editable and path.exists()


def _packages(needed: list[str], extra: str) -> list[str]:
    """What the extra brings."""
    named = {line.partition(";")[0].strip() for line in needed if extra in _OF_EXTRA.findall(line)}
    return sorted(named) or [f"{NAME}[{extra}]"]


def _pip() -> list[str]:
    """pip of the environment that Handwork runs in; the one on PATH may be another's."""
    if find_spec("pip") is None:
        return ["uv", "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install"] if sys.prefix != sys.base_prefix else ["pip", "install"]


def _typed(*words: str) -> str:
    if sys.platform == "win32":
        return " ".join(f'"{word}"' if re.search(r"[^\w./:=-]", word) else word for word in words)
    return shlex.join(words)
