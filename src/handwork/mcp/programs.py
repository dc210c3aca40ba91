"""Programs that servers are, installed beforehand: a package runner (npx, uvx …) in mcp.json stands for what lies in our folder."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Literal, TypeAlias

from handwork.config import MCPServerSettings
from handwork.config.settings import Home
from handwork.errors import MCPUnavailable
from handwork.mcp.own_command import own_command

Kind: TypeAlias = Literal["npm", "python"]
RECORD = "installed.json"
"""In the folder of each program: what it is, written when it was complete."""
_RUNNERS: Mapping[tuple[str, ...], Kind] = {
    ("npx",): "npm",
    ("bunx",): "npm",
    ("npm", "exec"): "npm",
    ("npm", "x"): "npm",
    ("bun", "x"): "npm",
    ("pnpx",): "npm",
    ("pnpm", "dlx"): "npm",
    ("yarn", "dlx"): "npm",
    ("uvx",): "python",
    ("uv", "tool", "run"): "python",
    ("pipx", "run"): "python",
}
_PACKAGE_OPTIONS = {"npm": ("-p", "--package"), "python": ("--from", "--spec")}
_MORE_OPTIONS = ("--with",)
_FLAGS = frozenset(
    {"-y", "--yes", "-q", "--quiet", "--bun", "--no-cache", "--isolated", "--refresh", "--prefer-online"}
)
"""Options of runners that change nothing about what is run."""
_NAMES = {
    "npm": re.compile(r"(?P<name>(?:@[\w.~-]+/)?\w[\w.~-]*)(?:@(?P<version>[^@/]*))?", re.ASCII),
    "python": re.compile(
        r"(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)(?P<extras>\[[\w.,\s-]*\])?\s*"
        r"(?:@\s*(?P<at>[\w.+!-]+)|(?P<version>[=<>!~].*))?",
        re.ASCII,
    ),
}
_EXACT = re.compile(r"(?:==)?v?(\d+(?:[.\w+!-]*\w)?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Package:
    """What a runner is told to run.

    name: as the registry has it; extras: `[cli]` of a Python package.
    version: as it was asked for: an exact one, a range, a tag, or ''.
    more: further Python packages (--with).
    program: the command in it, '' for the one that is named like the package, or the only one.
    arguments: what the program is given.
    """

    kind: Kind
    name: str
    version: str = ""
    extras: str = ""
    more: tuple[str, ...] = ()
    program: str = ""
    arguments: tuple[str, ...] = ()

    @property
    def exact(self) -> str:
        """The version, if just one was asked for; '' otherwise."""
        found = _EXACT.fullmatch(self.version.replace(" ", ""))
        return found[1] if found and not self.version.endswith((".x", ".*")) else ""

    @property
    def requirement(self) -> str:
        """As its installer takes it."""
        if self.kind == "npm":
            return f"{self.name}@{self.version}" if self.version else self.name
        version = (
            self.version
            if self.version.startswith(("=", "<", ">", "!", "~")) or not self.version
            else f"=={self.version}"
        )
        return f"{self.name}{self.extras}{version}"

    @property
    def origin(self) -> str:
        """Where its installer looks for it, unless that is configured otherwise."""
        return "npm" if self.kind == "npm" else "PyPI"


@dataclass(frozen=True, slots=True)
class Installed:
    """A package that lies ready: `argv` begins its programs, by their names; `paths` are the folders that it needs to see."""

    kind: Kind
    name: str
    version: str
    extras: str
    more: tuple[str, ...]
    asked: str
    """The version as it was asked for."""
    programs: Mapping[str, tuple[str, ...]]
    paths: tuple[str, ...]
    when: str


def package_of(settings: MCPServerSettings) -> Package | None:
    """The package that a server's command would fetch and run; None for a command that fetches nothing.

    Raises MCPUnavailable for one that we cannot install: from an address, from a folder, with options that we do not know.
    """
    if settings.type != "stdio":
        return None
    words = [PurePath(settings.command).name.removesuffix(".cmd"), *settings.args]
    for runner, kind in _RUNNERS.items():
        if tuple(words[: len(runner)]) == runner:
            return _read(kind, " ".join(runner), words[len(runner) :])
    return None


def resolved(name: str, settings: MCPServerSettings, home: Home) -> MCPServerSettings:
    """The server with the installed program in the place of its runner, and the program's folders among its `paths`; one that
    needs no installing as it is. Reads files only. Raises MCPUnavailable (lasting) if it is not installed."""
    package = package_of(settings)
    if package is None:
        return settings
    found = find(package, home)
    if found is None:
        what = f"The MCP server {name}: {package.requirement} ({package.origin}) is not installed"
        raise MCPUnavailable(what, hint=f"{own_command('add', name)} installs it", lasting=True)
    begin = program_of(found, package)
    paths = tuple(dict.fromkeys((*settings.paths, *found.paths)))
    return settings.model_copy(update={"command": begin[0], "args": (*begin[1:], *package.arguments), "paths": paths})


def installed_argv(name: str, argv: Sequence[str], home: Home) -> list[str]:
    """How a server's program is started: a runner's own words become those of what is installed. Raises as `resolved`."""
    found = resolved(name, MCPServerSettings(command=argv[0], args=tuple(argv[1:])), home)
    return [found.command, *found.args]


def program_paths(settings: MCPServerSettings, home: Home) -> tuple[str, ...]:
    """The folders that the installed program of a server needs to see; none if it needs no installing, or is not installed."""
    try:
        package = package_of(settings)
    except MCPUnavailable:  # which is told when the server is to start
        return ()
    found = find(package, home) if package else None
    return found.paths if found else ()


def find(package: Package, home: Home) -> Installed | None:
    """What is installed of a package: the very version if one was asked for, else what was installed last for what was asked."""
    fits = [found for found in installed(home) if _fits(package, found)]
    return max(fits, key=lambda found: found.when, default=None)


def installed(home: Home) -> Iterator[Installed]:
    """All that is installed; what is incomplete or damaged is passed over, as it can only be installed anew."""
    for file in sorted(home.programs.glob(f"*/{RECORD}")):
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            yield Installed(
                **{
                    **data,
                    "more": tuple(data["more"]),
                    "programs": {name: tuple(argv) for name, argv in data["programs"].items()},
                    "paths": tuple(data["paths"]),
                }
            )
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue


def folder_for(package: Package, version: str, home: Home) -> Path:
    """The folder of a package in a version: another one has another."""
    told = json.dumps([package.kind, package.name, package.extras, package.more, version])
    plain = re.sub(r"[^\w.-]+", "-", package.name).strip("-.")
    return home.programs / f"{plain[:40]}-{hashlib.sha256(told.encode()).hexdigest()[:12]}"


def record(folder: Path, found: Installed) -> None:
    """Note that an installation is complete. Raises OSError."""
    (folder / RECORD).write_text(json.dumps(asdict(found), indent=1, ensure_ascii=False), encoding="utf-8")


def program_of(found: Installed, package: Package) -> tuple[str, ...]:
    """How the program of a package that is wanted begins. Raises MCPUnavailable if there is none of that name."""
    plain = package.name.rpartition("/")[2]
    wanted = [package.program] if package.program else [plain, plain.replace("_", "-"), plain.replace("-", "_")]
    name = next((each for each in wanted if each in found.programs), "")
    if not name and not package.program and len(found.programs) == 1:
        name = next(iter(found.programs))
    if not name:
        there = ", ".join(sorted(found.programs)) or "none"
        what = f"The package {found.name} {found.version} has no program named {package.program or plain}"
        raise MCPUnavailable(what, hint=f"its programs: {there}", lasting=True)
    return found.programs[name]


def pinned(settings: MCPServerSettings, package: Package, version: str) -> tuple[str, ...]:
    """The server's arguments with the exact version where the package stands; everything else as it was written."""
    args, place = list(settings.args), _place_of(package, settings.args)
    if package.exact or place is None:
        return tuple(args)
    option, equals, _ = args[place].partition("=") if args[place].startswith("--") else ("", "", "")
    runner = PurePath(settings.command).name
    sign = "@" if package.kind == "npm" or (runner.startswith("uv") and not _is_value(args, place)) else "=="
    args[place] = f"{option}{equals}{package.name}{package.extras}{sign}{version}"
    return tuple(args)


def _is_value(args: Sequence[str], place: int) -> bool:
    """Whether a package is named by an option (--from), which takes a requirement."""
    return args[place].startswith("--") or (place > 0 and args[place - 1] in _PACKAGE_OPTIONS["python"])


def _place_of(package: Package, args: Sequence[str]) -> int | None:
    for place, word in enumerate(args):
        value = word.partition("=")[2] if word.startswith("--") else word
        found = _NAMES[package.kind].fullmatch(value)
        if found and found["name"] == package.name:
            return place
    return None


def _fits(package: Package, found: Installed) -> bool:
    same = (found.kind, _plain(found.name), found.extras, found.more)
    if same != (package.kind, _plain(package.name), package.extras, package.more):
        return False
    if package.exact:
        return found.version == package.exact
    return package.version in ("", found.asked)


def _plain(name: str) -> str:
    return name.lower() if name.startswith("@") else re.sub(r"[-_.]+", "-", name).lower()


def _read(kind: Kind, runner: str, words: Sequence[str]) -> Package:
    """The words after a runner: options, then the package or, if an option named that, the program, then its arguments."""
    named, more, rest = "", [], list(words)
    while rest and rest[0].startswith("-"):
        option, equals, value = rest.pop(0).partition("=")
        if option == "--":
            break
        if option in _FLAGS:
            continue
        if option not in (*_PACKAGE_OPTIONS[kind], *_MORE_OPTIONS) or not (equals or rest):
            raise _not_ours(runner, f"its option {option} is not known to Handwork")
        value = value if equals else rest.pop(0)
        if option in _MORE_OPTIONS:
            more.append(value)
        else:
            named = value
    if rest[:1] == ["--"]:
        rest.pop(0)
    if not named and not rest:
        raise _not_ours(runner, "it names no package")
    program = rest.pop(0) if named and rest else ""
    return _package(kind, runner, named or rest.pop(0), tuple(more), program, tuple(rest))


def _package(
    kind: Kind, runner: str, named: str, more: tuple[str, ...], program: str, arguments: tuple[str, ...]
) -> Package:
    for each in (named, *more):
        if not _NAMES[kind].fullmatch(each):
            raise _not_ours(runner, f"{each} is no name of a package, with or without a version")
    found = _NAMES[kind].fullmatch(named)
    assert found is not None
    groups = found.groupdict()
    version = groups.get("at") or groups.get("version") or ""
    version = "" if version == "latest" else version
    return Package(kind, found["name"], version, groups.get("extras") or "", more, program, arguments)


def _not_ours(runner: str, why: str) -> MCPUnavailable:
    return MCPUnavailable(
        f"What `{runner}` would fetch and run cannot be installed beforehand: {why}",
        hint="install it yourself and put its program into `command`; what lies elsewhere than the system belongs into `paths`",
        lasting=True,
    )
