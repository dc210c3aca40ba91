"""The Makefile's own logic and the bound of .ci/run, on a copy in a folder where nothing is really installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_STAMPS = (".venv/.runtime", ".venv/.dev")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose `pip` is a program that notes what it is asked for, and fails if it runs twice at a time."""
    for name in ("Makefile", ".ci/run", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(_ROOT / name, tmp_path / name)
    (tmp_path / "requirements").mkdir()
    for name in ("local", "dev", "openmp", "build"):
        (tmp_path / "requirements" / f"{name}.txt").touch()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    pip = tmp_path / "pip"
    pip.write_text(
        '#!/bin/sh\necho "$@" >>asked; mkdir busy || exit 1; sleep 0.2; rmdir busy\ncase "$*" in *$FAIL*) exit 1; esac\n'
    )
    pip.chmod(0o755)
    return tmp_path


def _make(checkout: Path, *arguments: str, fail: str = "nothing") -> subprocess.CompletedProcess[str]:
    command = ["make", "--no-print-directory", "USABLE=true", "INSTALL=./pip", *arguments]
    environment = {"PATH": os.environ["PATH"], "FAIL": fail}
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=60)


def test_an_openmp_library_that_is_lacking_and_cannot_be_installed_is_a_failure(checkout: Path) -> None:
    for stamp in _STAMPS:
        assert _make(checkout, "LACKS_OPENMP=echo yes", stamp, fail="openmp.txt").returncode != 0
        assert not (checkout / stamp).exists()
        assert _make(checkout, "LACKS_OPENMP=echo yes", stamp).returncode == 0
        assert (checkout / stamp).exists()


def test_an_openmp_library_is_not_asked_for_where_it_is_there_or_not_offered(checkout: Path) -> None:
    for stamp in _STAMPS:
        assert _make(checkout, "LACKS_OPENMP=echo no", stamp, fail="openmp.txt").returncode == 0
    assert "openmp" not in (checkout / "asked").read_text()


def test_not_to_know_whether_an_openmp_library_is_lacking_is_a_failure(checkout: Path) -> None:
    for stamp in _STAMPS:
        assert _make(checkout, "LACKS_OPENMP=false", stamp).returncode != 0


def test_this_machine_is_asked_for_its_openmp_library_without_an_error(checkout: Path) -> None:
    (checkout / "Makefile").write_text((checkout / "Makefile").read_text() + "\nask:\n\t@$(LACKS_OPENMP)\n")
    asked = _make(checkout, "ask", f"BIN={Path(sys.prefix, 'bin')}")
    assert asked.stdout in ("yes\n", "no\n"), asked.stderr


def test_two_installations_never_run_at_a_time(checkout: Path) -> None:
    made = _make(checkout, "-j4", "LACKS_OPENMP=echo yes", *_STAMPS)
    assert made.returncode == 0, made.stderr
    assert len((checkout / "asked").read_text().splitlines()) == 6


def test_a_check_that_hangs_is_stopped_and_said_and_the_others_run(checkout: Path) -> None:
    programs = checkout / "programs"
    programs.mkdir()
    for name in ("git", "openssl", "bwrap", "tmux", "zsh", "fish", "python3", "apt-get"):
        (programs / name).symlink_to("/bin/true")
    (programs / "make").write_text(
        '#!/bin/sh\necho "made $1"; case $1 in test) exit 1;; test-slow) exec sleep 60; esac\n'
    )
    (programs / "make").chmod(0o755)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "CI_SECONDS": "4"}
    command = ["bash", str(checkout / ".ci" / "run")]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=40)
    assert ended.returncode == 1
    assert ended.stdout.split("\n")[:3] == ["made test", "made check", "made test-slow"]
    assert "make test-slow was stopped: the whole check may take 4 seconds" in ended.stderr
    assert "Failed: test test-slow" in ended.stderr
