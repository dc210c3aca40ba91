"""What of a repository's settings runs something is found in every form in which git reads them."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from handwork.sandbox.git_config import entries, paths, programs


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n\tfsmonitor = /tmp/evil",
        "[core] fsmonitor=evil",
        "[CORE]\nFSMonitor = evil",
        "[core]\nfsmonitor = \"evil # not a comment\"",
        "[core]\nfsmonitor = ev\\\nil",
        "[core] hooksPath = hooks",
        "\ufeff[core]\r\nsshCommand = evil\r\n",
        "[core]\npager = less; evil",
        '[filter "lfs"]\nclean = git-lfs clean -- %f',
        '[filter "x"]\nprocess = evil',
        "[filter.x]\nsmudge = evil",
        '[diff "x"]\ntextconv = evil',
        "[diff]\nexternal = evil",
        '[merge "x"]\ndriver = evil',
        "[alias]\nst = !evil",
        "[include]\npath = ../evil",
        '[includeIf "gitdir:/"]\npath = evil',
        "[credential]\nhelper = !evil",
        '[credential "https://x"]\nhelper = evil',
        "[gpg]\nprogram = evil",
        '[gpg "ssh"]\ndefaultKeyCommand = evil',
        "[sequence]\neditor = evil",
        "[pager]\nlog = evil",
        '[remote "origin"]\nuploadpack = evil',
        '[remote "origin"]\nurl = ext::sh -c evil',
        '[url "ext::sh -c evil "]\ninsteadOf = https://',
        '[submodule "x"]\nupdate = !evil',
        '[hook "x"]\ncommand = evil',
        "[interactive]\ndiffFilter = evil",
    ],
)  # fmt: skip
def test_what_runs_something_is_found(text: str) -> None:
    assert len(programs(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
        "[core]\nfsmonitor = true",
        "[core]\nfsmonitor = false # evil",
        "# [core]\n; fsmonitor = evil\n[user]\nname = core.fsmonitor",
        '[remote "origin"]\nurl = https://example.com/x.git\nfetch = +refs/heads/*:refs/remotes/origin/*',
        '[branch "main"]\nremote = origin\nmerge = refs/heads/main',
        '[submodule "x"]\nactive = true\nurl = https://example.com',
        "[alias]\nst = status",
        "[pager]\nlog = false",
        "",
        "[",
        "]]]\n= =\n[core\n\\",
    ],
)
def test_ordinary_settings_are_not(text: str) -> None:
    assert programs(text) == []


def test_hooks_and_included_files_are_named() -> None:
    text = '[core]\nhooksPath = .husky/_\n[include]\npath = a\n[includeIf "onbranch:x"]\npath = ../b\n'
    assert paths(text) == ([".husky/_"], ["a", "../b"])


_WORDS = st.sampled_from(
    [
        "[core]",
        '[a "b"]',
        "[alias]",
        "x",
        "hooksPath",
        "=",
        " ",
        "\n",
        "\r\n",
        "\\",
        "\\\n",
        '"',
        "#",
        ";",
        "\t",
        "\\n",
        '\\"',
    ]
)


@pytest.mark.skipif(not shutil.which("git"), reason="there is no git to compare with")
@example(text="[core]\n# a comment \\\nfsmonitor = evil\n")
@example(text="[core]\nx = 1 # a comment \\\nfsmonitor = evil\n")
@example(text="[alias]\nx = \\\\\\\n[zzz]\nst = !evil\n")
@example(text='[a "B\\"c"]\nKey = "x \\"y\\" # z" w ; c\n[d]\n  e = f \\\n  g\n[H.i] j=k\\tl\nplain\n')
@given(text=st.lists(_WORDS, max_size=14).map(lambda words: "[core]\n" + "".join(words)))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_git_reads_is_what_is_read_here(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_bytes(text.encode())
    listed = subprocess.run(
        ["git", "config", "-f", "config", "--null", "--list"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if listed.returncode == 0:  # else git runs nothing, either
        rows = [line.partition("\n") for line in listed.stdout.split("\0")[:-1]]
        assert [(name, "".join(value.split())) for name, value in entries(text)] == [
            (name, "".join(value.split())) for name, _sign, value in rows
        ]


@pytest.mark.parametrize(
    "text",
    ["ab\\\n" * 250_000, "b = " + "\\n" * 500_000, "[a" + "\t" * 1_000_000, '[a "' + '\\"' * 500_000, "[" * 1_000_000],
    ids=["lines", "escapes", "blanks", "quotes", "brackets"],
)
@pytest.mark.timeout(20)
def test_a_megabyte_of_malice_is_read_in_a_moment(text: str) -> None:
    begun = time.process_time()
    programs(f"[a]\n{text}")
    assert time.process_time() - begun < 2
