"""What an edit would change is known before it is made: the diff that an approval shows, and the counts in the details."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from handwork.schema import JSON
from handwork.tool.editor import StrReplaceEditor
from tests.tool.conftest import Place


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


async def preview(place: Place, tool: StrReplaceEditor | None = None, **arguments: JSON) -> str:
    async with asyncio.timeout(20):
        return await (tool or StrReplaceEditor()).preview(arguments, place.sandbox)


CALLS: list[dict[str, Any]] = [
    {"command": "create", "path": "new/file.txt", "file_text": "one\ntwo"},
    {"command": "str_replace", "path": "x", "old_str": "two", "new_str": "2"},
    {"command": "str_replace", "path": "x", "edits": [{"old_str": "one\n"}, {"old_str": "three", "new_str": "3\n4"}]},
    {"command": "insert", "path": "x", "insert_line": 1, "new_str": "more"},
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: str(call["command"]))
async def test_the_preview_is_the_diff_that_the_call_then_makes_and_changes_nothing(
    place: Place, call: dict[str, Any]
) -> None:
    (place.workspace / "x").write_bytes(b"one\ntwo\nthree\n")
    before = state(place.workspace)
    diff = await preview(place, **call)
    assert state(place.workspace) == before
    result = await StrReplaceEditor().execute(context=place.context(), **call)
    assert result.details is not None
    assert diff == result.details["diff"] != ""


async def test_taking_back_is_foreseen_too(place: Place) -> None:
    tool = StrReplaceEditor()
    await tool.execute(context=place.context(), command="create", path="x", file_text="one\n")
    before = state(place.workspace)
    assert "+++ /dev/null" in (diff := await preview(place, tool, command="undo_edit", path="x"))
    assert "-one" in diff
    assert state(place.workspace) == before
    await tool.execute(context=place.context(), command="undo_edit", path="x")
    assert not (place.workspace / "x").exists()


async def test_a_copy_of_the_tool_knows_nothing_of_the_others_edits(host: Place) -> None:
    tool = StrReplaceEditor()
    await tool.execute(context=host.context(), command="create", path="x", file_text="one\n")
    assert await preview(host, tool.fresh(), command="undo_edit", path="x") == ""


@pytest.mark.parametrize(
    "call",
    [
        {"command": "view", "path": "x"},
        {"command": "create", "path": "x", "file_text": ""},
        {"command": "create", "path": "y"},
        {"command": "str_replace", "path": "x", "old_str": "nowhere", "new_str": ""},
        {"command": "str_replace", "path": "nosuch", "old_str": "a", "new_str": ""},
        {"command": "insert", "path": "x", "insert_line": 99, "new_str": "a"},
        {"command": "undo_edit", "path": "x"},
        {"command": "str_replace", "path": "pipe", "old_str": "a", "new_str": ""},
        {"command": "create", "path": "a\0b", "file_text": ""},
        {"command": "create", "path": "/outside", "file_text": ""},
        {"command": "explode", "path": "x"},
        {"command": "create"},
    ],
)
async def test_a_call_that_would_fail_has_no_preview(place: Place, call: dict[str, Any]) -> None:
    (place.workspace / "x").write_bytes(b"one\n")
    os.mkfifo(place.workspace / "pipe")
    assert await preview(place, **call) == ""


async def test_a_sandbox_that_is_closed_means_no_preview(host: Place) -> None:
    await host.sandbox.close()
    assert await preview(host, command="create", path="x", file_text="a") == ""


async def test_details_count_what_came_and_went_even_where_the_diff_is_cut(host: Place) -> None:
    (host.workspace / "x").write_text("".join(f"{n}\n" for n in range(50_000)))
    text = "".join(f"{n}!\n" for n in range(60_000))
    result = await StrReplaceEditor().execute(context=host.context(), command="create", path="y", file_text=text)
    assert result.details is not None
    assert (result.details["added"], result.details["removed"]) == (60_000, 0)
    assert len(str(result.details["diff"])) < 201_000
    result = await StrReplaceEditor().execute(
        context=host.context(), command="str_replace", path="x", old_str="\n77\n78\n", new_str="\n77\n"
    )
    assert result.details is not None
    assert (result.details["added"], result.details["removed"]) == (0, 1)


async def test_a_path_with_line_ends_makes_no_rows_of_its_own_in_the_diff(host: Place) -> None:
    diff = await preview(host, command="create", path="a\n+++ b/harmless\x1b[2J", file_text="one\n")
    assert diff == '--- /dev/null\n+++ "b/a\\n+++ b/harmless\\u001b[2J"\n@@ -0,0 +1 @@\n+one\n'
