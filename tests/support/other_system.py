"""Runs the command line as another system would have it: its name of the platform, and without what only Linux (or Unix) has.

    python other_system.py win32|darwin|linux [-BLOCKED_MODULE …] -- ARGUMENTS [+ ARGUMENTS …]

Several commands run one after another, with a line `exit code N` after each on both streams.

What python itself and the libraries choose by the platform is imported before: the code under test is ours.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import signal
import socket
import sys

_UNIX_MODULES = ("fcntl", "termios", "pwd", "grp", "resource", "tty", "pty", "syslog")
_UNIX_NAMES = (
    "fork", "forkpty", "register_at_fork", "getuid", "geteuid", "setuid", "getgid", "setsid", "killpg", "getpgid", "mkfifo", "uname",
    "O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK", "statvfs", "chown", "openpty", "pread", "pwrite", "sysconf", "getloadavg",
)  # fmt: skip
_LINUX_NAMES = (
    "memfd_create", "MFD_CLOEXEC", "MFD_ALLOW_SEALING", "pidfd_open", "setns", "unshare", "copy_file_range", "posix_fadvise", "eventfd",
    "splice", "O_PATH", "sched_getaffinity", "getrandom", "listxattr", "getxattr", "setresuid", "P_PIDFD",
)  # fmt: skip
_LIBRARIES = (
    "asyncio", "subprocess", "tempfile", "shutil", "platform", "ssl", "sqlite3", "getpass", "ctypes", "multiprocessing.util", "typer",
    "rich.console", "rich.live", "rich.text", "prompt_toolkit", "pydantic", "aiohttp", "keyring", "importlib.metadata",
    "jsonschema", "PIL.Image", "zipfile", "http.client", "urllib.request", "genai_prices",
)  # fmt: skip


def become(system: str) -> None:
    """Make this process look like one on that system."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    gone = {"linux": (), "darwin": _LINUX_NAMES, "win32": (*_LINUX_NAMES, *_UNIX_NAMES)}[system]
    for name in gone:
        if hasattr(os, name):
            delattr(os, name)
    if system != "linux":
        for name in ("F_OFD_SETLK", "F_OFD_GETLK", "F_OFD_SETLKW"):
            if hasattr(fcntl, name):
                delattr(fcntl, name)
        del signal.pidfd_send_signal
        del socket.SO_PEERCRED
    if system == "win32":
        block(_UNIX_MODULES)
        del socket.AF_UNIX
    sys.platform = system


def block(names: tuple[str, ...] | list[str]) -> None:
    """Have these modules, and all below them, be missing."""
    for name in names:
        for loaded in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
            del sys.modules[loaded]
        sys.modules[name] = None


def main() -> int:
    system, *rest = sys.argv[1:]
    blocked, arguments = rest[: rest.index("--")], rest[rest.index("--") + 1 :]
    become(system)
    block([name.removeprefix("-") for name in blocked])
    if "+" not in arguments:
        return _run(arguments)
    while arguments:
        end = arguments.index("+") if "+" in arguments else len(arguments)
        code = _run(arguments[:end])
        arguments = arguments[end + 1 :]
        for stream in (sys.stdout, sys.stderr):
            print(f"exit code {code}", file=stream, flush=True)
    return 0


def _run(arguments: list[str]) -> int:
    sys.argv = ["handwork", *arguments]
    from handwork.__main__ import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
