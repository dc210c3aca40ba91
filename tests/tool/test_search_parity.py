"""With ripgrep or without, a search has the same result: on a tree that holds everything that could make a difference."""

from __future__ import annotations

import os
import random
import shutil
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from handwork.tool.search_inside import ripgrep
from handwork.tool.search_inside.main import Search
from handwork.tool.search_inside.query import Query

RG = shutil.which("rg")
needs_ripgrep = pytest.mark.skipif(RG is None, reason="no ripgrep on this machine to compare with")


def search(root: Path, query: str, *, with_ripgrep: bool, page: int = 1, kind: str = "content") -> dict[str, Any]:
    found = Search(
        {
            "query": query,
            "kind": kind,
            "page": page,
            "ripgrep": with_ripgrep,
            "root": str(root),
            "workspace": str(root),
            "alone": root.is_file(),
        }
    )
    found.run()
    return found.report


def put(root: Path, name: str | bytes, data: bytes) -> None:
    path = root / os.fsdecode(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


LINES = [
    b"def compute(first, second):\n",
    b"\treturn first + second\r\n",
    b"caf\xe9 au lait\n",
    "größe = 'ÄÖÜ'\n".encode(),
    b"x = foo$bar\n",
    b"foo bar\n",
    b"FOO  BAR\n",
    b"a\rb\n",
    b"\n",
    b" \x1c \n",
    b"[section] {1} (2) |3| ^4 *5 +6 ?7 .8 \\9 ~10 #11 &12 -13\n",
    b"aab\n",
    b"abc" * 150 + b"needle" + b"abc" * 150 + b"\n",
]
QUERIES = [
    r"compute",
    r"COMPUTE",
    r"Compute",
    r"foo.bar",
    r"foo\s+bar",
    r"foo\sbar",
    r"^foo",
    r"bar$",
    r"^$",
    r"^\s*$",
    r"a.b",
    r"caf.",
    r"café",
    r"gr..e",
    r"größe",
    r"ÄÖ",
    r"äö",
    r"\w+\s=\s",
    r"\bfoo\b",
    r"\$bar",
    r"[section]",
    r"\[section\]",
    r"(2)",
    r"\(2\)",
    r"needle",
    r"a{2}b",
    r"a{2,}",
    r"aa?b",
    r"a+?b",
    r"x|compute",
    r"(?:foo|FOO)\s",
    r"[^a-z]+",
    r"[\w]+\.",
    r"(?<=foo).bar",
    r"foo(?!\$)",
    r"(a)\1",
    r"(",
    r"*foo",
    r"a**",
    r"[[:alpha:]]",
    r"\Afoo",
    r"bar\Z",
    r"\x66oo",
    r"\~10",
    r"\#11",
    r"-13",
    r"&12",
    r"\Sb",
    r"\D\d",
    r".",
    r"\W\W\W",
    r"q",
    r"foo$bar",
    r"a\rb",
    r"[é]",
    r"{1}",
    r"\{1\}",
    r"\\9",
    r"\^4.\*5",
    r"(?i)FOO",
    r"a++b",
]


def tree(root: Path) -> None:
    chance = random.Random(7)
    for number in range(25):
        folder = "/".join(chance.choices(["a", "b", "c d", "-e", "é"], k=chance.randint(0, 3)))
        put(root, f"{folder}/f{number}.txt".lstrip("/"), b"".join(chance.choices(LINES, k=chance.randint(0, 12))))
    put(root, ".gitignore", b"*.log\n/b/a\n!keep.log\n")
    put(root, "a/.gitignore", b"f1*.txt\n!f11.txt\n")
    put(root, "keep.log", b"compute foo bar\n")
    put(root, "drop.log", b"compute foo bar\n")
    put(root, ".hidden", b"compute\n")
    put(root, "inner/.git/HEAD", b"compute\n")
    put(root, "inner/x.log", b"compute\n")
    put(root, "-e/-v", b"compute\n")
    put(root, b"raw\xff\n.txt", b"compute foo bar\n")
    put(root, "binary", b"compute\n\0" + b"x" * 100)
    put(root, "late-nul", b"compute\n" * 1100 + b"\0\nfoo bar\n")
    put(root, "wide", "\ufeffcompute größe\r\nfoo bar\n".encode("utf-16-le"))
    put(root, "wide32", "compute größe\nfoo bar".encode("utf-32"))
    put(root, "marked", b"\xef\xbb\xbfcompute\nfoo\n")
    put(root, "unended", b"compute\nfoo bar")
    put(root, "crlf", b"foo bar\r\n\r\ncompute\r\n")
    put(root, "one-line", b"z" * 5000 + b"needle" + b"z" * 100)
    os.mkfifo(root / "pipe")
    (root / "link").symlink_to("unended")
    (root / "folder-link").symlink_to("a")
    (root / "outside").symlink_to("/etc")


@needs_ripgrep
def test_every_query_finds_the_same_with_ripgrep_and_without(tmp_path: Path) -> None:
    tree(tmp_path)
    used = 0
    for query in QUERIES:
        ours, theirs = (search(tmp_path, query, with_ripgrep=way) for way in (False, True))
        used += theirs.pop("ripgrep")
        ours.pop("ripgrep")
        # what ripgrep has sorted out is never opened, so nobody has seen that it is binary
        ours.pop("binary"), theirs.pop("binary")
        assert ours == theirs, query
    assert used > len(QUERIES) // 2


@needs_ripgrep
@pytest.mark.slow
def test_on_20000_files_and_one_of_100_megabytes_both_end_with_the_same(tmp_path: Path) -> None:
    for number in range(20_000):
        put(tmp_path, f"d{number % 100}/e{number % 7}/f{number}.py", b"import os\ndef f%d(): pass\n" % number)
    with (tmp_path / "big.log").open("wb") as file:
        for _ in range(100):
            file.write(b"a line of a log with nothing in it\n" * 30_000)
        file.write(b"the needle\n")
    assert (tmp_path / "big.log").stat().st_size > 100_000_000
    for query in ("def f1234\\b", "needle", "import os", "(?<=def )f77"):
        began = time.monotonic()
        ours, theirs = (search(tmp_path, query, with_ripgrep=way) for way in (False, True))
        assert time.monotonic() - began < 40
        assert {**ours, "ripgrep": 0} == {**theirs, "ripgrep": 0}, query


def test_the_pattern_for_ripgrep_is_left_out_where_the_two_could_differ() -> None:
    for query in (
        "(?<=a)b",
        "(a)\\1",
        "[[:alpha:]]",
        "é",
        "a++",
        "\\Aa",
        "(?i)a",
        "(?P<n>a)",
        "\\x41",
        "a{,3}",
        "[a&&b]",
    ):
        assert Query(query).ripgrep is None, query
    assert Query("a.b$").ripgrep == r"a[^\n]b(?:\r?$)"
    assert Query("(").ripgrep == r"\("


def test_a_ripgrep_that_lies_in_the_workspace_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, outside = tmp_path / "w", tmp_path / "bin"
    for folder in (workspace / "bin", outside):
        folder.mkdir(parents=True)
        (folder / "rg").write_text("#!/bin/sh\ntouch ran\n")
        (folder / "rg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{workspace}/bin:{workspace}:bin:.:")
    assert ripgrep.find(str(workspace)) is None
    monkeypatch.setenv("PATH", str(outside))
    assert ripgrep.find(str(workspace)) == f"{outside}/rg"
    (workspace / "bin/rg").unlink()
    (workspace / "bin/rg").symlink_to(outside / "rg")
    monkeypatch.setenv("PATH", f"{workspace}/bin")
    assert ripgrep.find(str(workspace)) is None  # what it leads to may be another thing by the time it is run
    monkeypatch.setenv("PATH", str(outside))
    (workspace / "bin/rg").unlink()
    (workspace / "bin/rg").write_text("#!/bin/sh\ntouch ran\n")
    (workspace / "bin/rg").chmod(0o755)
    (outside / "rg").unlink()
    (outside / "rg").symlink_to(workspace / "bin/rg")
    assert ripgrep.find(str(workspace)) is None


@pytest.mark.parametrize("script", ["exit 2", "exit 127", "kill -9 $$", "echo error >&2; exit 2"])
def test_a_ripgrep_that_fails_means_that_everything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/rg"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    put(tmp_path, "w/x", b"needle\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    assert search(tmp_path / "w", "needle", with_ripgrep=True)["matches"] == 1
