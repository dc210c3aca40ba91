"""Fetches and installs the package of a server, outside of the sandbox: with npm or pip, whose own settings say from where."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from handwork.cli.clean import fold_end
from handwork.cli.mcp.visible import folder_of, is_visible
from handwork.config.one_writer import alone_in
from handwork.config.own_keys import without_keys
from handwork.config.settings import Home
from handwork.errors import ConfigError
from handwork.mcp.programs import RECORD, Installed, Package, find, folder_for, record

_SECONDS = 900.0
_LOOK_SECONDS = 60.0
_THEIRS = (
    *("PIP_", "NPM_CONFIG_", "npm_config_", "UV_", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"),
    *("NPM_TOKEN", "NODE_AUTH_TOKEN"),  # so a .npmrc for a company's registry mostly names its login
)
"""Variables that npm and pip are configured by, as their names begin."""
_LINES = 12
_UNKNOWN = ("No matching distribution", "E404", "404 Not Found")
_SCRIPTS = """\
import json, sys
from importlib.metadata import distribution
found = distribution(sys.argv[1])
names = [each.name for each in found.entry_points if each.group == "console_scripts"]
print(json.dumps({"version": found.version, "programs": names}))
"""


@dataclass(frozen=True, slots=True)
class Found:
    """What would be installed: the exact version, and the host that it comes from ('' if that is not known)."""

    package: Package
    version: str
    host: str


async def look_up(package: Package, home: Home, *, scripts: bool) -> Found:
    """Ask the registry which version that is; nothing is installed. `scripts` as for `install`. Raises ConfigError."""
    return await (_npm_version(package) if package.kind == "npm" else _python_version(package, home, scripts))


async def install(found: Found, home: Home, *, scripts: bool) -> Installed:
    """Install that version into a folder of its own. Raises ConfigError, and nothing is left then.

    scripts: run what the packages bring along for their installation; without it, Python packages come built or not at all.
    """
    folder = folder_for(found.package, found.version, home)
    with alone_in(home.programs):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        try:
            pip = [] if found.package.kind == "npm" else await _pip(home)
            done = await (_python(found, folder, scripts, pip) if pip else _npm(found, folder, scripts))
            record(folder, done)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise ConfigError(f"{found.package.name} cannot be installed: {error.strerror or error}") from None
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return done


def uninstall(found: Installed, home: Home) -> None:
    """Delete what is installed. Raises ConfigError if something of it stays."""
    folder = folder_of_installed(found, home)
    with alone_in(home.programs):
        try:
            (folder / RECORD).unlink(missing_ok=True)  # first: what is not whole counts as not installed
            shutil.rmtree(folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            why = error.strerror or str(error)
            raise ConfigError(f"{folder} cannot be deleted: {why}", hint="delete it yourself") from None


def folder_of_installed(found: Installed, home: Home) -> Path:
    """Where it lies."""
    return folder_for(Package(found.kind, found.name, "", found.extras, found.more), found.version, home)


def already(package: Package, home: Home) -> Installed | None:
    """What is installed of it."""
    found = find(package, home)
    return found if found and all(Path(path).exists() for path in found.paths) else None


def _installed(found: Found, programs: Mapping[str, tuple[str, ...]], paths: Sequence[str]) -> Installed:
    package, when = found.package, datetime.now(UTC).isoformat(timespec="seconds")
    kept = (package.kind, package.name, found.version, package.extras, package.more, package.version)
    return Installed(*kept, programs, tuple(dict.fromkeys(paths)), when)


# ---- npm


async def _npm_version(package: Package) -> Found:
    command = [_npm_program(), "view", package.requirement, "version", "dist.tarball", "--json"]
    try:
        said = await _run(command, _LOOK_SECONDS)
    except ConfigError as error:
        raise ConfigError(error.what, hint=error.hint or _unknown(error.what)) from None
    data = _json(said)
    last: Any = data[-1] if isinstance(data, list) and data else data
    if not isinstance(last, dict) or not isinstance(last.get("version"), str):
        raise ConfigError(f"npm knows no version of {package.requirement}", hint="look at the name and the version")
    return Found(package, last["version"], urlsplit(str(last.get("dist.tarball", ""))).hostname or "")


async def _npm(found: Found, folder: Path, scripts: bool) -> Installed:
    name = found.package.name
    quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--save-exact", "--loglevel=error"]
    risky = [] if scripts else ["--ignore-scripts"]
    command = [_npm_program(), "install", "--prefix", str(folder), *quiet, *risky, f"{name}@{found.version}"]
    await _run(command, _SECONDS, folder)
    place = folder / "node_modules" / name
    try:
        manifest = json.loads((place / "package.json").read_text(encoding="utf-8"))
        named = manifest.get("bin") or {}
    except (OSError, ValueError, AttributeError):
        raise ConfigError(f"{name} is no package that npm has installed whole") from None
    named = {name.rpartition("/")[2]: named} if isinstance(named, str) else named
    node = _real(_needed("node"))
    programs = {str(each): _node_program(node, place / str(path)) for each, path in named.items()}
    if not programs:
        raise ConfigError(f"{name} {found.version} has no program that could be started", hint="is it a server?")
    return _installed(found, programs, [str(folder), *([] if is_visible(node) else [folder_of(node)])])


def _node_program(node: str, file: Path) -> tuple[str, ...]:
    """How a program of a package begins: by node, unless its first line names another interpreter."""
    first = b""
    with suppress(OSError), file.open("rb") as stream:
        first = stream.readline(200)
    return (str(file),) if first.startswith(b"#!") and b"node" not in first else (node, str(file))


def _real(path: str | Path) -> str:
    return os.path.realpath(path)


def _npm_program() -> str:
    return _needed("npm")


def _needed(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise ConfigError(
            f"There is no program {program} here, which servers that npx starts need",
            hint="install Node.js (with npm) by your system's package manager, and try again",
        )
    return found


# ---- Python


async def _python_version(package: Package, home: Home, scripts: bool) -> Found:
    report = ["install", "--dry-run", "--quiet", "--ignore-installed", "--no-deps", "--report", "-"]
    command = [*await _pip(home), *report, *_built(scripts), *_QUIET, package.requirement]
    try:
        said = await _run(command, _LOOK_SECONDS)
    except ConfigError as error:
        source = (
            "" if scripts else "one that comes as source only needs --scripts: it runs code of its own to be installed"
        )
        raise ConfigError(
            error.what, hint=error.hint or " And ".join(filter(None, (_unknown(error.what), source)))
        ) from None
    try:
        only = _json(said)["install"][0]
        version, url = str(only["metadata"]["version"]), str(only["download_info"]["url"])
    except (KeyError, IndexError, TypeError):
        raise ConfigError(f"pip knows no version of {package.requirement}") from None
    return Found(package, version, urlsplit(url).hostname or "")


async def _python(found: Found, folder: Path, scripts: bool, pip: Sequence[str]) -> Installed:
    package = found.package
    await asyncio.to_thread(venv.create, folder, symlinks=True, with_pip=False)
    python = folder / "bin" / "python"
    wanted = [f"{package.name}{package.extras}=={found.version}", *package.more]
    await _run(
        [*pip, "--python", str(python), "install", "--quiet", *_built(scripts), *_QUIET, *wanted], _SECONDS, folder
    )
    said = _json(await _run([str(python), "-I", "-c", _SCRIPTS, package.name], _LOOK_SECONDS, folder))
    programs = {str(name): (str(folder / "bin" / str(name)),) for name in said["programs"]}
    if not programs:
        raise ConfigError(
            f"{package.name} {found.version} has no program that could be started", hint="is it a server?"
        )
    real = _real(python)
    return _installed(found, programs, [str(folder), *([] if is_visible(real) else [folder_of(real)])])


_QUIET = ("--disable-pip-version-check", "--no-input", "--no-color")


def _built(scripts: bool) -> list[str]:
    return [] if scripts else ["--only-binary", ":all:"]


async def _pip(home: Home) -> list[str]:
    """pip, as this Python has it; where it has none, one of our own, which Python brings along."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-I", "-m", "pip"]
    folder = home.programs / ".pip"
    if not (folder / "bin" / "pip").exists():
        try:
            await asyncio.to_thread(venv.create, folder, symlinks=True, with_pip=True, clear=True)
        except (OSError, subprocess.CalledProcessError):
            raise ConfigError(
                "There is no pip here, which servers that uvx starts are installed with",
                hint="install it by your system's package manager (python3-pip, python3-venv), and try again",
            ) from None
    return [str(folder / "bin" / "python"), "-I", "-m", "pip"]


# ---- programs


def _unknown(said: str) -> str:
    """What to ask first where npm or pip has found no such package."""
    return "Is the name right?" if any(sign in said for sign in _UNKNOWN) else ""


def _environment() -> dict[str, str]:
    """Without our keys, but with what npm and pip are configured by."""
    theirs = {name: value for name, value in os.environ.items() if name.startswith(_THEIRS)}
    return without_keys(os.environ) | theirs


async def _run(command: Sequence[str], seconds: float, folder: Path | None = None) -> str:
    """What a program wrote on its standard output. Raises ConfigError, with its last words, if it fails or takes too long."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder or "/",  # never the workspace, whose .npmrc would say from where
        env=_environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            out, errors = await process.communicate()
    except TimeoutError:
        raise ConfigError(
            f"{_called(command)} did not end within {seconds:.0f} s", hint="look at the network"
        ) from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if process.returncode:
        said = (errors or out).decode(errors="replace")
        raise ConfigError(f"{_called(command)} failed:\n{fold_end(said, _LINES, 160)}")
    return out.decode(errors="replace")


def _called(command: Sequence[str]) -> str:
    words = [Path(command[0]).name, *(word for word in command[1:] if not word.startswith("-"))]
    return " ".join(words[:3]) if words[0] == "npm" else "pip"


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise ConfigError(
            "What the installer answered cannot be read", hint="try it by hand, and put its program into `command`"
        ) from None
