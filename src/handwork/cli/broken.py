"""What is said where a part of the installation is missing; imported before anything else can be relied on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_OURS = "handwork"


def missing_part(error: ImportError) -> tuple[str, str] | None:
    """What happened and what to do; None for an import within Handwork that fails by a mistake of ours."""
    name = error.name or ""
    if name.partition(".")[0] == _OURS:
        return None
    if name.partition(".")[0] in sys.stdlib_module_names:
        what = f"this Python lacks its own module {name} ({error})"
        return what, "install Python whole (on Debian and Ubuntu: python3-full), or use another one"
    return f"a package that Handwork needs is missing or broken: {error}", f"install Handwork anew: `{_anew()}`"


def _anew() -> str:
    """The command of the installer that Handwork came with."""
    # access() never raises, whatever it may not look into
    if os.access(Path(sys.prefix, "pipx_metadata.json"), os.F_OK):
        return "pipx reinstall handwork"
    if os.access(Path(sys.prefix, "uv-receipt.toml"), os.F_OK):
        return "uv tool install --reinstall handwork"
    return f"{sys.executable} -m pip install --force-reinstall handwork"


def unsupported_system(platform: str) -> tuple[str, str] | None:
    """What to say where Handwork does not run at all; None where it does, as far as it does."""
    if platform in ("win32", "cygwin"):
        what = "Windows itself is not supported: the agent's tools run in a Linux sandbox"
        return what, "use WSL2: `wsl --install`, then install Handwork in its Linux and start it there"
    if platform in ("emscripten", "wasi"):
        return f"Handwork does not run on {platform}", "use Linux, or a Linux machine or container"
    return None


def two_lines(what: str, hint: str) -> str:
    """As every error of the command line looks."""
    return f"handwork: {what}\n→ {hint}"
