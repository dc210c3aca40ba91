from __future__ import annotations

import os
import random
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.powers import bound_by_permissions

from handwork.cli.undo import copies as undo_copies
from handwork.cli.undo import watch as undo_watch
from handwork.cli.undo.entries import Entry
from handwork.cli.undo.undo import Undo

Shape = dict[str, tuple[object, ...]]


class Bench:
    """A workspace with something in it, and its undo."""

    def __init__(self, base: Path) -> None:
        self.space, self.folder = base / "space", base / "data" / "undo" / "one"
        self.space.mkdir()
        self.told: list[str] = []
        self.undo = self.another()

    def another(self, **more: object) -> Undo:
        private = (self.folder.parent.parent,)
        return Undo(self.space, self.folder, lambda level, text: self.told.append(text), private)

    def step(self, work: Callable[[], object]) -> None:
        self.undo.before_step()
        work()
        self.undo.after_step()

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.space / name).write_text(text)

    def text(self, name: str) -> str:
        return (self.space / name).read_text()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.undo.close()


def shape(root: Path) -> Shape:
    """Kind, mode and content of everything below; a file's time, too."""
    found: Shape = {}
    for path in sorted(root.rglob("*")):
        status, name = path.lstat(), str(path.relative_to(root))
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        elif path.is_dir():
            found[name] = ("folder", stat.S_IMODE(status.st_mode))
        elif path.is_file():
            found[name] = ("file", stat.S_IMODE(status.st_mode), path.read_bytes(), status.st_mtime_ns)
        else:
            found[name] = ("other",)
    return found


def test_changed_made_and_deleted_files_come_back_with_mode_and_time(bench: Bench) -> None:
    bench.write(a="one", b="two", c="three")
    (bench.space / "b").chmod(0o755)
    os.utime(bench.space / "b", (1000, 1000))
    before = shape(bench.space)

    def work() -> None:
        bench.write(a="ONE", new="x")
        (bench.space / "b").unlink()
        (bench.space / "deep/er").mkdir(parents=True)
        (bench.space / "deep/er/made").write_text("y")

    bench.step(work)
    undone = bench.undo.undo()
    assert set(undone.files) == {"a", "b", "new", "deep", "deep/er", "deep/er/made"}
    assert undone.skipped == ()
    assert shape(bench.space) == before


def test_undo_goes_back_step_by_step_over_those_that_changed_nothing(bench: Bench) -> None:
    bench.write(a="1")
    bench.step(lambda: bench.write(a="2"))
    bench.step(lambda: bench.write(b="new"))
    bench.step(lambda: None)
    assert bench.undo.undo().files == ("b",)
    assert bench.text("a") == "2"
    assert bench.undo.undo().files == ("a",)
    assert bench.text("a") == "1"
    assert bench.undo.undo().why == "no step has changed a file"


def test_what_a_person_changed_before_the_step_stays(bench: Bench) -> None:
    bench.write(a="1", b="1")
    bench.step(lambda: bench.write(a="2"))
    bench.write(b="mine", c="mine")
    bench.step(lambda: bench.write(a="3"))
    bench.undo.undo()
    assert (bench.text("a"), bench.text("b"), bench.text("c")) == ("2", "mine", "mine")


def test_what_a_person_changed_after_the_step_is_named_and_left_alone(bench: Bench) -> None:
    bench.write(a="1", b="1", gone="1")
    bench.step(lambda: (bench.write(a="2", b="2", made="2"), (bench.space / "gone").unlink()))
    bench.write(a="mine", made="mine", gone="mine")
    undone = bench.undo.undo()
    assert undone.files == ("b",)
    assert dict(undone.skipped) == dict.fromkeys(["a", "gone", "made"], "it was changed after the step")
    assert [bench.text(name) for name in ("a", "gone", "made", "b")] == ["mine", "mine", "mine", "1"]


def test_a_file_that_was_only_touched_after_the_step_is_put_back(bench: Bench) -> None:
    bench.write(a="1")
    bench.step(lambda: bench.write(a="2"))
    os.utime(bench.space / "a", (5, 5))
    assert bench.undo.undo().files == ("a",)
    assert bench.text("a") == "1"


def test_a_change_of_the_same_size_within_one_tick_of_the_clock_is_seen(bench: Bench) -> None:
    for turn in range(50):
        bench.write(a=f"{turn:02}")
        os.utime(bench.space / "a", (1, 1))
        bench.step(lambda: (bench.write(a="xx"), os.utime(bench.space / "a", (1, 1))))
        assert bench.undo.undo().files == ("a",)
        assert bench.text("a") == f"{turn:02}"


def test_a_file_that_was_changed_just_now_is_read_again_at_the_next_look_whatever_its_times_say(bench: Bench) -> None:
    bench.write(a="1")
    status = (bench.space / "a").stat()
    assert not Entry.of(status).as_before(status)
    assert replace(Entry.of(status), fresh=False).as_before(status)


def test_links_come_back_as_links_and_are_never_followed(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("s")
    (bench.space / "link").symlink_to(outside)
    (bench.space / "other").symlink_to("nowhere")
    before = shape(bench.space)

    def work() -> None:
        (bench.space / "link").unlink()
        (bench.space / "link").write_text("a file now")
        (bench.space / "other").unlink()
        (bench.space / "other").symlink_to("elsewhere")
        (bench.space / "third").symlink_to(outside / "secret")
        (outside / "secret").write_text("changed")

    bench.step(work)
    assert set(bench.undo.undo().files) == {"link", "other", "third"}
    assert shape(bench.space) == before
    assert (outside / "secret").read_text() == "changed"


def test_a_folder_that_became_a_link_leads_undo_nowhere(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("changed", "made", "deleted"):
        (outside / name).write_text("outside")
    folder = bench.space / "folder"
    folder.mkdir()
    bench.write(**{"folder/changed": "1", "folder/deleted": "1"})
    bench.step(lambda: (bench.write(**{"folder/changed": "2", "folder/made": "2"}), (folder / "deleted").unlink()))
    (outside / "changed").write_text("2")
    (outside / "made").write_text("2")
    (outside / "deleted").unlink()
    folder.rename(bench.space / "moved")
    folder.symlink_to(outside)
    undone = bench.undo.undo()
    assert undone.files == ()
    assert dict(undone.skipped) == dict.fromkeys(["folder/changed", "folder/deleted"], "its folder is gone")
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"changed": "2", "made": "2"}


def test_a_link_that_is_swapped_in_while_undo_works_leads_nowhere(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    names = [f"f{number}" for number in range(30)]
    for name in names:
        (outside / name).write_text("outside")
    folder, aside = bench.space / "folder", bench.space / "aside"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("1")
    bench.step(lambda: [(folder / name).write_text("2") for name in names])
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            folder.rename(aside)
            folder.symlink_to(outside)
            folder.unlink()
            aside.rename(folder)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        bench.undo.undo()
    finally:
        ended.set()
        swapper.join()
    assert {path.read_text() for path in outside.iterdir()} == {"outside"}
    assert {path.name for path in outside.iterdir()} == set(names)


def test_a_file_becomes_a_folder_and_back(bench: Bench) -> None:
    bench.write(thing="file")
    (bench.space / "box").mkdir()
    (bench.space / "box/in").write_text("in")
    before = shape(bench.space)

    def work() -> None:
        (bench.space / "thing").unlink()
        (bench.space / "thing/deep").mkdir(parents=True)
        (bench.space / "thing/deep/x").write_text("x")
        (bench.space / "box/in").unlink()
        (bench.space / "box").rmdir()
        (bench.space / "box").write_text("file")

    bench.step(work)
    assert bench.undo.undo().skipped == ()
    assert shape(bench.space) == before


def test_a_new_folder_with_a_persons_file_in_it_stays(bench: Bench) -> None:
    bench.step(lambda: ((bench.space / "new").mkdir(), bench.write(**{"new/made": "x"})))
    bench.write(**{"new/mine": "mine"})
    undone = bench.undo.undo()
    assert undone.files == ("new/made",)
    assert undone.skipped == (("new", "it holds other files"),)
    assert bench.text("new/mine") == "mine"


def test_bytecode_goes_with_the_new_package_that_it_was_made_of(bench: Bench) -> None:
    def work() -> None:
        (bench.space / "package/__pycache__").mkdir(parents=True)
        bench.write(**{"package/__init__.py": "", "package/__pycache__/__init__.cpython-311.pyc": "x"})

    bench.step(work)
    assert bench.undo.undo().skipped == ()
    assert list(bench.space.iterdir()) == []


def test_a_folder_that_the_step_closed_is_opened_again(bench: Bench) -> None:
    (bench.space / "box").mkdir(mode=0o750)
    bench.write(**{"box/in": "1"})
    before = shape(bench.space)
    bench.step(lambda: (bench.write(**{"box/in": "2", "box/new": "2"}), (bench.space / "box").chmod(0o500)))
    assert bench.undo.undo().skipped == ()
    assert shape(bench.space) == before


def test_what_could_not_be_seen_before_a_step_is_not_taken_for_made_by_it(bench: Bench) -> None:
    box = bench.space / "box"
    box.mkdir()
    bench.write(**{"box/mine": "mine", "shut": "mine"})
    box.chmod(0o000)
    (bench.space / "shut").chmod(0o000)
    with bound_by_permissions():
        bench.step(lambda: (box.chmod(0o755), (bench.space / "shut").chmod(0o644)))
        bench.undo.undo()
    box.chmod(0o755)
    assert bench.text("box/mine") == "mine"
    assert "not covered by /undo: shut (it could not be read)" in bench.told
    assert "not covered by /undo: box/ (it cannot be looked into)" in bench.told


def test_a_large_file_is_named_once_it_is_changed_and_goes_if_the_step_made_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = "x" * ((16 << 20) + 1)
    bench.write(old=large)
    bench.step(lambda: bench.write(a="x"))
    assert bench.told == []
    bench.step(lambda: bench.write(old=large + "y", new=large))
    bench.step(lambda: bench.write(old=large + "z"))
    assert bench.told == ["not covered by /undo: old (larger than 16 MB)"]
    assert bench.undo.undo().files == ("new",)


def test_a_small_file_that_a_step_made_large_comes_back(bench: Bench) -> None:
    bench.write(a="small")
    bench.step(lambda: os.truncate(bench.space / "a", 1 << 30))
    assert bench.undo.undo().files == ("a",)
    assert bench.text("a") == "small"


def test_a_change_of_a_repositorys_state_is_said_and_its_files_are_covered(bench: Bench) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *arguments], cwd=bench.space, check=True, capture_output=True)

    git("init", "-q")
    bench.write(a="1")
    git("add", "a")
    git("commit", "-q", "-m", "one")
    bench.step(lambda: (bench.write(a="2"), git("status")))
    assert bench.told == []
    bench.step(lambda: (bench.write(a="3"), git("commit", "-q", "-a", "-m", "two")))
    assert bench.told == ["not covered by /undo: .git (a repository's own state)"]
    assert bench.undo.undo().files == ("a",)
    assert bench.text("a") == "2"


@pytest.mark.parametrize("name", ["node_modules", ".venv", "__pycache__"])
def test_folders_that_tools_make_anew_are_left_alone(bench: Bench, name: str) -> None:
    (bench.space / name).mkdir()
    bench.write(**{f"{name}/a": "1"})
    bench.step(lambda: bench.write(**{f"{name}/a": "2"}))
    assert bench.undo.undo().files == ()
    assert bench.text(f"{name}/a") == "2"


def test_sockets_and_pipes_are_neither_opened_nor_in_the_way(bench: Bench) -> None:
    os.mkfifo(bench.space / "old-pipe")

    def work() -> None:
        os.mkfifo(bench.space / "pipe")
        (bench.space / "old-pipe").unlink()
        with socket.socket(socket.AF_UNIX) as server:
            here = Path.cwd()
            os.chdir(bench.space)  # a socket's name may be 107 bytes long
            try:
                server.bind("socket")
            finally:
                os.chdir(here)
        bench.write(a="x")

    bench.step(work)
    assert bench.told == ["not covered by /undo: old-pipe (no regular file)"]
    assert bench.undo.undo().files == ("a", "pipe", "socket")


def test_hard_links_come_back_each_with_its_content_and_that_is_said(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("1")
    os.link(outside, bench.space / "a")
    bench.step(lambda: bench.write(a="2"))
    assert bench.undo.undo().files == ("a",)
    assert (bench.text("a"), outside.read_text()) == ("1", "2")
    assert bench.told == ["not covered by /undo: a (it had several names, and is a file of its own now)"]


def test_names_that_are_no_unicode_and_names_with_newlines_work(bench: Bench) -> None:
    odd = [b"\xff\xfe", b"two\nlines", b"-rf", "é".encode(), b" "]
    for name in odd:
        Path(os.fsdecode(bytes(bench.space) + b"/" + name)).write_text("1")
    before = shape(bench.space)
    bench.step(lambda: [path.write_text("2") for path in list(bench.space.iterdir())])
    bench.undo.close()
    bench.undo = bench.another()
    undone = bench.undo.undo()
    assert sorted(undone.files) == sorted(name.decode(errors="replace") for name in odd)
    "".join(undone.files).encode()  # whatever stores or prints it can
    assert shape(bench.space) == before


def test_steps_outlive_the_program_and_only_what_they_need_stays_on_the_disk(bench: Bench) -> None:
    bench.write(a="1", b="unchanged", c="unchanged too")
    bench.step(lambda: bench.write(a="2"))
    bench.undo.close()
    assert len(list((bench.folder / "contents").iterdir())) == 1
    bench.undo = bench.another()
    assert bench.undo.undo().files == ("a",)
    assert bench.text("a") == "1"
    bench.undo.close()
    assert not bench.folder.exists()


def test_steps_of_a_program_that_was_killed_can_be_taken_back(bench: Bench) -> None:
    bench.write(a="1")
    code = (
        "import os, pathlib, sys; from handwork.cli.undo.undo import Undo;"
        "space, folder = map(pathlib.Path, sys.argv[1:]); undo = Undo(space, folder, print); undo.before_step();"
        "(space / 'a').write_text('2'); undo.after_step(); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, bench.space, bench.folder], check=False)
    with (bench.folder / "steps.jsonl").open("a") as file:
        file.write('{"a": [["fi')  # the next one was being written
    assert bench.undo.undo().files == ("a",)
    assert bench.text("a") == "1"


def test_steps_of_another_folder_of_the_same_name_are_not_taken_back(bench: Bench) -> None:
    bench.write(a="1")
    bench.step(lambda: bench.write(a="2"))
    bench.undo.close()
    bench.space.rename(bench.space.with_name("old"))
    bench.space.mkdir()
    bench.write(a="2")
    bench.undo = bench.another()
    assert bench.undo.undo().why == "no step has changed a file"
    assert bench.text("a") == "2"


def test_an_undo_that_broke_off_can_be_repeated(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"f{number}" for number in range(5)]
    bench.write(**dict.fromkeys(names, "1"))
    before = shape(bench.space)
    bench.step(lambda: bench.write(**dict.fromkeys(names, "2"), new="x"))
    full = threading.local()
    full.left = 3
    real = os.rename

    def rename(source: str, target: str, **folders: int) -> None:
        full.left -= 1
        if full.left == 0:
            raise OSError(28, "No space left on device")
        real(source, target, **folders)

    monkeypatch.setattr(os, "rename", rename)
    assert bench.undo.undo().why == "it broke off and can be repeated: No space left on device"
    undone = bench.undo.undo()
    assert (undone.skipped, undone.why) == ((), "")
    assert shape(bench.space) == before


def test_a_damaged_copy_is_said_and_never_written(bench: Bench) -> None:
    bench.write(a="1")
    bench.step(lambda: bench.write(a="2"))
    for path in (bench.folder / "contents").iterdir():
        path.write_text("wrong")
    assert bench.undo.undo().skipped == (("a", "its copy is damaged"),)
    assert bench.text("a") == "2"


def test_too_many_files_switch_it_off_with_one_notice(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo_watch, "MOST_THINGS", 3)
    bench.write(a="1", b="1", c="1", d="1")
    for _ in range(3):
        bench.step(lambda: bench.write(a="2"))
    assert bench.told == ["/undo is off for this workspace: it holds more than 3 files and folders"]
    assert bench.undo.undo().why == "undo is off: it holds more than 3 files and folders"
    assert not bench.folder.exists()


def test_too_many_bytes_switch_it_off(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo_watch, "MOST_BYTES", 1 << 20)
    bench.write(a="x" * (2 << 20))
    bench.step(lambda: None)
    assert bench.told == ["/undo is off for this workspace: its files are more than 1 MB"]


def test_a_full_disk_switches_it_off_and_gives_its_room_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write(a="1")
    bench.step(lambda: bench.write(a="2"))

    def full(fd: int, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(undo_copies, "write_all", full)
    monkeypatch.setattr(undo_copies, "_clone", lambda source, fd: False)
    bench.step(lambda: bench.write(a="3"))
    assert bench.told == ["/undo is off for this workspace: No space left on device"]
    assert not bench.folder.exists()
    assert bench.text("a") == "3"


def test_old_steps_go_when_there_are_too_many(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo_watch, "MOST_STEPS", 2)
    bench.write(a="0")
    for turn in "123":
        bench.step(lambda turn=turn: bench.write(a=turn))
    assert [bench.undo.undo().files for _ in range(3)] == [("a",), ("a",), ()]
    assert bench.text("a") == "1"


def test_a_workspace_that_holds_the_copies_does_not_copy_them(tmp_path: Path) -> None:
    told: list[str] = []
    undo = Undo(tmp_path, tmp_path / "data/undo/one", lambda level, text: told.append(text), (tmp_path / "data",))
    (tmp_path / "data").mkdir()
    (tmp_path / "data/store.db").write_text("1")
    (tmp_path / "a").write_text("1")
    undo.before_step()
    (tmp_path / "data/store.db").write_text("2")
    (tmp_path / "a").write_text("2")
    undo.after_step()
    assert undo.undo().files == ("a",)
    assert (tmp_path / "data/store.db").read_text() == "2"
    undo.close()


def test_a_workspace_that_was_replaced_switches_it_off(bench: Bench) -> None:
    bench.write(a="1")
    bench.step(lambda: bench.write(a="2"))
    bench.space.rename(bench.space.with_name("moved"))
    bench.space.mkdir()
    bench.step(lambda: None)
    assert bench.told == ["/undo is off for this workspace: the folder was moved or replaced"]


def test_a_second_program_in_the_same_conversation_goes_without(bench: Bench) -> None:
    bench.step(lambda: bench.write(a="1"))
    second = bench.another()
    second.before_step()
    assert bench.told == ["/undo is off for this workspace: another program works in this conversation"]
    second.close()
    assert bench.undo.undo().files == ("a",)


def test_copies_that_nobody_used_for_a_week_are_removed(bench: Bench) -> None:
    for name in ("old", "young"):
        (bench.folder.parent / name).mkdir(parents=True)
        (bench.folder.parent / name / "undo.lock").touch()
    (bench.folder.parent / "foreign").mkdir()
    for name in ("old", "foreign"):
        os.utime(bench.folder.parent / name, (1, 1))
    bench.undo.before_step()
    assert {path.name for path in bench.folder.parent.iterdir()} == {"one", "young", "foreign"}


def test_the_copies_are_private(bench: Bench) -> None:
    bench.write(a="1")
    bench.step(lambda: bench.write(a="2"))
    for path in (bench.folder, *bench.folder.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0 or path.parent == bench.folder


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_any_steps_on_any_tree_are_taken_back_exactly(seed: int) -> None:
    dice = random.Random(seed)
    with TemporaryDirectory() as base:
        bench = Bench(Path(base))
        for _ in range(dice.randrange(25)):
            _change(bench.space, dice)
        shapes = []
        for _ in range(dice.randrange(1, 5)):
            shapes.append(shape(bench.space))
            bench.step(lambda: [_change(bench.space, dice) for _ in range(dice.randrange(12))])
        if dice.random() < 0.3:
            bench.undo.close()
            bench.undo = bench.another()
        seen = shape(bench.space)
        while not (undone := bench.undo.undo()).why:
            assert undone.skipped == ()
            while shapes and _alike(shapes[-1], seen):
                shapes.pop()
            seen = shape(bench.space)
            assert _without_touched(seen) == _without_touched(shapes.pop())
        bench.undo.close()


def _alike(one: Shape, other: Shape) -> bool:
    return _without_touched(one) == _without_touched(other)


def _without_touched(found: Shape) -> Shape:
    return {name: what[:3] for name, what in found.items()}


def _change(root: Path, dice: random.Random) -> None:
    names = [str(path.relative_to(root)) for path in root.rglob("*") if not path.is_symlink()]
    folders = [root, *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())]
    path = root / dice.choice(names) if names and dice.random() < 0.6 else dice.choice(folders) / dice.choice("abcde")
    if path.is_symlink() or path.is_file():
        dice.choice([path.unlink, lambda: _write(path, dice), lambda: path.rename(root / f"moved{dice.random()}")])()
    elif path.is_dir():
        if not any(path.iterdir()):
            path.rmdir()
        elif dice.random() < 0.5:
            path.chmod(dice.choice([0o755, 0o700, 0o750]))
        else:
            path.rename(root / f"moved{dice.random()}")
    else:
        dice.choice(
            [path.mkdir, lambda: path.symlink_to(dice.choice(["a", "/etc", ".."])), lambda: _write(path, dice)]
        )()


def _write(path: Path, dice: random.Random) -> None:
    if path.is_symlink():
        path.unlink()
    path.write_bytes(dice.randbytes(dice.choice([0, 1, 3, 2000])))
    path.chmod(dice.choice([0o644, 0o600, 0o755]))
