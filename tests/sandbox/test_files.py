"""Files through the sandbox: bytes, modes, links, errors, and nothing outside."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from pathlib import Path

import pytest

from handwork.sandbox.base import Entry
from handwork.sandbox.client import SupervisedSandbox

from .conftest import Opener


def _host_path(sandbox: SupervisedSandbox, name: str = "") -> Path:
    return Path(sandbox.workspace) / name


async def test_bytes_come_back_as_they_were_written_also_many(sandbox: SupervisedSandbox) -> None:
    data = os.urandom(1 << 20) * 30
    await sandbox.write("deep/er/file", data)
    assert await sandbox.read("deep/er/file") == data
    assert await sandbox.read(f"{sandbox.workspace}/deep/er/file", offset=5, limit=10) == data[5:15]
    assert await sandbox.read("deep/er/file", offset=len(data)) == b""
    await sandbox.write("empty", b"")
    assert await sandbox.read("empty") == b""


async def test_a_file_keeps_its_mode_unless_one_is_given(sandbox: SupervisedSandbox) -> None:
    await sandbox.write("script", b"1", mode=0o755)
    await sandbox.write("script", b"2")
    assert stat.S_IMODE(_host_path(sandbox, "script").stat().st_mode) == 0o755
    await sandbox.write("script", b"3", mode=0o600)
    assert stat.S_IMODE(_host_path(sandbox, "script").stat().st_mode) == 0o600
    await sandbox.write("plain", b"")
    assert stat.S_IMODE(_host_path(sandbox, "plain").stat().st_mode) & 0o111 == 0


async def test_exclusive_refuses_what_exists_even_a_dangling_link(sandbox: SupervisedSandbox) -> None:
    await sandbox.write("new", b"1", exclusive=True)
    with pytest.raises(FileExistsError, match="new"):
        await sandbox.write("new", b"2", exclusive=True)
    assert await sandbox.read("new") == b"1"
    _host_path(sandbox, "link").symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        await sandbox.write("link", b"2", exclusive=True)


async def test_a_file_that_somebody_else_changed_is_neither_replaced_nor_removed(sandbox: SupervisedSandbox) -> None:
    await sandbox.write("file", b"old")
    seen = hashlib.sha256(b"old").hexdigest()
    await sandbox.exec(["sh", "-c", "printf more >> file"])
    for act in (sandbox.write("file", b"mine", expected=seen), sandbox.remove("file", expected=seen)):
        with pytest.raises(OSError, match="changed meanwhile") as caught:
            await act
        assert caught.value.errno == errno.ESTALE
    assert await sandbox.read("file") == b"oldmore"
    now = hashlib.sha256(b"oldmore").hexdigest()
    await sandbox.write("file", b"mine", expected=now)
    assert await sandbox.read("file") == b"mine"
    await sandbox.remove("file", expected=hashlib.sha256(b"mine").hexdigest())
    with pytest.raises(OSError, match="gone"):
        await sandbox.write("file", b"mine", expected=now)
    assert await sandbox.list("") == []


async def test_a_write_gives_a_name_among_several_a_file_of_its_own(sandbox: SupervisedSandbox) -> None:
    await sandbox.write("one", b"old")
    _host_path(sandbox, "two").hardlink_to(_host_path(sandbox, "one"))
    assert await sandbox.stat("one") == Entry("", "file", 3, stat.S_IMODE(_host_path(sandbox, "one").stat().st_mode), 2)
    await sandbox.write("one", b"new")
    assert (await sandbox.read("one"), await sandbox.read("two")) == (b"new", b"old")


async def test_a_link_stays_and_its_target_is_written(sandbox: SupervisedSandbox) -> None:
    await sandbox.write("real", b"old")
    _host_path(sandbox, "link").symlink_to("real")
    await sandbox.write("link", b"new")
    assert _host_path(sandbox, "link").is_symlink()
    assert await sandbox.read("real") == b"new"
    _host_path(sandbox, "absolute").symlink_to(_host_path(sandbox, "real"))
    assert await sandbox.read("absolute") == b"new"


async def test_nothing_is_left_beside_a_file_that_could_not_be_written(sandbox: SupervisedSandbox) -> None:
    await sandbox.write("folder/file", b"")
    for path in ("folder", "folder/", "folder/file/below"):
        with pytest.raises((IsADirectoryError, NotADirectoryError)):
            await sandbox.write(path, b"x")
    assert [entry.path for entry in await sandbox.list("", depth=9)] == ["folder", "folder/file"]


async def test_errors_are_the_kernels_and_name_the_path_as_given(sandbox: SupervisedSandbox) -> None:
    await sandbox.write("folder/file", b"")
    for error, path in ((FileNotFoundError, "missing"), (IsADirectoryError, "folder"), (NotADirectoryError, "folder/file/x"),
                        (FileNotFoundError, "no/such/file"), (IsADirectoryError, ".")):  # fmt: skip
        with pytest.raises(error) as caught:
            await sandbox.read(path)
        assert caught.value.filename == path
    with pytest.raises(NotADirectoryError):
        await sandbox.list("folder/file")
    with pytest.raises(FileNotFoundError):
        await sandbox.list("missing")
    with pytest.raises(OSError, match="too long"):
        await sandbox.read("x" * 300)
    with pytest.raises(OSError, match="NUL"):
        await sandbox.read("a\0b")
    assert await sandbox.stat("x" * 300) is None
    assert await sandbox.stat("a\0b") is None


async def test_a_pipe_without_a_writer_does_not_hang(sandbox: SupervisedSandbox) -> None:
    await sandbox.exec(["mkfifo", "pipe"])
    with pytest.raises(PermissionError, match="regular"):
        await sandbox.read("pipe")
    with pytest.raises(PermissionError, match="regular"):
        await sandbox.write("pipe", b"x")
    assert await sandbox.stat("pipe") == Entry("", "other", 0, stat.S_IMODE(_host_path(sandbox, "pipe").stat().st_mode))


async def test_a_listing_is_sorted_and_as_deep_and_long_as_wanted(sandbox: SupervisedSandbox) -> None:
    for name in ("b/c/d", "a", ".hidden/x", "b/a"):
        await sandbox.write(name, b"12")
    _host_path(sandbox, "link").symlink_to("b")
    assert [entry.path for entry in await sandbox.list("")] == [".hidden", "a", "b", "link"]
    assert [entry.path for entry in await sandbox.list(".", depth=3, hidden=False)] == [
        "a",
        "b",
        "b/a",
        "b/c",
        "b/c/d",
        "link",
    ]
    assert [entry.path for entry in await sandbox.list("link")] == ["a", "c"]
    assert len(await sandbox.list("", depth=9, limit=3)) == 3
    kinds = {entry.path: (entry.kind, entry.size) for entry in await sandbox.list("")}
    assert kinds["a"] == ("file", 2)
    assert kinds["b"][0] == "directory"
    assert kinds["link"][0] == "symlink"


async def test_a_listing_of_thousands_comes_in_one_piece(sandbox: SupervisedSandbox) -> None:
    await sandbox.exec(["bash", "-c", "for i in {1..5000}; do : > a-file-with-a-rather-long-name-$i; done"])
    assert len(await sandbox.list("")) == 5000


async def test_names_of_any_bytes_survive(sandbox: SupervisedSandbox) -> None:
    for name in (os.fsdecode(b"\xff\xfe"), "tab\tand\nline", "ümläut", "-rf"):
        await sandbox.write(name, b"x")
        assert await sandbox.read(name) == b"x"
        assert name in [entry.path for entry in await sandbox.list("")]


async def test_stat_follows_links_and_says_none_for_nothing(sandbox: SupervisedSandbox) -> None:
    await sandbox.write("file", b"123", mode=0o640)
    _host_path(sandbox, "link").symlink_to("file")
    _host_path(sandbox, "dangling").symlink_to("nothing")
    assert await sandbox.stat("link") == Entry("", "file", 3, 0o640)
    assert await sandbox.stat("dangling") is None
    assert await sandbox.stat("file/below") is None
    found = await sandbox.stat("")
    assert found is not None
    assert found.kind == "directory"


async def test_a_loop_of_links_is_an_error_and_no_hang(sandbox: SupervisedSandbox) -> None:
    _host_path(sandbox).mkdir(parents=True)
    _host_path(sandbox, "one").symlink_to("two")
    _host_path(sandbox, "two").symlink_to("one")
    with pytest.raises(OSError, match="one"):
        await sandbox.read("one")


async def test_resolve_gives_the_real_path_as_far_as_it_exists(sandbox: SupervisedSandbox) -> None:
    await sandbox.write("real/file", b"")
    _host_path(sandbox, "link").symlink_to("real")
    assert await sandbox.resolve("link/../link/new/../file") == f"{sandbox.workspace}/real/file"
    assert await sandbox.resolve("/etc/../etc/passwd") == "/etc/passwd"


async def test_remove_takes_files_and_links_but_no_folder(sandbox: SupervisedSandbox) -> None:
    await sandbox.write("folder/file", b"")
    _host_path(sandbox, "link").symlink_to("folder/file")
    await sandbox.remove("link")
    assert await sandbox.stat("folder/file")
    await sandbox.remove("folder/file")
    with pytest.raises(FileNotFoundError):
        await sandbox.remove("folder/file")
    for folder in ("folder", "", "."):
        with pytest.raises(IsADirectoryError):
            await sandbox.remove(folder)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("secret")
    return folder / "secret"


_REFUSALS = (PermissionError, FileNotFoundError, NotADirectoryError)


@pytest.mark.parametrize(
    "way", ["link", "folder/secret", "{}", "../../outside/secret", "/proc/self/root{}", "/proc/1/root{}"]
)
async def test_no_way_leads_out_of_the_workspace(sandbox: SupervisedSandbox, secret: Path, way: str) -> None:
    workspace = _host_path(sandbox)
    workspace.mkdir(parents=True)
    (workspace / "link").symlink_to(secret)
    (workspace / "folder").symlink_to(secret.parent)
    way = way.format(secret)
    with pytest.raises(_REFUSALS):
        await sandbox.read(way)
    with pytest.raises(_REFUSALS):
        await sandbox.remove(str(secret))
    with pytest.raises(_REFUSALS):
        await sandbox.list("folder")
    with contextlib.suppress(*_REFUSALS):  # inside bwrap it may make a file of that name in the private /tmp
        await sandbox.write(way, b"x")
    assert _text(secret) == "secret"


def _text(path: Path) -> str:
    return path.read_text()


def _make(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


async def test_a_prefix_sibling_of_the_workspace_is_outside(host: SupervisedSandbox) -> None:
    sibling = _make(Path(host.workspace + "-sibling") / "file", "x").parent
    with pytest.raises(PermissionError, match="Outside"):
        await host.read(f"{sibling}/file")


async def test_the_host_says_where_a_link_leads(host: SupervisedSandbox, secret: Path) -> None:
    _host_path(host).mkdir(parents=True)
    _host_path(host, "link").symlink_to(secret)
    with pytest.raises(PermissionError, match=str(secret)):
        await host.read("link")
    with pytest.raises(PermissionError, match="Outside"):
        await host.stat("/etc/passwd")


async def test_artifacts_can_be_read_and_not_written(sandbox: SupervisedSandbox) -> None:
    _make(Path(sandbox.artifacts) / "chart.svg", "chart")
    assert await sandbox.read(f"{sandbox.artifacts}/chart.svg") == b"chart"
    for path in ("new", "chart.svg"):
        with pytest.raises(PermissionError):
            await sandbox.write(f"{sandbox.artifacts}/{path}", b"x")
    with pytest.raises(PermissionError if sandbox.name == "host" else OSError):
        await sandbox.remove(f"{sandbox.artifacts}/chart.svg")


async def test_temporary_files_of_programs_are_seen_by_the_file_tools(sandbox: SupervisedSandbox) -> None:
    path = (await sandbox.exec(["bash", "-c", "echo hi > $TMPDIR/file; echo -n $TMPDIR/file"])).output.decode()
    assert await sandbox.read(path) == b"hi\n"
    await sandbox.write(path, b"new")
    assert (await sandbox.exec(["cat", path])).output == b"new"


async def test_hidden_folders_are_hidden_from_the_file_tools(opener: Opener, tmp_path: Path) -> None:
    for backend in ("bwrap", "host"):
        workspace = tmp_path / backend
        _make(workspace / "own" / "store.db", "secret")
        sandbox = opener(backend, workspace=workspace, hide=[workspace / "own"])
        with pytest.raises((FileNotFoundError, PermissionError)):
            await sandbox.read("own/store.db")
        with pytest.raises(PermissionError):
            await sandbox.write("own/store.db", b"")
        assert (workspace / "own" / "store.db").read_text() == "secret"


async def test_a_read_only_folder_is_said_to_be_one(bwrap: SupervisedSandbox) -> None:
    with pytest.raises(PermissionError, match="read-only"):
        await bwrap.write("/usr/new", b"")


async def test_a_file_that_is_larger_than_any_memory_is_read_in_part_only(sandbox: SupervisedSandbox) -> None:
    await sandbox.exec(["truncate", "-s", "100G", "holes"])
    with pytest.raises(OSError, match="too large to be read whole"):
        await sandbox.read("holes")
    assert await sandbox.read("holes", offset=1 << 36, limit=10) == bytes(10)
    assert len(await sandbox.read("holes", offset=(100 << 30) - 10)) == 10


async def test_a_file_without_an_end_that_says_it_is_empty_is_not_read_into_our_memory(
    sandbox: SupervisedSandbox,
) -> None:
    if sandbox.name != "bwrap":
        pytest.skip("there, files of /proc are not read at all")
    with pytest.raises(OSError, match="too large to be read whole"):
        await sandbox.read("/proc/self/pagemap")
