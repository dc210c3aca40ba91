"""search_files on real sandboxes: what is found, what is left out, pages, and what a hostile tree cannot do (CONTRACT D22)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from handwork.config import SandboxSettings
from handwork.errors import ToolError
from handwork.sandbox.open import open_sandbox
from handwork.schema import ToolResult
from handwork.tool.search_files import SearchFiles
from tests.tool.conftest import Place


async def find(place: Place, query: str, **arguments: Any) -> ToolResult:
    async with asyncio.timeout(40):
        return await SearchFiles().execute(context=place.context(), query=query, **arguments)


async def refused(place: Place, query: str, **arguments: Any) -> str:
    with pytest.raises(ToolError) as caught:
        await find(place, query, **arguments)
    return caught.value.message


def put(place: Place, **texts: str | bytes) -> None:
    for name, text in texts.items():
        path = place.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)


async def test_lines_come_by_file_with_their_numbers_in_order(place: Place) -> None:
    put(place, **{"b.txt": "x\nneedle one\n", "a/z.py": "\tneedle two\r\nno\r\nneedle three", "c": "nothing"})
    result = await find(place, "needle")
    assert result.output == "a/z.py\n     1\t\tneedle two\n     3\tneedle three\n\nb.txt\n     2\tneedle one"
    assert result.system == "3 matching lines in 2 files; page 1 of 1."
    assert result.details == {"path": ".", "query": "needle", "page": 1, "matches": 3, "files": 2, "pages": 1}


async def test_names_are_found_by_expression_part_or_glob(place: Place) -> None:
    put(place, **{"src/test_a.py": "", "src/a_test.py": "", "docs/Test.md": "", "tests/x.py": ""})
    assert (await find(place, "test", kind="name")).output.split("\n") == [
        "docs/Test.md", "src/a_test.py", "src/test_a.py", "tests/",
    ]  # fmt: skip
    assert (await find(place, "Test", kind="name")).output == "docs/Test.md"
    assert (await find(place, "^test_.*\\.py$", kind="name")).output == "src/test_a.py"
    result = await find(place, "test_*.py", kind="name")
    assert result.output == "src/test_a.py"
    assert "read as a glob" in (result.system or "")
    assert (await find(place, "*.py", kind="name")).output.split("\n") == [
        "src/a_test.py",
        "src/test_a.py",
        "tests/x.py",
    ]
    assert (await find(place, "src/*.py", kind="name")).output.split("\n") == ["src/a_test.py", "src/test_a.py"]
    assert (await find(place, "src/test", kind="name")).output == "src/test_a.py"


async def test_case_counts_only_with_a_capital_letter(host: Place) -> None:
    put(host, x="Hello\nhello\nHELLO\nÄ\n")
    assert (await find(host, "hello")).system == "3 matching lines in 1 file; page 1 of 1."
    assert (await find(host, "Hello")).output == "x\n     1\tHello"
    assert (await find(host, "\\Shello|hell\\W")).output == "(nothing found)"
    assert (await find(host, "ä")).output == "x\n     4\tÄ"


async def test_what_is_no_expression_is_searched_as_text_and_that_is_said(host: Place) -> None:
    put(host, x="call(a, b\nfoo[\n")
    result = await find(host, "call(a")
    assert result.output == "x\n     1\tcall(a, b"
    assert "no valid regular expression" in (result.system or "")
    assert "plain text" in (result.system or "")


async def test_ignored_hidden_and_binary_files_are_left_out_unless_named(place: Place) -> None:
    put(
        place,
        **{".gitignore": "*.log\nbuild/\n", "x.log": "needle", "build/y": "needle", ".env": "needle", "b": b"needle\0"},
    )
    result = await find(place, "needle")
    assert result.output == "(nothing found)"
    assert "2 that .gitignore or .ignore leave out, 2 that are hidden, 1 that are binary" in (result.system or "")
    for named in ("x.log", "build", "build/y", ".env"):
        assert "needle" in (await find(place, "needle", path=named)).output
    assert "binary" in ((await find(place, "needle", path="b")).system or "")


async def test_a_long_line_is_cut_around_the_match(host: Place) -> None:
    put(host, x="a" * 100_000 + "needle" + "b" * 100_000 + "\n", y="needle" + "b" * 1000, z="b" * 1000 + "needle")
    output = (await find(host, "needle")).output
    assert len(output) < 1000
    assert output.count("needle") == 3
    assert f"…{'a' * 80}needle{'b' * 154}…" in output


async def test_a_long_result_is_paged_and_the_pages_are_all_of_it(host: Place) -> None:
    for number in range(300):
        put(host, **{f"f{number:03}": "needle\n" * 2})
    seen: list[str] = []
    result = await find(host, "needle")
    assert result.details is not None
    pages = int(str(result.details["pages"]))
    assert "600 matching lines in 300 files; page 1 of 6. page=2 has the next." in (result.system or "")
    for page in range(1, pages + 1):
        output = (await find(host, "needle", page=page)).output
        assert len(output) < 9000
        seen += [row for row in output.split("\n") if row.startswith("f")]
    assert sorted(set(seen)) == [f"f{number:03}" for number in range(300)]
    assert (await find(host, "needle", page=7)).system == (
        "There is no page 7: 600 matching lines in 300 files, on 6 pages."
    )
    assert "page" not in ((await find(host, "missing", page=7)).system or "")
    assert (
        await find(host, "needle", page=pages)
    ).system == f"600 matching lines in 300 files; page {pages} of {pages}."


async def test_one_file_does_not_fill_the_pages_and_is_whole_when_it_is_named(host: Place) -> None:
    put(host, a="needle\n" * 500, b="needle\n")
    result = await find(host, "needle")
    assert "   ... 480 more lines of this file" in result.output
    assert result.output.endswith("b\n     1\tneedle")
    assert "page 1 of 5" in ((await find(host, "needle", path="a")).system or "")


async def test_it_stops_at_ten_thousand_matches(host: Place) -> None:
    put(host, **{f"f{number}": "x\n" * 1000 for number in range(20)})
    assert "stopped after 10,000 matches" in ((await find(host, "x")).system or "")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"query": ""}, "`query` is empty"),
        ({"query": "a\nb"}, "line end"),
        ({"query": "a" * 1001}, "1001 characters"),
        ({"query": "a", "kind": "both"}, "Unknown kind"),
        ({"query": "a", "page": 0}, "counted from 1"),
        ({"query": "a", "path": "nosuch"}, "does not exist"),
        ({"query": "a", "path": "a\0b"}, "NUL"),
        ({"query": "a", "path": "pipe"}, "neither a file nor a folder"),
        ({"query": "a", "path": "out"}, "leaves the workspace"),
    ],
)
async def test_what_cannot_be_searched_is_a_clear_error(place: Place, arguments: dict[str, Any], part: str) -> None:
    os.mkfifo(place.workspace / "pipe")
    (place.workspace / "out").symlink_to("/usr")
    assert part in await refused(place, **arguments)


async def test_links_pipes_and_odd_names_neither_hang_nor_lead_out(place: Place) -> None:
    put(place, **{"-rf": "needle", "a b\nc": "needle", "x": "needle"})
    (place.workspace / os.fsdecode(b"raw\xff")).write_text("needle")
    os.mkfifo(place.workspace / "pipe")
    for name, to in (("link", "x"), ("round", "."), ("etc", "/etc"), ("dangling", "nowhere")):
        (place.workspace / name).symlink_to(to)
    output = (await find(place, "needle")).output
    assert [row for row in output.split("\n") if row and not row.startswith(" ")] == [
        "-rf",
        "a b\\nc",
        "raw\ufffd",
        "x",
    ]
    names = (await find(place, ".", kind="name")).output.split("\n")
    assert {"link@", "round@", "etc@", "dangling@", "pipe"} <= set(names)
    assert not any("etc@/" in name or "round@/" in name for name in names)


async def test_the_searched_text_of_other_encodings_is_found(host: Place) -> None:
    put(host, wide="größe\r\nx\r\n".encode("utf-16"), latin=b"caf\xe9 needle\n", marked=b"\xef\xbb\xbfneedle\n")
    assert (await find(host, "^größe$")).output == "wide\n     1\tgröße"
    assert (await find(host, "^needle$")).output == "marked\n     1\tneedle"
    assert (await find(host, "needle")).output.startswith("latin\n     1\tcaf\ufffd needle")


def too_deep(folder: Path) -> None:
    with contextlib.chdir(folder):
        for _ in range(40):
            Path("d" * 200).mkdir()
            os.chdir("d" * 200)


async def test_a_folder_that_cannot_be_read_hides_nothing_else(host: Place) -> None:
    too_deep(host.workspace)
    put(host, x="needle")
    result = await find(host, "needle")
    assert result.output == "x\n     1\tneedle"
    assert "1 file or folder could not be read" in (result.system or "")


async def test_an_expression_that_takes_for_ever_ends_and_the_rest_is_found(host: Place) -> None:
    put(host, a="a" * 200 + "!é\n", b="aab\n")
    began = time.monotonic()
    result = await find(host, "(a+)+b")
    assert time.monotonic() - began < 10
    assert result.output == "b\n     1\taab"
    assert "1 file given up after 3 s each" in (result.system or "")


@pytest.mark.slow
async def test_the_whole_search_has_a_limit_and_says_what_it_found_until_then(host: Place) -> None:
    put(host, **{f"a{number:02}": "a" * 200 + "!é\n" for number in range(12)}, **{"a": "ab\n"})
    began = time.monotonic()
    result = await find(host, "(a+)+b")
    assert 18 < time.monotonic() - began < 26
    assert result.output == "a\n     1\tab"
    assert "stopped after 20 s" in (result.system or "")


async def test_a_cancelled_search_leaves_no_process(place: Place) -> None:
    put(place, a="a" * 200 + "!é\n")
    await find(place, "x")
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    task = asyncio.ensure_future(find(place, "(a+)+b"))
    while not {child.pid for child in psutil.Process().children(recursive=True)} - before:
        await asyncio.wait({task}, timeout=0.01)
        assert not task.done()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    _, alive = await asyncio.to_thread(psutil.wait_procs, left, timeout=5)
    assert alive == []


async def test_a_workspace_cannot_put_modules_of_its_own_into_the_search(place: Place) -> None:
    evil = "open('ran', 'w').close()\n"
    put(place, **{f"{name}.py": evil for name in ("json", "re", "search_inside", "sitecustomize", "fnmatch", "codecs")})
    put(place, **{"search_inside/__init__.py": evil, "x": "needle"})
    assert "needle" in (await find(place, "needle")).output
    assert not (place.workspace / "ran").exists()


async def test_on_the_host_what_file_tools_may_not_read_is_not_shown() -> None:
    with tempfile.TemporaryDirectory(prefix="hw-test-") as folder:
        workspace, own, artifacts = (Path(folder, name) for name in ("w", "w/own", "a"))
        settings = SandboxSettings(backend="host")
        sandbox = open_sandbox(settings, workspace=workspace, artifacts=artifacts, notify=print, hide=[own])
        place = Place(sandbox, workspace, artifacts)
        put(place, x="needle", **{"own/journal": "needle"})
        try:
            assert (await find(place, "needle")).output == "x\n     1\tneedle"
            assert "Cannot view" in await refused(place, "needle", path="own")
            assert "Cannot view /etc" in await refused(place, "root", path="/etc")
        finally:
            await place.close()


def test_it_only_reads_where_it_searches() -> None:
    (action,) = SearchFiles().actions({"query": "x", "path": "src"})
    assert (action.kind, action.resource, action.repeatable) == ("read", "src", True)
    assert SearchFiles().actions({"query": "x"})[0].resource == "."
