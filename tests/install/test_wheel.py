from __future__ import annotations

import email
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from tests.architecture.repository import tracked_files

ROOT = Path(__file__).resolve().parents[2]
ABOUT = f"handwork-{tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']['version']}.dist-info"


def build(source: Path, out: Path) -> tuple[Path, Path]:
    """The sdist and the wheel of a source folder, as `make wheel` builds them."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(out)]
    ended = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return next(out.glob("*.tar.gz")), next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's files as a checkout has them: other tests may be changing this one."""
    copy = tmp_path_factory.mktemp("source")
    for path in tracked_files(ROOT):
        target = copy / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return copy


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(source, tmp_path_factory.mktemp("dist"))


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_the_package_its_prompts_its_types_and_the_licence_and_nothing_else(
    source: Path, built: tuple[Path, Path]
) -> None:
    held = names(built[1])
    package = {
        path.relative_to(source / "src").as_posix()
        for path in (source / "src/handwork").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    about = {name for name in held if name.startswith(f"{ABOUT}/")}
    assert held - about == package
    assert {"handwork/py.typed", "handwork/__init__.pyi", "handwork/agent/prompts/manus_system.md"} <= held
    assert {name.partition("/")[2] for name in about} == {
        "METADATA",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
        "licenses/LICENSE",
    }


def test_the_sdist_holds_what_the_wheel_is_built_of_and_no_tests(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {name for name in held if not name.startswith("src/handwork/")} <= {
        ".gitignore",
        "CHANGELOG.md",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
    }
    assert {name.removeprefix("src/") for name in held if name.startswith("src/")} == {
        name for name in names(built[1]) if not name.startswith("handwork-")
    }


def test_the_same_files_give_the_same_bytes_also_from_the_sdist(
    source: Path, built: tuple[Path, Path], tmp_path: Path
) -> None:
    for path in source.rglob("*"):
        path.chmod(path.stat().st_mode & ~0o022)  # another umask
    again = build(source, tmp_path / "again")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in built]
    (tmp_path / "unpacked").mkdir()
    subprocess.run(["tar", "-xzf", built[0], "-C", tmp_path / "unpacked"], check=True)
    unpacked = next((tmp_path / "unpacked").iterdir())
    assert build(unpacked, tmp_path / "third")[1].read_bytes() == built[1].read_bytes()


def test_the_wheel_says_what_it_needs_and_what_its_page_shows(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as archive:
        said = email.message_from_bytes(archive.read(f"{ABOUT}/METADATA"))
        entries = archive.read(f"{ABOUT}/entry_points.txt").decode()
    assert said["Requires-Python"] == ">=3.11"
    assert said["License-Expression"] == "MIT"
    assert said["Description-Content-Type"] == "text/markdown"
    assert {"local", "sandbox", "keyring"} <= set(said.get_all("Provides-Extra", []))
    assert not [needed for needed in said.get_all("Requires-Dist", []) if " @ " in needed]
    assert "handwork = handwork.__main__:main" in entries
