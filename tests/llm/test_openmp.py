"""llama.cpp finds an OpenMP library on machines that have none under GNU's name."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from handwork.errors import ConfigError
from handwork.llm.local.openmp import load_openmp

NAME = "libhandwork-nowhere.so.7"


def some_library() -> Path:
    """A shared object that certainly loads: one that this process has loaded."""
    maps = Path("/proc/self/maps").read_text().split()
    return next(Path(part) for part in maps if "/libc.so" in part or "/libc-" in part)


def test_a_library_of_another_name_stands_in_for_the_missing_one(tmp_path: Path) -> None:
    packaged = tmp_path / "cmeel.prefix/lib/libgomp.so.1"
    packaged.parent.mkdir(parents=True)
    packaged.symlink_to(some_library())
    program = (
        "import ctypes, sys\nfrom handwork.llm.local.openmp import load_openmp\n"
        f"try: ctypes.CDLL({NAME!r})\nexcept OSError: print('missing')\n"
        f"load_openmp({NAME!r}, ['/nonexistent', sys.argv[1]])\nctypes.CDLL({NAME!r})\nprint('there')"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == ["missing", "there"]


def test_without_any_the_error_names_the_one_line_that_helps(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs libhandwork-nowhere\.so\.7.*– apt-get install libgomp1"):
        load_openmp(NAME, [str(tmp_path)])


def test_a_broken_file_is_told_and_not_a_crash(tmp_path: Path) -> None:
    packaged = tmp_path / "cmeel.prefix/lib/libgomp.so.1"
    packaged.parent.mkdir(parents=True)
    packaged.write_bytes(b"\x7fELF nonsense")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        load_openmp(NAME, [str(tmp_path)])


def test_a_library_that_the_system_has_is_used_as_it_is(tmp_path: Path) -> None:
    name = some_library().name
    load_openmp(name, [])
    assert ctypes.CDLL(name)
