"""Completion in real shells: what is offered, that it is quick, and that nothing but words ever comes out."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import shlex
import shutil
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.command import handwork
from tests.cli.terminal import Terminal
from tests.support.strict_server import StrictServer

from handwork.cli.completion.line import typed_line

SHELLS = [
    pytest.param(name, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed"))
    for name in ("bash", "zsh")
]
_START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
_PREPARE = {
    "bash": "bind 'set bell-style none'; bind 'set enable-bracketed-paste off'; PS1='rea''dy> '; . {script}",
    "zsh": "autoload -Uz compinit; compinit -u -D; PS1='rea''dy> '; . {script}",
}


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`handwork` on PATH, as an installation puts it there."""
    folder = tmp_path / "programs"
    folder.mkdir()
    file = folder / "handwork"
    file.write_text(f'#!/bin/sh\nexec {sys.executable} -m handwork "$@"\n')
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    return file


async def ask(*words: str, cwd: Path, shell: str = "zsh", **environ: str) -> list[str]:
    """The answer to a shell that has these words, the last one at the cursor."""
    ended = await handwork(*words, cwd=cwd, _HANDWORK_COMPLETE=shell, **environ)
    assert ended.err == ""
    return [line.partition("\t")[0] for line in ended.out.splitlines()]


async def in_bash(line: str, cwd: Path) -> list[str]:
    ended = await handwork(cwd=cwd, _HANDWORK_COMPLETE="bash", COMP_LINE=line, COMP_POINT=str(len(line.encode())))
    assert ended.err == ""
    return ended.out.splitlines()


async def test_commands_and_their_subcommands_are_offered(workspace: Path) -> None:
    assert {"run", "chat", "doctor", "sessions"} <= set(await ask("", cwd=workspace))
    assert await ask("doc", cwd=workspace) == ["doctor"]
    assert {"list", "show"} <= set(await ask("sessions", "", cwd=workspace))
    assert await ask("sessions", "li", cwd=workspace) == ["list"]


async def test_options_of_a_run_are_offered_before_a_task_after_it_and_without_the_command(workspace: Path) -> None:
    for words in (["--mod"], ["do it", "--mod"], ["run", "--mod"], ["run", "do it", "--mod"], ["chat", "--mod"]):
        assert await ask(*words, cwd=workspace) == ["--model"], words
    assert "--version" in await ask("--", cwd=workspace)
    assert "--version" not in await ask("run", "--", cwd=workspace)
    assert "--model" not in await ask("sessions", "list", "--", cwd=workspace)


async def test_an_option_that_was_given_is_not_offered_again_unless_it_may_be(workspace: Path) -> None:
    offered = await ask("run", "--net", "--image", "a.png", "--", cwd=workspace)
    assert "--net" not in offered
    assert "--image" in offered


async def test_choices_are_offered_as_a_word_of_their_own_and_behind_an_equals_sign(workspace: Path) -> None:
    assert {"auto", "bwrap", "host"} <= set(await ask("run", "--sandbox", "", cwd=workspace))
    assert await ask("--approve", "re", cwd=workspace) == ["read-only"]
    assert await ask("--approve=re", cwd=workspace) == ["--approve=read-only"]


async def test_agents_and_models_are_offered(workspace: Path) -> None:
    assert set(await ask("--agent", "", cwd=workspace)) >= {"manus", "swe"}
    assert await ask("--model", "deep", cwd=workspace) == []
    offered = await ask("--model", "deep", cwd=workspace, DEEPSEEK_API_KEY="sk-x")
    assert [name.partition(":")[0] for name in offered] == ["deepseek"]


async def test_sessions_are_offered_those_of_this_folder_first(workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with StrictServer(["Yes.", "Yes."]) as server:
        for folder, name in ((workspace, "here"), (other, "there")):
            ended = await handwork("run", "Say it", "--base-url", server.url, "--session", name, cwd=folder)
            assert ended.code == 0, ended.err
    assert await ask("run", "--session", "", cwd=workspace) == ["here", "there"]
    assert await ask("sessions", "show", "", cwd=other) == ["there", "here"]
    assert await ask("sessions", "show", "h", cwd=other) == ["here"]


async def test_servers_are_offered_wherever_one_is_named(workspace: Path, home: Path) -> None:
    entries = {"clock": {"command": "x", "args": ["--api-key", "s3cretvalue"]}, "web": {"url": "http://127.0.0.1:1"}}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": entries}))
    for words in (["mcp", "test"], ["mcp", "approve"], ["mcp", "remove"], ["mcp", "login"], ["run", "--mcp"]):
        assert await ask(*words, "", cwd=workspace) == ["clock", "web"], words
    ended = await handwork("mcp", "test", "", cwd=workspace, _HANDWORK_COMPLETE="zsh")
    assert ended.out == "clock\tx --api-key …\nweb\thttp://127.0.0.1:1\n"


async def test_without_a_store_none_is_made(workspace: Path, home: Path) -> None:
    assert await ask("run", "--session", "", cwd=workspace) == []
    assert "store.db" not in {entry.name for entry in os.scandir(home)}


async def test_files_and_folders_are_the_shells_own(workspace: Path) -> None:
    assert await ask("--config", "", cwd=workspace) == [":files"]
    assert await ask("--workspace=", cwd=workspace) == [":folders"]


async def test_nothing_but_words_comes_out_whatever_is_wrong(workspace: Path, home: Path) -> None:
    (home / "config.toml").write_text("[broken")
    (home / "store.db").write_text("no store")
    assert await ask("run", "--session", "", cwd=workspace) == []
    assert await ask("run", "--model", "", cwd=workspace) == []
    assert await ask("--approve", "a", cwd=workspace) == ["ask", "auto"]
    assert await ask("nonsense", "more", "", cwd=workspace) == []
    assert await ask("--", "--mod", cwd=workspace) == []


@pytest.mark.parametrize(
    ("line", "words", "word", "cut"),
    [
        ("handwork ", [], "", 0),
        ("handwork ru", [], "ru", 0),
        ("handwork  run  ", ["run"], "", 0),
        ("handwork 'do it' --mo", ["do it"], "--mo", 0),
        ('handwork "do \\"it\\"" x', ['do "it"'], "x", 0),
        ("handwork do\\ it ", ["do it"], "", 0),
        ("handwork --model openai:gp", ["--model"], "openai:gp", 7),
        ("handwork --model 'openai:gp", ["--model"], "openai:gp", 0),
        ("handwork --model=openai:gp", [], "--model=openai:gp", 15),
        ("handwork '' ", [""], "", 0),
    ],
)
def test_a_line_is_parted_as_bash_parts_it(line: str, words: list[str], word: str, cut: int) -> None:
    found = typed_line({"COMP_LINE": line + " more", "COMP_POINT": str(len(line))})
    assert (found.words, found.word, found.cut) == (words, word, cut)


async def test_bash_gets_of_a_word_with_colons_what_follows_the_last_one(workspace: Path) -> None:
    assert await in_bash("handwork --approve=re", workspace) == ["read-only"]


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_real_shell_completes_a_command_an_option_a_choice_and_a_file(
    shell: str, program: Path, workspace: Path
) -> None:
    (workspace / "settings.toml").write_text("")
    script = workspace / "script"
    script.write_text((await handwork("--show-completion", shell, cwd=workspace)).out)
    terminal = await _shell(shell, workspace)
    try:
        await _complete_all(terminal, _PREPARE[shell].format(script=script))
    finally:
        if terminal.process.returncode is None:
            terminal.process.kill()
        await terminal.end()
    assert "rror" not in terminal.plain


async def _complete_all(terminal: Terminal, prepare: str) -> None:
    terminal.type(prepare + "\r")
    await terminal.expect("ready> ")
    for typed, becomes in (
        ("handwork doc\t", "doctor"),
        ("handwork 'do it' --appr\t", "--approve"),
        ("handwork run --approve re\t", "read-only"),
        ("handwork run --approve=re\t", "--approve=read-only"),
        ("handwork run --config sett\t", "settings.toml"),
    ):
        terminal.type(typed)
        await terminal.expect(becomes)
        terminal.type("\x15\r")
        await terminal.expect("ready> ")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
async def test_fish_offers_words_with_what_they_mean(program: Path, workspace: Path) -> None:
    (workspace / "settings.toml").write_text("")
    script = workspace / "script"
    script.write_text((await handwork("--show-completion", "fish", cwd=workspace)).out)

    async def offered(line: str) -> list[str]:
        asked = f"source {script}; complete -C {shlex.quote(line)}"
        process = await asyncio.create_subprocess_exec(
            "fish", "--no-config", "-c", asked, cwd=workspace, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, err = await asyncio.wait_for(process.communicate(), 60)
        assert err == b""
        return out.decode().splitlines()

    assert await offered("handwork doc") == [
        "doctor\tLook whether everything works here, and say what to do where it does not."
    ]
    assert [line.partition("\t")[0] for line in await offered("handwork 'do it' --appr")] == ["--approve"]
    assert await offered("handwork run --approve re") == ["read-only"]
    assert await offered("handwork run --approve=re") == ["--approve=read-only"]
    assert await offered("handwork run --config sett") == ["settings.toml"]


async def _shell(shell: str, cwd: Path) -> Terminal:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = await asyncio.create_subprocess_exec(
        *_START[shell],
        cwd=cwd,
        env={**os.environ, "TERM": "xterm"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    return Terminal(process, master)


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


async def test_installing_adds_one_line_and_keeps_the_rest_byte_for_byte(
    own_home: Path, home: Path, workspace: Path
) -> None:
    before = b"# mine \xff\nexport A=1"
    (own_home / ".bashrc").write_bytes(before)
    for _ in range(2):
        ended = await handwork("--install-completion", "bash", cwd=workspace)
        assert (ended.code, ended.out) == (0, "")
        assert f"{own_home}/.bashrc" in ended.err
    after = (own_home / ".bashrc").read_bytes()
    assert after.startswith(before + b"\n[ -r ")
    assert after.count(b"\n") == 3
    assert "complete -F" in (home / "completion.bash").read_text()


async def test_zsh_and_fish_have_their_own_places(own_home: Path, workspace: Path) -> None:
    assert (await handwork("--install-completion=zsh", cwd=workspace)).code == 0
    assert ". " in (own_home / ".zshrc").read_text()
    assert (await handwork("--install-completion", "fish", cwd=workspace)).code == 0
    assert "complete -c handwork" in (own_home / ".config/fish/completions/handwork.fish").read_text()


async def test_a_shell_that_has_no_completion_is_said(own_home: Path, workspace: Path) -> None:
    ended = await handwork("--show-completion", "tcsh", cwd=workspace)
    assert (ended.code, ended.out) == (2, "")
    assert "There is no completion for 'tcsh'" in ended.err
    assert "--install-completion bash" in ended.err
    ended = await handwork("--show-completion", cwd=workspace, SHELL="/usr/bin/fish")
    assert "__handwork_complete" in ended.out


async def test_a_start_file_that_cannot_be_written_names_the_line_to_add(own_home: Path, workspace: Path) -> None:
    (own_home / ".bashrc").mkdir()
    ended = await handwork("--install-completion", "bash", cwd=workspace)
    assert ended.code == 2
    assert ".bashrc cannot be written" in ended.err
    assert "add this line to your shell's start file: [ -r " in ended.err
