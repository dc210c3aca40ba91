"""Moving what a program made out of a workspace, while it plays with links and folders: nothing else is ever touched."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from handwork.sandbox import beneath


class Bench:
    """A workspace, something beside it that must stay as it is, and a place to move to."""

    def __init__(self, base: Path) -> None:
        self.space, self.outside, self.aside = base / "space", base / "outside", base / "aside"
        for folder in (self.space, self.outside, self.aside):
            folder.mkdir()
        (self.outside / "secret").write_text("secret")
        self.root = beneath.open_folder(self.space)

    @property
    def is_whole(self) -> bool:
        return [path.name for path in self.outside.iterdir()] == ["secret"] and (
            self.outside / "secret"
        ).read_text() == "secret"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    os.close(bench.root)


def test_a_link_is_moved_and_not_what_it_leads_to(bench: Bench) -> None:
    (bench.space / "x").symlink_to(bench.outside)
    beneath.move_out(bench.root, "x", bench.aside / "x")
    assert (bench.aside / "x").is_symlink()
    assert bench.is_whole


@pytest.mark.parametrize("path", ["way/secret", "way/deep/er", "../outside/secret", "a/../../outside/secret"])
def test_no_path_leads_out(bench: Bench, path: str) -> None:
    (bench.space / "way").symlink_to(bench.outside)
    (bench.space / "a").mkdir()
    with pytest.raises(OSError, match=r"."):
        beneath.move_out(bench.root, path, bench.aside / "x")
    with pytest.raises(OSError, match=r"."):
        beneath.write(bench.root, path, b"evil", 0o600)
    assert beneath.look(bench.root, path) is None
    assert beneath.read(bench.root, path, 100) is None
    assert beneath.names(bench.root, path) == []
    assert beneath.present(bench.root, path, ["secret"]) == []
    assert bench.is_whole


@pytest.mark.parametrize("part", ["space", "link", "file"])
def test_a_folder_is_opened_by_exactly_its_path(tmp_path: Path, part: str) -> None:
    (tmp_path / "space" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("space")
    (tmp_path / "file").touch()
    if part == "space":
        os.close(beneath.open_folder(tmp_path / part / "inner"))
        return
    with pytest.raises(OSError, match=r".") as caught:
        beneath.open_folder(tmp_path / part / "inner")
    assert caught.value.errno in (errno.ENOTDIR, errno.ELOOP)


_SWAP = """
import os, sys
space, outside = sys.argv[1:]
os.chdir(space)
print("on", flush=True)
while os.path.exists("go"):
    for step in (lambda: os.rename("way", "kept"), lambda: os.symlink(outside, "way"), lambda: os.unlink("way"),
                 lambda: os.rename("kept", "way"), lambda: open("way/secret", "w").close()):
        try:
            step()
        except OSError:
            pass
"""


def test_a_folder_that_is_swapped_with_a_link_all_the_time_never_leads_out(bench: Bench) -> None:
    (bench.space / "way").mkdir()
    (bench.space / "go").touch()
    moved = 0
    command = [sys.executable, "-c", _SWAP, str(bench.space), str(bench.outside)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapping:
        try:
            assert swapping.stdout is not None
            assert swapping.stdout.readline() == b"on\n"
            for number in range(4000):
                try:
                    beneath.move_out(bench.root, "way/secret", bench.aside / str(number))
                except OSError:
                    continue
                moved += 1
                if moved > 50:
                    break
        finally:
            (bench.space / "go").unlink()
    assert bench.is_whole
    assert moved
    assert {path.read_text() for path in bench.aside.iterdir()} == {""}


def test_a_file_is_written_in_place_of_a_link_and_never_through_it(bench: Bench) -> None:
    (bench.space / "x").symlink_to(bench.outside / "secret")
    beneath.write(bench.root, "x", b"good", 0o640)
    assert not (bench.space / "x").is_symlink()
    assert (bench.space / "x").read_bytes() == b"good"
    assert (bench.space / "x").stat().st_mode & 0o777 == 0o640
    assert [path.name for path in bench.space.iterdir()] == ["x"]
    assert bench.is_whole
