"""What a bwrap sandbox can see: the list of mounts, built from what is allowed, never from what is forbidden."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

HOME = "/home/agent"
_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = (
    "alternatives", "bash.bashrc", "ca-certificates", "chromium", "chromium.d", "crypto-policies", "debian_version", "environment.d",
    "fonts", "gai.conf",
    "ImageMagick-6", "ImageMagick-7", "inputrc", "java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "locale.alias", "locale.conf", "localtime", "machine-id", "magic", "magic.mime",
    "mime.types", "nsswitch.conf", "os-release", "pki/ca-trust", "pki/tls/cert.pem", "pki/tls/certs", "profile", "profile.d",
    "protocols", "python3", "python3.11", "redhat-release", "rpc", "services", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf",
    "timezone", "vulkan", "xdg",
)  # fmt: skip
_KEYS = ("/proc/keys", "/proc/key-users")
_ETC_NETWORK = ("host.conf", "hosts", "resolv.conf")


Opener: TypeAlias = Callable[[Path], int | None]
"""Gives a descriptor of a place in the workspace, and None for one that is named by its path."""


@dataclass(frozen=True)
class Mounts:
    """Arguments of bwrap, the descriptors among them, and for `--ro-bind-data` the texts by place."""

    arguments: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    descriptors: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Kept:
    """Places in the workspace: `held` are read-only, `pinned` folders stay where they are, `muted` sockets cannot be reached."""

    held: Sequence[Path] = ()
    pinned: Sequence[Path] = ()
    muted: Sequence[Path] = ()


_NOTHING_KEPT = Kept()


def python_folders() -> list[Path]:
    """The folders that this python and Handwork need to run, as they are named here."""
    folders = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.exec_prefix), Path(__file__).parents[1]]
    user = site.getusersitepackages()
    if user in sys.path:
        folders.append(Path(user))
    executable = Path(os.path.realpath(sys.executable))
    if not any(executable.is_relative_to(os.path.realpath(folder)) for folder in [*folders, Path("/usr")]):
        folders.append(executable.parent)
    if executable.is_relative_to("/nix/store"):
        folders.append(Path("/nix/store"))
    return folders


def imported_folders(workspace: Path) -> tuple[list[Path], list[str]]:
    """Where within the workspace this python looks for modules: what somebody puts there runs, out here, at its next start.

    Returns the folders to be made read-only inside, and the places where that is not possible: the workspace itself, what is
    not there yet, and links, which anybody can put elsewhere.
    """
    safe = [Path(os.path.realpath(folder)) for folder in python_folders()]
    safe = [folder for folder in safe if not workspace.is_relative_to(folder)]

    def is_open(path: Path) -> bool:
        return path.is_relative_to(workspace) and not any(path.is_relative_to(folder) for folder in safe)

    folders, left = [], []
    for entry in filter(None, sys.path):
        links, real = follow(Path(entry))
        if is_open(real) and real != workspace and real.exists():
            folders.append(real)
            safe.append(real)
        if is_open(real) or any(map(is_open, map(Path, links))):
            left.append(entry)
    return folders, left


def build(
    workspace: Path,
    artifacts: Path,
    hide: Sequence[Path],
    network: bool,
    kept: Kept = _NOTHING_KEPT,
    opener: Opener = lambda path: None,
    room: int = 0,
) -> Mounts:
    """The root: system and python read-only, workspace writable, home and /tmp private, `hide` masked. Paths are real ones.

    `room` is how many bytes each of the folders may hold that lie in memory; 0 is half of the machine's.
    """
    size = ["--size", str(room)] if room else []
    system = [*_system(network), *_devices(size)]
    plan = _Plan([place for word, place in zip(system, system[2:], strict=False) if word == "--ro-bind"])
    plan.tmpfs("/tmp", size)
    plan.tmpfs(HOME, size)
    for folder in (*python_folders(), *imported_folders(workspace)[0], Path(sys.executable)):
        plan.read_only(folder, within=workspace)
    plan.add(str(workspace), "--bind", str(workspace), str(workspace))
    for path in kept.pinned:
        plan.pin(path, workspace)
    for path in kept.held:
        plan.hold(path, workspace)
    for path in kept.muted:
        plan.mute(path, workspace)
    plan.read_only(artifacts, within=workspace)
    for path in hide:
        plan.mask(path, workspace)
    # What the kernel lists there are the user's keys and those of others: it knows no namespace of them.
    texts = _accounts() | {place: "" for place in _KEYS if Path(place).exists()}
    texts |= {} if network else {"/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n"}
    arguments, descriptors = plan.arguments(opener)
    return Mounts([*system, *arguments], texts, descriptors)


class _Plan:
    """Mounts by place, so that what lies deeper is mounted later and wins."""

    def __init__(self, system: Sequence[str]) -> None:
        self._system = system
        self._mounts: dict[str, list[str]] = {}
        self._masks: set[str] = set()

    def add(self, place: str, *arguments: str) -> None:
        self._mounts[place] = list(arguments)

    def tmpfs(self, place: str, size: Sequence[str]) -> None:
        self.add(place, "--perms", "1777" if place == "/tmp" else "0700", *size, "--tmpfs", place)

    def read_only(self, path: Path, within: Path) -> None:
        """Bind a folder at its real place, and make the links on the way to it, so that its name works, too."""
        links, real = follow(path)
        for link, target in links.items():
            self.add(link, "--symlink", target, link)
        if real.is_relative_to("/usr") or real == Path("/"):
            return
        if real.is_file() and real != path and any(str(real).startswith(place + "/") for place in self._mounts):
            return
        self._pin(real, within)
        self.add(str(real), "--ro-bind", str(real), str(real))

    def hold(self, path: Path, workspace: Path) -> None:
        """Have a file or folder of the workspace read-only, and where it is."""
        self._pin(path, workspace)
        self.add(str(path), "--ro-bind", str(path), str(path))

    def pin(self, folder: Path, workspace: Path) -> None:
        """Have a folder of the workspace stay where it is."""
        self._pin(folder / "below", workspace)

    def mute(self, socket: Path, workspace: Path) -> None:
        """Put something over a socket that nobody can connect to."""
        self._pin(socket, workspace)
        self.add(str(socket), "--ro-bind", "/dev/null", str(socket))

    def mask(self, path: Path, workspace: Path) -> None:
        """Put emptiness over a path that would be seen."""
        real = Path(os.path.realpath(path))
        if not self._covered(str(real)):
            return
        self._pin(real, workspace)
        self._masks.add(str(real))
        if real.is_file():
            self.add(str(real), "--ro-bind", "/dev/null", str(real))
        else:
            real.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.add(str(real), "--perms", "0555", "--tmpfs", str(real))

    def _covered(self, place: str) -> bool:
        shown = [name for name, how in self._mounts.items() if how[0] in ("--bind", "--ro-bind")]
        return any(place == name or place.startswith(name + "/") for name in (*self._system, *shown))

    def _pin(self, real: Path, workspace: Path) -> None:
        # Inside a writable workspace, a folder above a mount could be renamed and another put in its place, and the program
        # outside would run that one. A folder that is a mount point itself cannot be renamed.
        for parent in real.parents:
            if parent != workspace and parent.is_relative_to(workspace):
                self._mounts.setdefault(str(parent), ["--bind", str(parent), str(parent)])

    def arguments(self, opener: Opener) -> tuple[list[str], list[int]]:
        """All mounts, the deeper ones later, and the descriptors in them."""
        words, descriptors = list[str](), list[int]()
        ordered = sorted(self._mounts.items(), key=lambda item: (item[0].count("/"), item[0]))
        for place, arguments in ordered:
            if arguments[0] == "--symlink" and self._covered(place):
                continue  # it comes with the folder that it lies in
            if arguments[0] in ("--bind", "--ro-bind") and arguments[1] == place:
                descriptor = opener(Path(place))
                if descriptor is not None:
                    descriptors.append(descriptor)
                    words += [f"{arguments[0]}-fd", str(descriptor), place]
                    continue
            words += arguments
        for place in sorted(self._masks):
            if self._mounts[place][0] == "--perms":
                words += ["--remount-ro", place]
        return words, descriptors


def follow(path: Path) -> tuple[dict[str, str], Path]:
    """The symbolic links met on the way to `path`, each with its target, and the real path."""
    links: dict[str, str] = {}
    real = Path("/")
    rest = list(reversed(path.absolute().parts[1:]))
    while rest:
        name = rest.pop()
        if name == "..":
            real = real.parent
            continue
        here = real / name
        if here.is_symlink() and len(links) < 40:
            target = str(here.readlink())
            links[str(here)] = target
            if target.startswith("/"):
                real = Path("/")
            rest.extend(reversed([part for part in Path(target).parts if part != "/"]))
        else:
            real = here
    return links, real


def _system(network: bool) -> list[str]:
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in _LINKS:
        path = Path("/") / name
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    for name in (*_ETC, *(_ETC_NETWORK if network else ())):
        path = Path("/etc") / name
        if path.exists():
            arguments += ["--ro-bind", str(path), str(path)]
    return [*arguments, "--dir", "/var/tmp", "--dir", "/run", "--proc", "/proc", *_kernel()]


def _devices(size: Sequence[str]) -> list[str]:
    # The folder of the devices lies in memory, too, and nobody would bound what was written there.
    shared = ["--perms", "1777", *size, "--tmpfs", "/dev/shm"]
    return ["--dev", "/dev", *shared, "--remount-ro", "/dev"]


def system_places(network: bool) -> list[Path]:
    """The files and folders of the system that a sandbox shows, by their names."""
    names = [Path("/") / name for name in ("usr", *_LINKS)]
    names += [Path("/etc") / name for name in (*_ETC, *(_ETC_NETWORK if network else ()))]
    return [path for path in names if path.exists()]


def _kernel() -> list[str]:
    # To root's own uid most of /proc/sys is writable without any capability, and a core_pattern is a way out. bwrap covers
    # these only where it finds the folder itself writable, which /proc/sys is not.
    arguments: list[str] = []
    for entry in sorted(os.scandir("/proc"), key=lambda entry: entry.name):
        if entry.name.isdigit() or entry.is_symlink():
            continue
        if entry.is_dir() or entry.stat().st_mode & 0o222:
            arguments += ["--ro-bind", entry.path, entry.path]
    return arguments


def _accounts() -> dict[str, str]:
    # The host's own files name its people; programs only need a name for the ids that occur.
    uid, gid = os.getuid(), os.getgid()
    users = f"agent:x:{uid}:{gid}:agent:{HOME}:/bin/bash\n"
    groups = f"agent:x:{gid}:\n"
    if uid:
        users += "root:x:0:0:root:/root:/usr/sbin/nologin\n"
    if gid:
        groups += "root:x:0:\n"
    if uid != 65534:
        users += "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    if gid != 65534:
        groups += "nogroup:x:65534:\n"
    return {"/etc/passwd": users, "/etc/group": groups}
