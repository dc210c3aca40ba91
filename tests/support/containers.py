"""Real processes in place of containers, for stand-ins of engines and of remote machines: by bubblewrap, from the engine's words."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from handwork.sandbox.open import find_bwrap

PATH = f"{sys.base_prefix}/bin:/usr/local/bin:/usr/bin:/bin"


def start(config: Mapping[str, Any], **streams: Any) -> subprocess.Popen[bytes]:
    """Run what an engine would, by the body of its containers/create: namespaces, mounts, user's files, nothing else."""
    host = config["HostConfig"]
    words = [
        str(find_bwrap()),
        "--unshare-all",
        "--die-with-parent",
        "--as-pid-1",
        "--cap-drop",
        "ALL",
        "--new-session",
    ]
    if host["NetworkMode"] != "none":
        words.append("--share-net")
    words += _system()
    places = {place: _memory(place, options) for place, options in host["Tmpfs"].items()}
    places |= {mount["Target"]: _bind(mount) for mount in host["Mounts"]}
    for place in sorted(places, key=lambda place: place.count("/")):
        words += places[place]
    words += [word for place, how in places.items() if "ro" in how[:1] for word in ("--remount-ro", place)]
    words += ["--remount-ro", "/", "--chdir", config["WorkingDir"], "--hostname", config["Hostname"], "--"]
    env = {"PATH": PATH, **dict(pair.split("=", 1) for pair in config["Env"])}
    return subprocess.Popen([*words, *config["Entrypoint"], *config["Cmd"]], env=env, cwd="/", **streams)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill it, and wait until all that ran in it is gone: the kernel ends a namespace after its first process."""
    below = []
    with contextlib.suppress(psutil.NoSuchProcess):
        below = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    while any(map(_lives, below)):
        time.sleep(0.002)  # they are nobody's children that we could wait for


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _system() -> list[str]:
    words = ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
    for name in ("bin", "lib", "lib64", "sbin"):
        path = Path("/") / name
        words += ["--symlink", f"usr/{name}", str(path)] if path.is_symlink() else ["--ro-bind", str(path), str(path)]
    if not Path(sys.base_prefix).is_relative_to("/usr"):
        words += ["--ro-bind", sys.base_prefix, sys.base_prefix]
    return words


def _memory(place: str, options: str) -> Sequence[str]:
    said = dict(pair.partition("=")[::2] for pair in options.split(","))
    return ["--perms", said.get("mode", "1777"), "--tmpfs", place]


def _bind(mount: Mapping[str, Any]) -> Sequence[str]:
    return ["--ro-bind" if mount["ReadOnly"] else "--bind", mount["Source"], mount["Target"]]
