"""What of a repository's settings runs something is found in every form in which git reads them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

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


@pytest.mark.skipif(not shutil.which("git"), reason="there is no git to compare with")
def test_values_are_what_git_reads(tmp_path: Path) -> None:
    text = '[a "B\\"c"]\nKey = "x \\"y\\" # z" w ; c\n[d]\n  e = f \\\n  g\n[H.i] j=k\\tl\nplain\n'
    (tmp_path / "config").write_text(text)
    listed = subprocess.run(
        ["git", "config", "-f", "config", "--list"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    ours = {value for _name, value in entries(text) if value}
    assert ours == {line.partition("=")[2] for line in listed if "=" in line}
