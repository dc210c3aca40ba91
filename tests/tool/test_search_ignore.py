"""Ignore files as git reads them: a table, and generated trees on which git itself is asked."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from handwork.tool.search_inside.ignore import Rules
from handwork.tool.search_inside.walk import Levels, Walk, above


def files(root: Path) -> list[str]:
    return [found.path for found in Walk(str(root), Levels()) if found.kind == "file"]


def put(root: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("pattern", "path", "folder", "said"),
    [
        ("a", "a", False, True),
        ("a", "x/a", False, True),
        ("a", "ab", False, None),
        ("/a", "x/a", False, None),
        ("/a", "a", False, True),
        ("a/b", "a/b", False, True),
        ("a/b", "x/a/b", False, None),
        ("a/", "a", False, None),
        ("a/", "x/a", True, True),
        ("*.o", "x/y.o", False, True),
        ("*.o", "x/y.o.c", False, None),
        ("*.tar.gz", "a.b.tar.gz", False, True),
        ("*.o", ".o", False, True),
        ("x*z", "xyz", False, True),
        ("x*y*z*", "x1y2z3", False, True),
        ("x*y*z*", "x1z2y3", False, None),
        ("*/c", "b/c", False, True),
        ("*/c", "a/b/c", False, None),
        ("**/c", "a/b/c", False, True),
        ("a/**", "a/b/c", False, True),
        ("a/**", "a", True, None),
        ("a/**/c", "a/c", False, True),
        ("a/**/c", "a/x/y/c", False, True),
        ("a**c", "axxc", False, True),
        ("a**c", "a/c", False, None),
        ("?.txt", "a.txt", False, True),
        ("?.txt", "ab.txt", False, None),
        ("[ab].txt", "b.txt", False, True),
        ("[!ab].txt", "b.txt", False, None),
        ("[^ab].txt", "c.txt", False, True),
        ("[a-c]x", "bx", False, True),
        ("[]]x", "]x", False, True),
        ("a[/]b", "a/b", False, None),
        ("\\#x", "#x", False, True),
        ("\\!x", "!x", False, True),
        ("#x", "#x", False, None),
        ("a\\*b", "a*b", False, True),
        ("a\\*b", "axb", False, None),
        ("a  ", "a", False, True),
        ("a\\ ", "a ", False, True),
        ("!a", "a", False, False),
        ("a\r", "a", False, True),
        ("/", "a", False, None),
        ("a.b", "axb", False, None),
        ("(a|b)+", "(a|b)+", False, True),
        ("[z-a]", "b", False, None),
        ("//a", "a", False, None),
        ("a//b", "a/b", False, None),
        ("?", "ü", False, True),
        ("[", "[", False, None),
    ],
)
def test_a_pattern_fits_as_git_says(pattern: str, path: str, folder: bool, said: bool | None) -> None:
    assert Rules(pattern).says(path, folder) is said


def test_the_last_pattern_decides(tmp_path: Path) -> None:
    assert Rules("*.txt\n!a.txt\n").says("a.txt", False) is False
    assert Rules("!a.txt\n*.txt\n").says("a.txt", False) is True


def test_deeper_files_and_dot_ignore_come_first(tmp_path: Path) -> None:
    put(tmp_path, **{".gitignore": "*.log\n", "a/.gitignore": "!x.log\n", "a/x.log": "", "a/y.log": "", "b/x.log": ""})
    assert files(tmp_path) == ["a/x.log"]
    put(tmp_path, **{".ignore": "!y.log\nx.log\n"})
    assert files(tmp_path) == ["a/y.log"]


def test_a_repository_inside_of_another_has_rules_of_its_own(tmp_path: Path) -> None:
    put(tmp_path, **{".gitignore": "*.log\n", "inner/.git/HEAD": "", "inner/x.log": "", "x.log": ""})
    assert files(tmp_path) == ["inner/x.log"]


def test_what_is_excluded_in_git_is_left_out_and_gitignore_comes_before_it(tmp_path: Path) -> None:
    put(tmp_path, **{".git/info/exclude": "a\nb\n", ".gitignore": "!b\n", "a": "", "b": ""})
    assert files(tmp_path) == ["b"]


def test_links_and_pipes_in_the_place_of_an_ignore_file_say_nothing(tmp_path: Path) -> None:
    put(tmp_path, patterns="*\n", x="")
    (tmp_path / ".gitignore").symlink_to("patterns")
    os.mkfifo(tmp_path / ".ignore")
    assert files(tmp_path) == ["patterns", "x"]


def test_hidden_files_are_left_out_unless_taken_back(tmp_path: Path) -> None:
    put(tmp_path, **{".hidden": "", ".github/a": "", "x": "", ".ignore": "!.github\n"})
    assert files(tmp_path) == [".github/a", "x"]


def test_a_folder_that_is_left_out_and_asked_for_is_searched(tmp_path: Path) -> None:
    put(tmp_path, **{".gitignore": "build/**\n/out\n", "build/a/x.o": "", "out/y": "", "src/z": ""})
    for asked, found in (("build", ["a/x.o"]), ("build/a", ["x.o"]), ("out", ["y"]), ("src", ["z"])):
        root = str(tmp_path / asked)
        walked = [one.path for one in Walk(root, above(str(tmp_path), root)) if one.kind == "file"]
        assert walked == found


def test_what_the_folders_above_say_counts_below(tmp_path: Path) -> None:
    put(tmp_path, **{".gitignore": "*.o\n/src/gen\n", "src/x.o": "", "src/gen/y": "", "src/z": ""})
    root = str(tmp_path / "src")
    assert [one.path for one in Walk(root, above(str(tmp_path), root))] == ["z"]


def test_a_hostile_pattern_takes_no_time() -> None:
    rules = Rules("\n".join(["a*" * 60 + "b", "*a" * 60 + "b", "/x/" + "*a" * 40 + "/**/c"]))
    began = time.monotonic()
    assert rules.says("a" * 255, False) is None
    assert rules.says("x/" + "a" * 255 + "/d", False) is None
    assert time.monotonic() - began < 2


def test_a_huge_ignore_file_is_read_in_part(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_bytes(b"x\n" + b"y" * 5_000_000)
    put(tmp_path, x="", z="")
    assert files(tmp_path) == ["z"]


_NAMES = ["a", "b", "ab", "a.o", "b.txt", "A", "[x]", "a b", "#c", "!d", "x-y"]
_PIECES = ["a", "b", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[a-b]", ".o", ".txt", "\\*", " ", "\\ ", "x", "-"]


def _tree(root: Path, chance: random.Random, depth: int) -> None:
    root.mkdir()
    for name in chance.sample(_NAMES, chance.randint(2, 6)):
        if depth and chance.random() < 0.5:
            _tree(root / name, chance, depth - 1)
        else:
            (root / name).write_text("")
    if chance.random() < 0.7:
        lines = [
            chance.choice(["", "", "!", "/"])
            + "".join(chance.choices(_PIECES, k=chance.randint(1, 4)))
            + chance.choice(["", "", "/"])
            for _ in range(chance.randint(1, 5))
        ]
        (root / ".gitignore").write_text("\n".join(lines) + "\n")


@pytest.mark.skipif(shutil.which("git") is None, reason="no git on this machine to ask")
@pytest.mark.parametrize("seed", range(12))
def test_on_generated_trees_git_says_the_same(tmp_path: Path, seed: int) -> None:
    root, environ = tmp_path / "tree", {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    environ["XDG_CONFIG_HOME"] = str(tmp_path)
    _tree(root, random.Random(seed), 3)
    subprocess.run(["git", "init", "-q", "--template="], cwd=root, check=True, env=environ)
    command = ["git", "ls-files", "-z", "--others", "--exclude-standard"]
    said = subprocess.run(command, cwd=root, check=True, capture_output=True, env=environ).stdout.decode().split("\0")
    assert _named(files(root)) == _named(said)


def _named(paths: list[str]) -> list[str]:
    return sorted(path for path in paths if path and not path.endswith(".gitignore"))
