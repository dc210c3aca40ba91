"""Copies of protected files: bounded in every direction, and what is left out is known."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handwork.sandbox import beneath, keepsakes
from handwork.sandbox.keepsakes import Keepsakes


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    fd = beneath.open_folder(tmp_path)
    yield fd
    os.close(fd)


def test_what_is_changed_removed_or_new_is_found_and_put_back(tmp_path: Path, root: int) -> None:
    (tmp_path / "kept" / "below").mkdir(parents=True)
    (tmp_path / "kept" / "below" / "file").write_text("old")
    (tmp_path / "kept" / "link").symlink_to("below")
    kept = Keepsakes(root)
    kept.keep("kept")
    assert kept.changed() == []
    (tmp_path / "kept" / "below" / "file").write_text("changed")
    (tmp_path / "kept" / "new").write_text("")
    (tmp_path / "kept" / "link").unlink()
    assert sorted(kept.changed()) == ["kept/below/file", "kept/link", "kept/new"]
    (tmp_path / "kept" / "new").unlink()
    (tmp_path / "kept" / "below" / "file").unlink()
    kept.put_back("kept/below/file")
    kept.put_back("kept/link")
    assert kept.changed() == []


def test_a_folder_of_any_depth_is_kept_as_far_as_it_is_sensible(tmp_path: Path, root: int) -> None:
    inner = os.dup(root)
    for _ in range(300):
        os.mkdir("a", dir_fd=inner)
        below = os.open("a", os.O_PATH, dir_fd=inner)
        os.close(inner)
        inner = below
    os.close(inner)
    kept = Keepsakes(root)
    kept.keep("a")
    assert 50 < len(kept) < 100
    assert len(kept.too_large) == 1
    assert kept.changed() == []


def test_all_together_take_a_bounded_part_of_our_memory(tmp_path: Path, root: int) -> None:
    (tmp_path / "many").mkdir()
    for number in range(100):
        (tmp_path / "many" / f"{number}").touch()
        os.truncate(tmp_path / "many" / f"{number}", 1 << 20)
    kept = Keepsakes(root)
    kept.keep("many")
    assert len(kept) == 1 + 32
    assert len(kept.too_large) == 68
    assert kept.changed() == []


def test_a_folder_with_too_many_names_is_told_and_what_is_new_there_is_not(
    tmp_path: Path, root: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keepsakes, "_MOST", 10)
    (tmp_path / "wide").mkdir()
    for number in range(20):
        (tmp_path / "wide" / f"{number}").touch()
    kept = Keepsakes(root)
    kept.keep("wide")
    assert (len(kept), kept.too_large, kept.changed()) == (1, ["wide"], [])
