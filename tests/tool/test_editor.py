"""str_replace_editor on real sandboxes: bytes survive, each error has its own text, undo tells the truth (CONTRACT D3)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from typing import Any

import pytest

from handwork.errors import ToolError
from handwork.schema import Message, ToolResult
from handwork.tool.editor import StrReplaceEditor
from tests.tool.conftest import Place


async def edit(place: Place, command: str, path: str, **arguments: Any) -> ToolResult:
    async with asyncio.timeout(20):
        return await StrReplaceEditor().execute(context=place.context(), command=command, path=path, **arguments)


async def refused(place: Place, command: str, path: str, **arguments: Any) -> str:
    with pytest.raises(ToolError) as caught:
        await edit(place, command, path, **arguments)
    return caught.value.message


def put(place: Place, name: str, data: bytes) -> None:
    path = place.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def got(place: Place, name: str) -> bytes:
    return (place.workspace / name).read_bytes()


# Create


async def test_create_makes_the_file_and_its_folders(place: Place) -> None:
    result = await edit(place, "create", "a/b/c.txt", file_text="one\n\ttwo")
    assert result.output == "File created successfully at: a/b/c.txt"
    assert got(place, "a/b/c.txt") == b"one\n\ttwo"
    assert result.details is not None
    assert result.details["path"] == "a/b/c.txt"
    assert result.details["diff"].startswith(
        "--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+\ttwo\n\\ No newline"
    )


async def test_create_takes_an_absolute_path_too(place: Place) -> None:
    await edit(place, "create", f"{place.sandbox.workspace}/abs.txt", file_text="")
    assert got(place, "abs.txt") == b""


@pytest.mark.parametrize("text", ["a\r\nb\r\n", "\ufeffmark", "ü漢\u2028x", "a\0b", "\r", "no end"])
async def test_create_writes_exactly_what_was_given(host: Place, text: str) -> None:
    await edit(host, "create", "x", file_text=text)
    assert got(host, "x") == text.encode()


async def test_create_refuses_an_existing_file_and_leaves_it(place: Place) -> None:
    put(place, "x", b"old")
    assert "already exists" in await refused(place, "create", "x", file_text="new")
    assert got(place, "x") == b"old"


async def test_create_needs_its_text(host: Place) -> None:
    assert await refused(host, "create", "x") == "Parameter `file_text` is required for command: create"


async def test_create_below_a_file_or_on_a_folder_or_with_a_slash_is_refused(place: Place) -> None:
    put(place, "file", b"")
    put(place, "folder/x", b"")
    assert "not a directory" in await refused(place, "create", "file/x", file_text="")
    assert "is a directory" in await refused(place, "create", "folder", file_text="")
    assert "slash" in await refused(place, "create", "new/", file_text="")


# Replace: bytes survive


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\tb\n\tc\n", "\tc", "\td", b"a\tb\n\td\n"),
        (b"a\r\nb\r\nc\r\n", "b\nc", "x\ny", b"a\r\nx\r\ny\r\n"),
        (b"a\r\nb\r\n", "b", "b\nnew", b"a\r\nb\r\nnew\r\n"),
        (b"a\r\nb\r\nc", "a\r\nb", "z", b"z\r\nc"),
        (b"a\nb\nc\n", "a\r\nb", "z", b"z\nc\n"),
        (b"a\r\nb\nc\r\nd\r\n", "a\nb\nc", "A\nb\nC", b"A\r\nb\nC\r\nd\r\n"),
        (b"a\r\nb\nc\r\n", "a\nb\nc\n", "A\nB\nC\n", b"A\r\nB\nC\r\n"),
        (b"a\nb\r\nc\nd\n", "a\nb\nc\nd", "b\nx\nc\nd", b"b\r\nx\nc\nd\n"),
        (b"a\nb\r\nc\r\nd\n\n", "b\nc\nd", "b\nnew\nd", b"a\nb\r\nnew\r\nd\n\n"),
        (b"a\r\nb\nc\r\nd\ne\r\n", "b\nc\nd", "b\nC\nd", b"a\r\nb\nC\r\nd\ne\r\n"),
        (b"a\r\nb\nc\r\nd\n\r\n", "c", "c\nx", b"a\r\nb\nc\r\nx\r\nd\n\r\n"),
        (b"a\nb\r\nc\nd\n", "c", "c\nx", b"a\nb\r\nc\nx\nd\n"),
        (b"a\rb\rc\r", "b\nc", "x\ny\nz", b"a\rx\ry\rz\r"),
        (b"a\r\nb\r\n", "a\r\nb", "a\nb", b"a\nb\r\n"),
        (b"a\r\n\r\nb\r\n", "a\n\nb", "a\nb", b"a\r\nb\r\n"),
        (b"\xef\xbb\xbfone\ntwo", "one", "1", b"\xef\xbb\xbf1\ntwo"),
        (b"caf\xe9\nx\n", "x", "y", b"caf\xe9\ny\n"),
        (b"caf\xe9\nx\n", "café", "thé", b"th\xe9\nx\n"),
        (b"\x93quoted\x94 \x80\n", "“quoted”", "‘q’", b"\x91q\x92 \x80\n"),
        (
            "ü漢字 \u00e9\n".encode() + b"bad \xff byte\n",
            "byte",
            "é",
            "ü漢字 \u00e9\n".encode() + b"bad \xff \xc3\xa9\n",
        ),
        ("a\nü\n".encode("utf-16"), "ü", "漢", "a\n漢\n".encode("utf-16")),
        (b"\xfe\xff" + "a\r\nb".encode("utf-16-be"), "a\nb", "c\nd", b"\xfe\xff" + "c\r\nd".encode("utf-16-be")),
        ("a\nü\n".encode("utf-32"), "ü", "漢ü", "a\n漢ü\n".encode("utf-32")),
        (b"\0\0\xfe\xff" + "a\r\nb".encode("utf-32-be"), "b", "c", b"\0\0\xfe\xff" + "a\r\nc".encode("utf-32-be")),
        (b"\xff\xfe" + "\0ac\n".encode("utf-16-le"), "a", "b", b"\xff\xfe" + "\0bc\n".encode("utf-16-le")),
        (b"\x83\x65\x83\x58\x83\x67 name\n", "name", "title", b"\x83\x65\x83\x58\x83\x67 title\n"),
        (b"no end", "end", "END", b"no END"),
        (b"a\n\n\n", "a\n", "", b"\n\n"),
        (b"x = 1  \ny\n", "x = 1  ", "x = 2", b"x = 2\ny\n"),
        (b"a\x0cb\x0b\x1c\x85c\n", "c", "d", b"a\x0cb\x0b\x1c\x85d\n"),
        ("a\u2028b\u0085c\nd".encode(), "d", "e", "a\u2028b\u0085c\ne".encode()),
        (b"", "", "text", b"text"),
        (b"\\d+ \\1 \\g<0>", "\\1", "\\2\\n", b"\\d+ \\2\\n \\g<0>"),
    ],
)
async def test_only_the_edited_bytes_change(host: Place, before: bytes, old: str, new: str, after: bytes) -> None:
    put(host, "x", before)
    await edit(host, "str_replace", "x", old_str=old, new_str=new)
    assert got(host, "x") == after
    await edit(host, "undo_edit", "x")
    assert got(host, "x") == before


async def test_an_edit_on_every_backend_keeps_bytes_and_mode(place: Place) -> None:
    put(place, "run.sh", b"#!/bin/sh\r\n\techo caf\xe9\r\n")
    (place.workspace / "run.sh").chmod(0o751)
    await edit(place, "str_replace", "run.sh", old_str="#!/bin/sh\n\techo", new_str="#!/bin/sh\n\techo -n")
    assert got(place, "run.sh") == b"#!/bin/sh\r\n\techo -n caf\xe9\r\n"
    assert (place.workspace / "run.sh").stat().st_mode & 0o7777 == 0o751
    await edit(place, "insert", "run.sh", insert_line=0, new_str="# top")
    await edit(place, "undo_edit", "run.sh")
    await edit(place, "undo_edit", "run.sh")
    assert got(place, "run.sh") == b"#!/bin/sh\r\n\techo caf\xe9\r\n"
    assert (place.workspace / "run.sh").stat().st_mode & 0o7777 == 0o751


async def test_a_missing_new_str_deletes(host: Place) -> None:
    put(host, "x", b"keep drop")
    await edit(host, "str_replace", "x", old_str=" drop")
    assert got(host, "x") == b"keep"


async def test_what_the_encoding_cannot_hold_is_refused_by_name(host: Place) -> None:
    put(host, "x", b"caf\xe9\n")
    message = await refused(host, "str_replace", "x", old_str="café", new_str="漢字")
    assert "cp1252" in message
    assert "漢字" in message
    assert got(host, "x") == b"caf\xe9\n"


async def test_the_result_shows_four_lines_around_the_change(host: Place) -> None:
    put(host, "x", b"".join(b"\tline %d\n" % n for n in range(1, 21)))
    result = await edit(host, "str_replace", "x", old_str="line 10\n", new_str="line ten\n\textra\n")
    lines = result.output.splitlines()
    assert lines[0] == "The file x has been edited. Here's the result of running `cat -n` on a snippet of x:"
    assert lines[1] == "     6\t\tline 6"
    assert lines[5:7] == ["    10\t\tline ten", "    11\t\textra"]
    assert lines[-2] == "    15\t\tline 14"
    assert lines[-1].startswith("Review the changes")
    assert result.details is not None
    assert result.details["diff"] == (
        "--- a/x\n+++ b/x\n@@ -7,7 +7,8 @@\n \tline 7\n \tline 8\n \tline 9\n-\tline 10\n+\tline ten\n+\textra\n"
        " \tline 11\n \tline 12\n \tline 13\n"
    )


# Replace: the one place


async def test_several_matches_are_refused_with_their_lines(host: Place) -> None:
    put(host, "x", b"a\r\nfoo\r\nb\r\nfoo foo\r\n")
    message = await refused(host, "str_replace", "x", old_str="foo", new_str="bar")
    assert "in lines 2, 4" in message
    assert got(host, "x").count(b"foo") == 3


async def test_overlapping_matches_are_ambiguous(host: Place) -> None:
    put(host, "x", b"aaa")
    assert "more than once" in await refused(host, "str_replace", "x", old_str="aa", new_str="b")


async def test_places_that_differ_only_in_line_ending_are_ambiguous(host: Place) -> None:
    put(host, "x", b"a\nb\n--\na\r\nb\r\n")
    assert "in lines 1, 4" in await refused(host, "str_replace", "x", old_str="a\nb", new_str="c")
    await edit(host, "str_replace", "x", old_str="a\r\nb", new_str="c")  # endings written out say which
    assert got(host, "x") == b"a\nb\n--\nc\r\n"


async def test_a_near_miss_in_white_space_is_shown_with_what_differs(host: Place) -> None:
    put(host, "x", b"def f():\n\tif x:\n\t\treturn 1\n")
    message = await refused(host, "str_replace", "x", old_str="    if x:\n        return 1", new_str="")
    assert "did not appear verbatim" in message
    assert "line 2 with other white space" in message
    assert "'\\tif x:'" in message
    assert "'    if x:'" in message


async def test_the_nearest_lines_are_shown(host: Place) -> None:
    put(host, "x", b"alpha\nresult = compute(first, second)\nomega\n")
    message = await refused(host, "str_replace", "x", old_str="result = compute(first, secnd)", new_str="")
    assert "     2\tresult = compute(first, second)" in message


async def test_other_case_and_copied_line_numbers_are_recognised(host: Place) -> None:
    put(host, "x", b"one\nHello World\nthree\n")
    assert "other case" in await refused(host, "str_replace", "x", old_str="hello world", new_str="")
    assert "line numbers" in await refused(
        host, "str_replace", "x", old_str="     2\tHello World\n     3\tthree", new_str=""
    )
    assert "No line resembles it" in await refused(host, "str_replace", "x", old_str="zzzzqqqq", new_str="")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({}, "Parameter `old_str` is required for command: str_replace"),
        ({"old_str": "", "new_str": "x"}, "`old_str` is empty"),
        ({"old_str": "a", "new_str": "a"}, "are the same"),
        ({"old_str": "a", "edits": [{"old_str": "a", "new_str": "b"}]}, "not both"),
        ({"edits": []}, "`edits` is empty"),
        ({"edits": [{"old_str": "a", "new_str": 5}]}, "must be a list of objects"),
    ],
)
async def test_a_senseless_replacement_is_a_clear_error(host: Place, arguments: dict[str, Any], part: str) -> None:
    put(host, "x", b"a\n")
    assert part in await refused(host, "str_replace", "x", **arguments)


async def test_a_huge_file_of_one_pattern_is_refused_quickly(host: Place) -> None:
    put(host, "x", b"ab" * 2_000_000)
    async with asyncio.timeout(10):
        assert "more than once" in await refused(host, "str_replace", "x", old_str="abab", new_str="")
        assert "did not appear" in await refused(host, "str_replace", "x", old_str="a  b c" * 50, new_str="")


# Several edits


async def test_several_edits_are_one_change_and_one_undo(host: Place) -> None:
    before = b"".join(b"line %d\r\n" % n for n in range(1, 41))
    put(host, "x", before)
    edits = [
        {"old_str": "line 30\n", "new_str": "line thirty\nmore\n"},
        {"old_str": "line 2\n", "new_str": ""},
        {"old_str": "line thirty", "new_str": "LINE 30"},
    ]
    result = await edit(host, "str_replace", "x", edits=edits)
    assert got(host, "x") == before.replace(b"line 30\r\n", b"LINE 30\r\nmore\r\n").replace(b"line 2\r\n", b"")
    assert "    29\tLINE 30\n    30\tmore" in result.output
    assert "\n   ...\n" in result.output
    await edit(host, "undo_edit", "x")
    assert got(host, "x") == before


async def test_one_edit_that_fails_prevents_all(host: Place) -> None:
    put(host, "x", b"a b")
    message = await refused(
        host, "str_replace", "x", edits=[{"old_str": "a", "new_str": "c"}, {"old_str": "z", "new_str": ""}]
    )
    assert message.startswith("Edit 2 of 2 failed, so none was made.")
    assert got(host, "x") == b"a b"


# Insert


@pytest.mark.parametrize(
    ("before", "line", "new", "after"),
    [
        (b"a\nb\n", 0, "x", b"x\na\nb\n"),
        (b"a\nb\n", 1, "x", b"a\nx\nb\n"),
        (b"a\nb\n", 1, "x\n", b"a\nx\nb\n"),
        (b"a\nb\n", 2, "x\ny", b"a\nb\nx\ny\n"),
        (b"a\nb", 2, "x", b"a\nb\nx"),
        (b"a\nb", 1, "x", b"a\nx\nb"),
        (b"a\r\nb\r\n", 1, "x\ny", b"a\r\nx\r\ny\r\nb\r\n"),
        (b"a\r\nb", 2, "x", b"a\r\nb\r\nx"),
        (b"a\rb\r", 1, "x", b"a\rx\rb\r"),
        (b"", 0, "x", b"x\n"),
        (b"\xef\xbb\xbfa\n", 0, "x", b"\xef\xbb\xbfx\na\n"),
        (b"a\n\tb\n", 1, "", b"a\n\n\tb\n"),
    ],
)
async def test_insert_puts_whole_lines_after_a_line(
    host: Place, before: bytes, line: int, new: str, after: bytes
) -> None:
    put(host, "x", before)
    await edit(host, "insert", "x", insert_line=line, new_str=new)
    assert got(host, "x") == after
    await edit(host, "undo_edit", "x")
    assert got(host, "x") == before


@pytest.mark.parametrize("line", [-1, 3, 10**9])
async def test_insert_out_of_range_is_refused(host: Place, line: int) -> None:
    put(host, "x", b"a\nb\n")
    message = await refused(host, "insert", "x", insert_line=line, new_str="c")
    assert f"Invalid `insert_line` {line}" in message
    assert "[0, 2]" in message


async def test_insert_needs_line_and_text(host: Place) -> None:
    put(host, "x", b"a\n")
    assert await refused(host, "insert", "x", new_str="c") == "Parameter `insert_line` is required for command: insert"
    assert await refused(host, "insert", "x", insert_line=0) == "Parameter `new_str` is required for command: insert"


# View


async def test_a_view_is_numbered_and_leaves_tabs(place: Place) -> None:
    put(place, "x", b"one\n\ttwo\r\n\nfour")
    result = await edit(place, "view", "x")
    assert (
        result.output
        == "Here's the result of running `cat -n` on x:\n     1\tone\n     2\t\ttwo\n     3\t\n     4\tfour"
    )


@pytest.mark.parametrize(
    ("view_range", "lines"), [([2, 3], "23"), ([4, -1], "45"), ([1, 5], "12345"), ([5, 5], "5"), ([1, -1], "12345")]
)
async def test_a_range_is_shown_with_its_own_numbers(host: Place, view_range: list[int], lines: str) -> None:
    put(host, "x", b"1\n2\n3\n4\n5\n")
    result = await edit(host, "view", "x", view_range=view_range)
    assert result.output.splitlines()[1:] == [f"     {line}\t{line}" for line in lines]


@pytest.mark.parametrize(
    ("view_range", "part"),
    [
        ([1], "two integers"),
        ([1, 2, 3], "two integers"),
        (["1", "2"], "two integers"),
        ([True, 2], "two integers"),
        ("1-2", "two integers"),
        ([0, 2], "counted from 1"),
        ([-1, 2], "counted from 1"),
        ([3, 2], "before the first"),
        ([2, -2], "before the first"),
        ([1, 4], "3 lines"),
        ([4, -1], "3 lines"),
    ],
)
async def test_a_range_that_is_malformed_or_outside_is_refused(host: Place, view_range: Any, part: str) -> None:
    put(host, "x", b"1\n2\n3\n")
    assert part in await refused(host, "view", "x", view_range=view_range)


async def test_a_folder_is_shown_two_levels_deep_without_hidden_entries(place: Place) -> None:
    for name in ("a/b/c/deep.txt", "a/f.txt", "top.txt", ".hidden/x", "a/.env", "a/.git/config"):
        put(place, name, b"")
    result = await edit(place, "view", ".")
    assert result.output.splitlines()[1:] == ["./a/", "./a/b/", "./a/f.txt", "./top.txt"]
    below = await edit(place, "view", f"{place.sandbox.workspace}/a/")
    assert below.output.splitlines()[1:] == [f"{place.sandbox.workspace}/a/{name}" for name in ("b/", "b/c/", "f.txt")]


async def test_a_range_on_a_folder_is_refused(host: Place) -> None:
    assert "not allowed when `path` points to a directory" in await refused(host, "view", ".", view_range=[1, 2])


async def test_an_empty_file_and_an_empty_folder_can_be_viewed(host: Place) -> None:
    put(host, "x", b"")
    assert "(the file is empty)" in (await edit(host, "view", "x")).output
    assert "(the file is empty)" in (await edit(host, "view", "x", view_range=[1, -1])).output
    (host.workspace / "folder").mkdir()
    assert "(nothing)" in (await edit(host, "view", "folder")).output


async def test_a_binary_file_is_refused_for_view_and_edit(host: Place) -> None:
    put(host, "x", b"\x7fELF\0\0\1" * 10)
    assert "binary file (70 bytes)" in await refused(host, "view", "x")
    assert "binary file" in await refused(host, "str_replace", "x", old_str="ELF", new_str="elf")


async def test_a_view_tells_of_encoding_and_endings_and_shows_no_broken_text(host: Place) -> None:
    put(host, "x", b"caf\xe9\r\n")
    result = await edit(host, "view", "x")
    assert result.output.endswith("     1\tcafé")
    assert "cp1252" in str(result.system)
    assert "CRLF" in str(result.system)
    put(host, "y", "ü漢字".encode() + b" \xff\n")
    shown = await edit(host, "view", "y")
    assert shown.output.endswith("ü漢字 \ufffd")
    shown.output.encode()


async def test_a_large_file_is_shown_in_part_with_a_way_to_the_rest(host: Place) -> None:
    put(host, "x", b"a line of some length, to fill the view\n" * 20_000)
    result = await edit(host, "view", "x")
    assert len(result.output) < 210_000
    assert "are not shown: view them with view_range=[" in str(result.system)
    put(host, "y", b"z" * 1_000_000)
    assert "more characters in this line]" in (await edit(host, "view", "y")).output


async def test_a_huge_file_is_read_only_as_far_as_it_is_shown(host: Place) -> None:
    lines = [b"%d" % n for n in range(1, 2_500_001)]
    put(host, "x", b"\n".join(lines))
    assert (host.workspace / "x").stat().st_size > 16_000_000
    result = await edit(host, "view", "x", view_range=[1_999_999, 2_000_001])
    assert result.output.splitlines()[1:] == [f"{n}\t{n}" for n in (1_999_999, 2_000_000, 2_000_001)]
    assert "huge" in str(result.system)
    last = await edit(host, "view", "x", view_range=[2_500_000, -1])
    assert last.output.splitlines()[1:] == ["2500000\t2500000"]
    assert "only 2500000 lines" in await refused(host, "view", "x", view_range=[2_500_001, -1])
    assert (await edit(host, "view", "x")).output.splitlines()[1] == "     1\t1"


# Paths


@pytest.mark.parametrize("command", ["view", "str_replace", "insert"])
async def test_a_path_that_does_not_exist_is_told_with_the_nearest_name(place: Place, command: str) -> None:
    put(place, "folder/readme.md", b"")
    message = await refused(place, command, "folder/readmee.md", old_str="a", new_str="b", insert_line=0)
    assert "The path folder/readmee.md does not exist" in message
    assert "Did you mean folder/readme.md?" in message
    assert "does not exist" in await refused(place, command, "no/such", old_str="a", new_str="b", insert_line=0)


@pytest.mark.parametrize("command", ["create", "str_replace", "insert", "undo_edit"])
async def test_a_folder_is_refused_by_all_but_view(host: Place, command: str) -> None:
    message = await refused(host, command, ".", file_text="", old_str="a", new_str="b", insert_line=0)
    assert "is a directory, and only the `view` command" in message


@pytest.mark.parametrize("path", ["", "  ", "a\0b", "x" * 256, "y/" * 2100, "a\ud800"])
async def test_an_impossible_path_is_a_clear_error(host: Place, path: str) -> None:
    assert "`path`" in await refused(host, "view", path)
    assert "`path`" in await refused(host, "create", path, file_text="")


async def test_a_pipe_or_device_is_refused_instead_of_waited_for(host: Place) -> None:
    os.mkfifo(host.workspace / "pipe")
    assert "neither a file nor a directory" in await refused(host, "view", "pipe")
    assert "neither a file nor a directory" in await refused(host, "str_replace", "pipe", old_str="a")


ARGUMENTS = {"file_text": "x", "old_str": "a", "new_str": "b", "insert_line": 0}
COMMANDS = ["view", "create", "str_replace", "insert", "undo_edit"]


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_link_that_leaves_the_workspace_is_refused_and_named(place: Place, command: str) -> None:
    (place.workspace / "link").symlink_to("/usr/share/nothing-here")
    (place.workspace / "up").symlink_to("/usr/lib")
    (place.workspace / "passwords").symlink_to("/etc/passwd")
    for path, words in {
        "link": "link is a symbolic link to /usr/share/nothing-here, which leaves the workspace",
        "passwords": "passwords is a symbolic link to /etc/passwd, which leaves the workspace",
        "up/x": "up/x leads through a symbolic link to /usr/lib/x, which leaves the workspace",
    }.items():
        assert words in await refused(place, command, path, **ARGUMENTS)


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_link_to_what_is_not_there_is_named_as_one_and_not_proposed_itself(place: Place, command: str) -> None:
    (place.workspace / "link").symlink_to("gone.txt")
    real = f"{await place.sandbox.resolve('.')}/gone.txt"
    message = await refused(place, command, "link", **ARGUMENTS)
    assert message == f"link is a symbolic link to {real}, which is not there. Give the path of the file itself."
    (place.workspace / "round").symlink_to("round")
    assert "Did you mean" not in await refused(place, command, "round", **ARGUMENTS)


async def test_a_link_that_leads_to_itself_is_told_so(place: Place) -> None:
    (place.workspace / "round").symlink_to("round")
    assert "round in a circle" in await refused(place, "view", "round")


async def test_outside_of_the_workspace_is_only_read_but_for_what_is_the_sandboxs_own(place: Place) -> None:
    if place.sandbox.contained:
        assert "nobody:" in (await edit(place, "view", "/etc/passwd")).output
    for command in COMMANDS[1:]:
        assert "outside of the workspace" in await refused(place, command, "/usr/lib/os-release", **ARGUMENTS)
    own = (await place.sandbox.exec(["/bin/sh", "-c", "printf %s $TMPDIR"])).output.decode()
    for path in (f"{own}/note.txt", await _linked(place, own)):
        made = await edit(place, "create", path, file_text="a")
        assert (made.details or {})["private"] is True
        assert "gone when the session ends" in (made.system or "")
    assert (await edit(place, "view", f"{own}/note.txt")).system is None
    assert (await edit(place, "create", "inside.txt", file_text="a")).system is None


async def _linked(place: Place, folder: str) -> str:
    (place.workspace / "own").symlink_to(folder)
    return "own/linked.txt"


async def test_a_file_that_is_written_beside_the_workspace_is_never_called_kept(place: Place) -> None:
    """Below bwrap the test's workspace lies in the sandbox's own /tmp, which ends with it; on the host nothing is."""
    if place.sandbox.contained:
        made = await edit(place, "create", "../escape.txt", file_text="a")
        assert "gone when the session ends" in (made.system or "")
    else:
        assert "outside of the workspace" in await refused(place, "create", "../escape.txt", file_text="a")
    assert not (place.workspace.parent / "escape.txt").exists()


async def test_a_link_out_of_the_workspace_changes_nothing_outside(place: Place) -> None:
    outside = place.workspace.parent / "outside.txt"
    outside.write_text("secret")
    (place.workspace / "link").symlink_to(outside)
    (place.workspace / "up").symlink_to(place.workspace.parent)
    for path in ("link", "up/outside.txt", "../outside.txt", str(outside)):
        await refused(place, "str_replace", path, old_str="secret", new_str="changed")
        await refused(place, "view", path)
    with contextlib.suppress(ToolError):  # bwrap has a private /tmp there, where a file does no harm
        await edit(place, "create", "up/new.txt", file_text="x")
    assert outside.read_text() == "secret"
    assert not (place.workspace.parent / "new.txt").exists()


async def test_a_link_within_the_workspace_is_followed_and_stays_a_link(place: Place) -> None:
    put(place, "real.txt", b"a")
    (place.workspace / "link").symlink_to("real.txt")
    await edit(place, "str_replace", "link", old_str="a", new_str="b")
    assert got(place, "real.txt") == b"b"
    assert (place.workspace / "link").is_symlink()
    await edit(place, "undo_edit", "real.txt")
    assert got(place, "real.txt") == b"a"


async def test_an_unknown_command_names_the_known_ones(host: Place) -> None:
    assert "view, create, str_replace, insert, undo_edit" in await refused(host, "delete", "x")


# Undo


async def test_undo_goes_back_several_levels_per_file_and_undoes_create(place: Place) -> None:
    await edit(place, "create", "x", file_text="1")
    await edit(place, "create", "y", file_text="y1")
    await edit(place, "str_replace", "x", old_str="1", new_str="2")
    await edit(place, "str_replace", "./x", old_str="2", new_str="3")
    result = await edit(place, "undo_edit", "x")
    assert "has been undone" in result.output
    assert "     1\t2" in result.output
    assert got(place, "x") == b"2"
    await edit(place, "undo_edit", f"{place.sandbox.workspace}/x")
    assert got(place, "x") == b"1"
    assert "removed" in (await edit(place, "undo_edit", "x")).output
    assert not (place.workspace / "x").exists()
    assert got(place, "y") == b"y1"
    assert "nothing to undo" in await refused(place, "undo_edit", "x")


async def test_undo_refuses_to_destroy_later_work(place: Place) -> None:
    put(place, "x", b"one")
    await edit(place, "str_replace", "x", old_str="one", new_str="two")
    await place.sandbox.exec(["sh", "-c", "echo later >> x"])
    assert "has changed since" in await refused(place, "undo_edit", "x")
    assert got(place, "x") == b"twolater\n"
    await edit(place, "str_replace", "x", old_str="later\n", new_str="!")
    await edit(place, "undo_edit", "x")
    assert got(place, "x") == b"twolater\n"


async def test_undo_of_a_file_that_is_gone_is_refused(host: Place) -> None:
    await edit(host, "create", "x", file_text="1")
    (host.workspace / "x").unlink()
    assert "no longer exists" in await refused(host, "undo_edit", "x")
    await edit(host, "create", "x", file_text="again")
    await edit(host, "undo_edit", "x")
    assert not (host.workspace / "x").exists()


async def test_a_failed_edit_leaves_no_trace_in_the_history(host: Place) -> None:
    put(host, "x", b"a")
    await refused(host, "str_replace", "x", old_str="z", new_str="y")
    assert "nothing to undo" in await refused(host, "undo_edit", "x")


async def test_after_a_resume_it_says_that_earlier_edits_cannot_be_undone(host: Place) -> None:
    put(host, "x", b"a")
    history = [Message.tool_message("edited", "str_replace_editor", "c1")]
    with pytest.raises(ToolError, match="before the session was resumed"):
        await StrReplaceEditor().execute(context=host.context(history=history), command="undo_edit", path="x")


async def test_two_edits_at_once_of_one_file_are_both_made(host: Place) -> None:
    put(host, "x", b"a b")
    await asyncio.gather(
        edit(host, "str_replace", "x", old_str="a", new_str="A"),
        edit(host, "str_replace", "./x", old_str="b", new_str="B"),
    )
    assert got(host, "x") == b"A B"
    await edit(host, "undo_edit", "x")
    await edit(host, "undo_edit", "x")
    assert got(host, "x") == b"a b"


async def test_a_cancelled_edit_is_either_made_and_undoable_or_not_made(host: Place) -> None:
    for wait in range(12):
        put(host, "x", b"a")
        task = asyncio.create_task(edit(host, "str_replace", "x", old_str="a", new_str="b"))
        for _ in range(wait):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        if got(host, "x") == b"b":
            await edit(host, "undo_edit", "x")
        assert got(host, "x") == b"a"


def test_actions_tell_reading_from_writing() -> None:
    tool = StrReplaceEditor()
    (view,) = tool.actions({"command": "view", "path": "a"})
    assert (view.kind, view.resource, view.repeatable) == ("read", "a", True)
    (create,) = tool.actions({"command": "create", "path": "a"})
    assert (create.kind, create.resource, create.repeatable) == ("write", "a", False)
    for command in ("str_replace", "insert", "undo_edit"):  # what they answer shows lines of the file
        assert [(action.kind, action.resource) for action in tool.actions({"command": command, "path": "a"})] == [
            ("write", "a"),
            ("read", "a"),
        ]


# Others who write, and other names


async def _append_before_the_write(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a program inside add a line between the editor's read and its write."""
    read = place.sandbox.read

    async def read_and_be_overtaken(path: str, **how: Any) -> bytes:
        data = await read(path, **how)
        await place.sandbox.exec(["sh", "-c", "echo theirs >> x"])
        return data

    monkeypatch.setattr(place.sandbox, "read", read_and_be_overtaken)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("str_replace", {"old_str": "one", "new_str": "1"}),
        ("insert", {"insert_line": 0, "new_str": "zero"}),
        ("undo_edit", {}),
    ],
)
async def test_what_somebody_else_wrote_meanwhile_is_not_overwritten(
    place: Place, monkeypatch: pytest.MonkeyPatch, command: str, arguments: dict[str, Any]
) -> None:
    put(place, "x", b"one\ntwo\n")
    await edit(place, "str_replace", "x", old_str="two", new_str="2")
    with monkeypatch.context() as patch:
        await _append_before_the_write(place, patch)
        message = await refused(place, command, "x", **arguments)
    assert "changed meanwhile" in message
    assert "view it again" in message
    assert got(place, "x") == b"one\n2\ntheirs\n"
    assert [entry.path for entry in await place.sandbox.list(".")] == ["x"]


async def test_undoing_a_creation_does_not_remove_what_somebody_else_added(
    host: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await edit(host, "create", "x", file_text="mine\n")
    await _append_before_the_write(host, monkeypatch)
    assert "changed meanwhile" in await refused(host, "undo_edit", "x")
    assert got(host, "x") == b"mine\ntheirs\n"


async def test_an_edit_of_a_file_with_several_names_changes_one_and_says_so(place: Place) -> None:
    put(place, "x", b"old\n")
    (place.workspace / "y").hardlink_to(place.workspace / "x")
    result = await edit(place, "str_replace", "x", old_str="old", new_str="new")
    assert "2 names (hard links)" in str(result.system)
    assert (got(place, "x"), got(place, "y")) == (b"new\n", b"old\n")
    assert (await edit(place, "str_replace", "x", old_str="new", new_str="newer")).system is None


async def test_a_huge_wide_file_is_refused_as_its_lines_cannot_be_counted(host: Place) -> None:
    put(host, "x", ("line\n" * 2_000_000).encode("utf-16"))
    assert "convert it first" in await refused(host, "view", "x")


# Hostile sizes: the event loop goes on, and nobody waits for long


def _rows(change: bool) -> bytes:
    return b"".join(b"%s row %d of many\n" % (b"new" if change and n % 2 else b"old", n) for n in range(3000))


_LONG = b"x = [" + b"1234, " * 66_000 + b"]\n"
_SAME = b"    return value\n" * 20_000
_SPACED = b"a " * 200_000

HOSTILE: dict[str, tuple[bytes, dict[str, Any]]] = {
    "a near miss in 20,000 lines": (
        b"".join(b"    result_%d = compute(first_%d, second_%d)\n" % (n, n, n) for n in range(20_000)),
        {"old_str": "    result_77 = compute(first_77, secnd_77)", "new_str": ""},
    ),
    "a near miss in 20,000 lines of one kind": (
        b"".join(b"%05d " % n * 30 + b"\n" for n in range(20_000)),
        {"old_str": "0 " + "12345 " * 29, "new_str": ""},
    ),
    "1,500 alternating rows": (
        _rows(False),
        {"old_str": _rows(False).decode(), "new_str": _rows(True).decode()},
    ),
    "20,000 equal lines, half of them changed": (
        _SAME,
        {"old_str": _SAME.decode(), "new_str": "    return value\n    return other\n" * 10_000},
    ),
    "a line of 400 KB": (_LONG, {"old_str": "]", "new_str": "] # end"}),
    "a near miss in a line of 400 KB": (_LONG, {"old_str": "1234,  1234, 12345", "new_str": ""}),
    "a near miss as long as a line of 400 KB": (_LONG, {"old_str": "y" + _LONG.decode()[1:], "new_str": ""}),
    "words that almost repeat": (_SPACED, {"old_str": "a  " * 1500 + "b", "new_str": ""}),
    "white space without end": (b" " * 400_000 + b"x", {"old_str": " \t x y", "new_str": ""}),
    "a thousand edits": (
        b"".join(b"line %d.\n" % n for n in range(20_000)),
        {"edits": [{"old_str": f"line {n}.", "new_str": f"LINE {n}."} for n in range(0, 20_000, 20)]},
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
async def test_hostile_sizes_neither_stop_the_loop_nor_take_long(host: Place, case: str) -> None:
    before, arguments = HOSTILE[case]
    put(host, "x", before)
    await host.sandbox.exec(["true"])
    loop = asyncio.get_running_loop()
    lag = 0.0

    async def heartbeat() -> None:
        nonlocal lag
        while True:
            due = loop.time() + 0.01
            await asyncio.sleep(0.01)
            lag = max(lag, loop.time() - due)

    beating = asyncio.create_task(heartbeat())
    begun, used = loop.time(), time.process_time()
    with contextlib.suppress(ToolError):
        await edit(host, "str_replace", "x", **arguments)
    taken = min(loop.time() - begun, time.process_time() - used)  # other processes of a busy machine do not count
    beating.cancel()
    assert lag < 0.5
    assert taken < 2


async def test_a_folder_of_thousands_of_similar_names_is_no_trap(host: Place) -> None:
    for n in range(1500):
        put(host, "".join(random.Random(n).sample("abcdef" * 30, 180)), b"")
    begun = time.process_time()
    message = await refused(host, "view", "fedcba" * 30)
    assert "does not exist" in message
    put(host, "report_final.txt", b"")
    assert "Did you mean report_final.txt" in await refused(host, "view", "report_fnal.txt")
    assert time.process_time() - begun < 2


# What only looks the same


@pytest.mark.parametrize(
    ("text", "old", "parts"),
    [
        ("say ‘hi’ – now\n", "say 'hi' - now", ("line 1", "U+2018", "U+0027 APOSTROPHE")),
        ("cafe\u0301 = 1\n", "café = 1", ("line 1", "U+00E9")),
        ("one\ncafé = 1\n", "cafe\u0301 = 1", ("line 2", "U+0065")),
        ("pаypal\n", "paypal", ("U+0430 CYRILLIC SMALL LETTER A", "U+0061")),
        ("pay\n", "pa\u200by", ("U+200B ZERO WIDTH SPACE",)),
        ("pa\u200by\n", "pay", ("U+200B ZERO WIDTH SPACE",)),
        ("a\nfoo(ｘ)\nb\n", "a\nfoo(x)\nb", ("line 1", "Line 2", "U+FF58")),
        ("foo\u00a0bar\n", "foo bar", ("other white space", "'foo\\xa0bar'")),
        ("if x:\n\treturn 1\n", "if x:\n    return 1", ("other white space", "'\\treturn 1'", "line 2")),
        ("\tif x:\n\t\treturn 1\n", "if x:\n\treturn 1", ("other white space", "line 2", "'\\t\\treturn 1'")),
    ],
)
async def test_a_near_miss_that_the_eye_takes_for_a_match_is_named(
    host: Place, text: str, old: str, parts: tuple[str, ...]
) -> None:
    put(host, "x", text.encode())
    message = await refused(host, "str_replace", "x", old_str=old, new_str="")
    for part in parts:
        assert part in message


@pytest.mark.parametrize("old", ["  2: foo bar\n  3: baz", "2→foo bar", "   2 | foo bar\n   3 | baz", "2\tfoo  bar"])
async def test_line_numbers_are_recognised_whatever_stands_behind_them(host: Place, old: str) -> None:
    put(host, "x", b"a\nfoo bar\nbaz\n")
    assert "line numbers" in await refused(host, "str_replace", "x", old_str=old, new_str="")


async def test_parameters_that_were_filled_in_with_nothing_are_no_contradiction(host: Place) -> None:
    put(host, "x", b"a\n")
    await edit(host, "str_replace", "x", old_str="a", new_str="b", edits=[])
    await edit(host, "str_replace", "x", old_str="", new_str="", edits=[{"old_str": "b", "new_str": "c"}])
    assert got(host, "x") == b"c\n"
