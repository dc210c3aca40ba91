"""Installs a wheel as a user does, each time into an empty place, and runs the command that came of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OLDEST = (3, 11)


@dataclass(frozen=True)
class Installed:
    """`command` is the program, `packages` its site-packages, `seconds` what the installation took, `environ` the installer's."""

    command: Path
    packages: Path
    seconds: float
    environ: Mapping[str, str]

    @property
    def python(self) -> Path:
        return self.command.with_name("python")

    @property
    def megabytes(self) -> float:
        """Of all packages without compiled bytecode, the installer itself and what Python brings along left out."""
        files = (path for path in self.packages.rglob("*") if path.is_file() and path.suffix != ".pyc")
        brought = re.compile(r"(pip|setuptools|wheel|_distutils_hack|pkg_resources)(-.*)?$")
        kept = (path for path in files if not brought.match(path.relative_to(self.packages).parts[0]))
        return sum(path.stat().st_size for path in kept) / 1e6


def make_tools(folder: Path) -> Path:
    """An environment with pip, pipx and uv of the hashed releases; its folder of programs."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    command = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--require-hashes"]
    subprocess.run([*command, "-r", str(ROOT / "requirements/installers.txt")], check=True)
    return folder / "bin"


def constraints(folder: Path) -> Path:
    """The tested releases without their hashes: an installer would ask for the wheel's own then."""
    text = (ROOT / "requirements/core.txt").read_text()
    file = folder / "constraints.txt"
    file.write_text("".join(line.rstrip(" \\") + "\n" for line in text.splitlines() if "--hash" not in line))
    return file


def pythons() -> dict[str, str]:
    """Interpreters that there are, one a version: this one, and newer ones on PATH or made by pyenv."""
    found = {f"{sys.version_info[0]}.{sys.version_info[1]}": sys.executable}
    made = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    for minor in range(OLDEST[1], 20):
        name = f"python3.{minor}"
        for path in (shutil.which(name), *map(str, sorted(made.glob(f"3.{minor}.*/bin/{name}")))):
            if path and f"3.{minor}" not in found and _works(path):
                found[f"3.{minor}"] = path
    return found


def _works(python: str) -> bool:
    return subprocess.run([python, "-c", "import venv, ssl, sqlite3"], capture_output=True).returncode == 0


def install(installer: str, wheel: Path, place: Path, tools: Path, python: str) -> Installed:
    """Install by `pip`, `pipx` or `uv`; everything it writes lies below `place`."""
    environ = {
        **os.environ,
        "UV_SYSTEM_CERTS": "1",  # the machine's certificates, as pip takes them
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(place),
        "PIP_CONSTRAINT": str(constraints(place)),
        "UV_CONSTRAINT": str(constraints(place)),
        "PIPX_HOME": str(place / "pipx"),
        "PIPX_BIN_DIR": str(place / "bin"),
        "UV_TOOL_DIR": str(place / "uv"),
        "UV_TOOL_BIN_DIR": str(place / "bin"),
        "UV_PYTHON_DOWNLOADS": "never",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    if installer == "pip":
        subprocess.run([python, "-m", "venv", str(place / "own")], check=True)
    command = {
        "pip": [str(place / "own/bin/python"), "-m", "pip", "install", "--quiet", str(wheel)],
        "pipx": [str(tools / "pipx"), "install", "--python", python, str(wheel)],
        "uv": [str(tools / "uv"), "tool", "install", "--python", python, str(wheel)],
    }[installer]
    began = time.monotonic()
    ended = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert ended.returncode == 0, f"{installer}: {ended.stdout}\n{ended.stderr}"
    seconds = time.monotonic() - began
    program = (place / ("own/bin" if installer == "pip" else "bin") / "handwork").resolve()
    return Installed(program, next(program.parents[1].glob("lib/python3*/site-packages")), seconds, environ)
