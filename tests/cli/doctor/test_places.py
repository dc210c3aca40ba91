"""Folders, disk and store: what cannot be used is said, with what to do."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.cli.doctor.conftest import MakeGround

from handwork.cli.doctor import places, storage
from handwork.cli.doctor.finding import Finding
from handwork.store.sqlite import Store


def _of(found: list[Finding], id: str) -> Finding:
    return next(each for each in found if each.id == id)


@pytest.mark.parametrize("folder", ["/proc/handwork", "/dev/null/handwork"])
def test_a_home_that_cannot_be_written_is_a_problem(folder: str, ground: MakeGround) -> None:
    here = ground(HANDWORK_HOME=folder)
    found = _of(list(places.home(here)), "home.data")
    assert (found.status, found.essential) == ("problem", True)
    assert "HANDWORK_HOME" in found.fix
    stored = _of(list(storage.store(here)), "store")
    assert (stored.status, stored.essential) == ("problem", True)
    assert "HANDWORK_HOME" in stored.fix


def test_files_with_keys_that_others_can_read_are_told(home: Path, ground: MakeGround) -> None:
    for name, mode in (("config.toml", 0o644), ("mcp.json", 0o600), ("keys.json", 0o640)):
        (home / name).write_text("" if name.endswith("toml") else '{"mcpServers": {}}')
        (home / name).chmod(mode)
    found = {each.id: each for each in places.home(ground())}
    assert found["home.config.toml"].status == found["home.keys.json"].status == "warning"
    assert found["home.config.toml"].fix == f"chmod 600 {home / 'config.toml'}"
    assert "home.mcp.json" not in found


@pytest.mark.parametrize(("file", "id"), [("approvals.toml", "home.approvals"), ("trusted.json", "home.trusted")])
def test_a_record_of_answers_that_keeps_runs_from_starting_is_a_problem(
    home: Path, ground: MakeGround, file: str, id: str
) -> None:
    here = ground()
    assert list(places.answers(here)) == []
    (home / file).write_text("garbage [")
    (home / file).chmod(0o600)
    (found,) = places.answers(here)
    assert (found.id, found.status, found.essential) == (id, "problem", True)
    assert str(home / file) in found.text
    assert "delete" in found.fix


def test_a_workspace_that_can_be_none_is_told_with_another_way(ground: MakeGround, home: Path) -> None:
    here = ground()
    for folder in (Path("/etc"), home / "inside"):
        folder.mkdir(exist_ok=True)
        (found,) = places.workspace(type(here)(here.settings, folder))
        assert found.status == "warning"
        assert "--workspace" in f"{found.text} {found.fix}"


def test_little_space_is_a_warning_and_none_a_problem(
    ground: MakeGround, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type(shutil.disk_usage(home))
    for free, status in ((5 << 30, "ok"), (300 << 20, "warning"), (1 << 20, "problem")):
        monkeypatch.setattr(shutil, "disk_usage", lambda path, free=free: usage(10 << 30, 0, free))
        found = list(places.disk(ground()))
        assert {each.status for each in found} == {status}
        assert all(bool(each.fix) == (status != "ok") for each in found)


def test_a_store_is_looked_at_without_being_made_or_changed(home: Path, ground: MakeGround) -> None:
    here = ground()
    assert "none yet" in _of(list(storage.store(here)), "store").text
    assert list(home.iterdir()) == []
    Store.open(home / "store.db").close()
    before = (home / "store.db").read_bytes()
    found = _of(list(storage.store(here)), "store")
    assert found.status == "ok"
    assert "whole, 0 sessions" in found.text
    assert (home / "store.db").read_bytes() == before


def test_a_store_that_others_have_open_is_looked_at_too(home: Path, ground: MakeGround) -> None:
    store = Store.open(home / "store.db")
    try:
        assert _of(list(storage.store(ground())), "store").status == "ok"
    finally:
        store.close()


@pytest.mark.parametrize(
    ("damage", "said", "fix"),
    [
        ("page", "damaged", "backup"),
        ("head", "damaged", "backup"),
        ("newer", "version 99", "update Handwork"),
        ("other", "another program's", "another path"),
        ("folder", "unable to open", "HANDWORK_HOME"),
    ],
)
def test_a_store_that_cannot_be_used_is_a_problem_and_stays_as_it_is(
    damage: str, said: str, fix: str, home: Path, ground: MakeGround
) -> None:
    path = home / "store.db"
    if damage == "folder":
        path.mkdir()
    else:
        Store.open(path).close()
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            if damage == "newer":
                connection.execute("PRAGMA user_version = 99")
            if damage == "other":
                connection.execute("PRAGMA application_id = 7")
            if damage == "page":
                connection.executemany("INSERT INTO blobs VALUES (?, ?)", [(f"h{n}", b"x" * 900) for n in range(200)])
        connection.close()
        data = bytearray(path.read_bytes())
        if damage == "head":
            data[:100] = os.urandom(100)
        if damage == "page":
            data[8192 : 8192 + 4096] = b"\xff" * 4096
        path.write_bytes(data)
        before = bytes(data)
    found = _of(list(storage.store(ground())), "store")
    assert (found.status, found.essential) == ("problem", True)
    assert said in found.text
    assert fix in found.fix
    if damage not in ("folder", "other", "newer"):
        assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/people/jo/x", "nfs4"),
        ("/people/jolly", "ext4"),
        ("/mnt/with space/x", "fuse.sshfs"),
        ("/proc/1", "proc"),
    ],
)
def test_the_file_system_of_a_path_is_that_of_the_deepest_mount(path: str, kind: str, tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "30 22 0:40 / /people/jo rw shared:2 - nfs4 server:/export rw\n"
        "31 22 0:41 / /mnt/with\\040space rw - fuse.sshfs me@there: rw\n"
        "32 22 0:42 / /proc rw - proc proc rw\n"
    )
    assert storage.file_system(Path(path), table) == kind
    assert storage.file_system(Path(path), tmp_path / "none") == ""
