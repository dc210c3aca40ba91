"""Files for people beside the store: safe names, each its own, found without counting from the start each time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from handwork.session.saving import Saving


def test_a_name_is_made_safe_and_no_file_is_written_over(tmp_path: Path) -> None:
    folder = tmp_path / "artifacts"
    saving = Saving(folder)
    (folder / "").mkdir()
    (folder / "a-2.txt").write_text("somebody's")
    names = [saving.save(name, b"x").name for name in ("a.txt", "a.txt", "../a b", "..", "a.txt")]
    assert names == ["a.txt", "a-3.txt", "_a_b", "artifact", "a-4.txt"]
    assert (folder / "a-2.txt").read_text() == "somebody's"
    assert Saving(folder).save("a.txt", b"x").name == "a-5.txt"


def test_a_free_name_is_found_at_once_however_many_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: Counter[str] = Counter()
    real = Path.exists

    def exists(path: Path) -> bool:
        looked[path.name] += 1
        return real(path)

    monkeypatch.setattr(Path, "exists", exists)
    saving = Saving(tmp_path)
    made = [saving.save("picture.png", b"x") for _ in range(300)]
    assert len(set(made)) == 300
    assert looked.total() < 2 * 300
