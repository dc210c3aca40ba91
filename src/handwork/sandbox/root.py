"""What a bwrap sandbox can see: the list of mounts, built from what is allowed, never from what is forbidden."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from handwork.sandbox.plan import Opener, Plan, follow

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


@dataclass(frozen=True)
class Mounts:
    """Arguments of bwrap, the descriptors among them, and for `--ro-bind-data` the texts by place."""

    arguments: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    descriptors: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Kept:
    """Places in the workspace: `held` are read-only, `pinned` folders stay where they are, `muted` sockets cannot be reached,
    and what is `masked` cannot be read. The workspace itself may be held."""

    held: Sequence[Path] = ()
    pinned: Sequence[Path] = ()
    muted: Sequence[Path] = ()
    masked: Sequence[Path] = ()


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
    readable: Sequence[Path] = (),
) -> Mounts:
    """The root: system, python and `readable` read-only, workspace writable, home and /tmp private, `hide` masked. Paths are real ones.

    `room` is how many bytes each of the folders may hold that lie in memory; 0 is half of the machine's.
    """
    size = ["--size", str(room)] if room else []
    system = [*_system(network), *_devices(size)]
    plan = Plan([place for word, place in zip(system, system[2:], strict=False) if word == "--ro-bind"])
    plan.tmpfs("/tmp", size)
    plan.tmpfs(HOME, size)
    for folder in (*python_folders(), *imported_folders(workspace)[0], Path(sys.executable)):
        plan.read_only(folder, within=workspace)
    for path in readable:
        plan.read_only(path, within=workspace)
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
    for path in kept.masked:
        plan.shut(path, workspace)
    plan.settle(workspace)
    # What the kernel lists there are the user's keys and those of others: it knows no namespace of them.
    texts = _accounts() | {place: "" for place in _KEYS if Path(place).exists()}
    texts |= {} if network else {"/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n"}
    arguments, descriptors = plan.arguments(opener)
    return Mounts([*system, *arguments], texts, descriptors)


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
