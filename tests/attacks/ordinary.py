"""An ordinary user for whom root runs a test: a Python, our package and what it needs, where everybody may read them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Self

import pytest
from packaging.requirements import Requirement

_USER = 61_235
_HERE = Path(__file__).parents[2]


class Everyman:
    """A venv of the system's Python in a folder for all, and `work`, a folder of the user's own. Skips where there is no such Python."""

    def __init__(self) -> None:
        self._python = f"/usr/bin/python3.{sys.version_info.minor}"
        if not Path(self._python).exists():
            pytest.skip(f"there is no {self._python} that everybody may run")
        self.folder = Path(tempfile.mkdtemp(prefix="handwork-everyman-"))
        self.work = self.folder / "work"

    def __enter__(self) -> Self:
        self.folder.chmod(0o755)
        self.work.mkdir()
        os.chown(self.work, _USER, _USER)
        subprocess.run([self._python, "-m", "venv", "--without-pip", self._venv], check=True)
        site = self._venv / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
        for found in _needed("handwork", {}).values():
            for file in found.files or ():
                source, place = Path(str(found.locate_file(file))), site / str(file)
                if place.resolve().is_relative_to(site) and source.is_file() and source.suffix != ".pyc":
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, place)
        ours = shutil.ignore_patterns("__pycache__")
        shutil.copytree(_HERE / "src" / "handwork", site / "handwork", ignore=ours)
        for name in ("attacks", "__init__.py"):
            source = _HERE / "tests" / name
            place = self.folder / "tests" / name
            shutil.copytree(source, place, ignore=ours) if source.is_dir() else shutil.copy(source, place)
        return self

    def __exit__(self, *_exc: object) -> None:
        shutil.rmtree(self.folder)

    @property
    def _venv(self) -> Path:
        return self.folder / "venv"

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.work), "LANG": "C.UTF-8"}

    def command(self, *arguments: str) -> list[str]:
        """The command line that runs this Python as that user."""
        rights = ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups"]
        return [*rights, str(self._venv / "bin" / "python"), *arguments]


def _needed(name: str, found: dict[str, Distribution]) -> dict[str, Distribution]:
    """The distributions that one needs to run, without its extras."""
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name not in found:
            found[requirement.name] = distribution(requirement.name)
            _needed(requirement.name, found)
    return found
