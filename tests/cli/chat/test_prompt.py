"""The prompt: lines, pastes, history, widths, terminals that can do less."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from tests.cli.chat.window import Window
from tests.cli.command import handwork
from tests.support.fault_server import Fault, delta, stream
from tests.support.strict_server import StrictServer, tool


def words(server: StrictServer) -> list[str]:
    return [m["content"] for m in server.requests[-1]["messages"] if m["role"] == "user"]


@pytest.mark.parametrize("key", ["\x1b\r", "\n", "\\\r", "\x1b[13;2u", "\x1b[27;2;13~"])
async def test_ways_to_a_new_line(workspace: Path, key: str) -> None:
    async with StrictServer(["Read."]) as server:
        window = await Window.chat(server, cwd=workspace)
        window.type(f"one{key}")
        await window.until(lambda: window.prompt == "> one")
        await window.send("two")
        await window.shows("finished")
        assert await window.leave() == 0
    assert "one\ntwo" in words(server)
    assert "> one\n  two\n" in window.text


async def test_a_paste_of_several_lines_is_one_input_and_a_long_one_a_mark(workspace: Path) -> None:
    long = "\n".join(f"row {number}" for number in range(100))
    async with StrictServer(["Read.", "Read too."]) as server:
        window = await Window.chat(server, cwd=workspace)
        window.type("\x1b[200~a\r\nb\x1b[201~")
        await window.until(lambda: "  b" in window.shown)
        assert server.requests == []
        window.type("\r")
        await window.shows("finished")
        assert "a\nb" in words(server)
        window.type(f"see \x1b[200~{long}\x1b[201~")
        await window.shows("> see [pasted #1: 100 lines,")
        window.type("\r")
        await window.shows("finished", 2)
        assert await window.leave() == 0
    assert f"see {long}" in words(server)


async def test_what_was_typed_is_there_in_the_next_chat_for_its_owner_alone(workspace: Path, home: Path) -> None:
    async with StrictServer(["One.", "Two.", "Three."]) as server:
        window = await Window.chat(server, cwd=workspace)
        for number, text in enumerate(["remember me", "my password: hunter2hunter2"], 1):
            await window.send(text)
            await window.shows("finished", number)
        assert await window.leave() == 0
        file = home / "chat_history"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "hunter2" not in file.read_text()
        window = await Window.chat(server, cwd=workspace)
        window.type("\x1b[A")
        await window.until(lambda: window.prompt == "> remember me")
        window.type("\x03")
        await window.until(lambda: window.prompt == ">")
        window.type("\x12")
        await window.shows("I-search")
        window.type("ember")
        await window.until(lambda: window.prompt == "> remember me")
        window.type("\r\r")
        await window.shows("finished")
        assert await window.leave() == 0
    assert "remember me" in words(server)


@pytest.mark.parametrize("columns", [60, 120])
async def test_a_new_width_leaves_no_line_twice_and_none_cut(workspace: Path, columns: int) -> None:
    answer = stream(delta(content="A first line.\nAnd a second that still goes"), Fault.SILENCE)
    async with StrictServer([answer, "Over."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Say it")
        await window.shows("still goes")
        window.type("a draft")
        await window.until(lambda: window.prompt == "> a draft")
        window.resize(30, columns)
        window.type("!")
        await window.until(lambda: window.prompt == "> a draft!")
        for part in ("A first line.", "And a second that still goes", "> a draft!", "waiting"):
            assert window.text.count(part) <= 1
        assert window.text.count("A first line.") == 1
        window.type("\x1b")
        await window.shows("cancelled")
        window.type("\x03\x04")
        assert await window.end() == 0


@pytest.mark.parametrize("rows", [5, 10, 24])
async def test_a_terminal_with_few_rows_keeps_the_line_that_is_typed(workspace: Path, rows: int) -> None:
    answer = stream(delta(content="| a |\n" * 40), Fault.SILENCE)
    for number in range(20):
        (workspace / f"file{number}").touch()
    async with StrictServer([answer]) as server:
        window = await Window.chat(server, cwd=workspace, rows=rows)
        await window.send("Say it")
        await window.shows("| a |")
        for number in range(6):
            await window.send(f"and {number}")
        window.type("line\n" * 12 + "see @file")
        await window.until(lambda: "  see @file" in window.shown)
        assert "too small" not in window.text
        window.process.terminate()
        assert await window.end() == 0


async def test_wide_and_combining_letters_are_drawn_right(workspace: Path) -> None:
    text = "日本語のテキスト" * 12 + " e\u0301nd"
    async with StrictServer([text]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("漢字を")
        await window.shows("> 漢字を")
        await window.shows("finished")
        assert await window.leave() == 0
    assert "".join(window.text.split("\n")).count("日本語のテキスト") == 12


async def test_no_color_means_none(workspace: Path) -> None:
    async with StrictServer([tool("bash", command="echo a"), "**Done.**\n```python\nx = 1\n```"]) as server:
        window = await Window.chat(server, cwd=workspace, NO_COLOR="1")
        await window.send("Do it")
        await window.shows("finished")
        assert await window.leave() == 0
    colours = [code for code in re.findall(r"\x1b\[([0-9;]*)m", window.seen) if re.search(r"(^|;)[349]\d", code)]
    assert colours == []


async def test_an_encoding_without_our_marks_gets_others(workspace: Path) -> None:
    async with StrictServer([tool("bash", command="echo a"), "- Done."]) as server:
        window = await Window.chat(server, cwd=workspace, PYTHONIOENCODING="ascii")
        await window.send("Do it")
        await window.shows("finished - 2 steps")
        assert await window.leave() == 0
    assert "> bash  echo a\n  L a\n* Done." in window.text
    assert window.seen.isascii()


async def test_a_dumb_terminal_gets_lines(workspace: Path) -> None:
    async with StrictServer([tool("bash", command="echo a"), "Done.", "More."]) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        window = await Window.run(*model, cwd=workspace, TERM="dumb")
        await window.expect("> ")
        await window.send("Do it")
        await window.expect("finished")
        await window.expect("> ")
        await window.send("/help")
        await window.expect("Ctrl-C")
        await window.expect("> ")
        await window.send("And \\")
        await window.send("more")
        await window.expect("finished")
        await window.expect("> ")
        window.type("\x04")
        assert await window.end() == 0
    assert "And \nmore" in words(server)
    assert "\x1b" not in window.seen
    assert window.seen.count("Do it") == 1
    assert not {"Esc", "Tab", "Ctrl-V", "Ctrl-R"} & set(window.seen.split())


async def test_a_task_given_with_the_command_is_shown_on_a_dumb_terminal_too(workspace: Path) -> None:
    async with StrictServer(["Done."]) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        window = await Window.run("chat", "Begin with this", *model, cwd=workspace, TERM="dumb")
        await window.expect("> Begin with this")
        await window.expect("finished")
        await window.expect("> ")
        window.type("\x04")
        assert await window.end() == 0


async def test_a_chat_declares_only_what_it_has(workspace: Path) -> None:
    ended = await handwork("chat", "--help", cwd=workspace)
    assert "--model" in ended.out
    assert not [option for option in ("--json", "--quiet", "--prompt", "standard input") if option in ended.out]
    window = await Window.run("chat", "--json", cwd=workspace)
    assert await window.end() == 2
    assert "No such option: --json" in window.seen
    assert "Handwork." not in window.seen


async def test_a_folder_that_must_not_be_shown_is_said_before_setup_is_offered(workspace: Path) -> None:
    (workspace / ".ssh").mkdir()
    for arguments in ((), ("Do this now",)):
        window = await Window.run(*arguments, cwd=workspace)
        assert await window.end() == 2
        assert "it holds .ssh" in window.seen
        assert "Set one up now?" not in window.seen


async def test_ctrl_c_on_a_dumb_terminal_ends_the_run_and_keeps_the_chat(workspace: Path) -> None:
    async with StrictServer([tool("bash", command="echo begun; sleep 1000"), "Here."]) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        window = await Window.run(*model, cwd=workspace, TERM="dumb")
        await window.expect("> ")
        await window.send("Do it")
        await window.expect("sleep 1000")
        window.process.send_signal(2)
        await window.expect("cancelled")
        await window.expect("> ")
        await window.send("still there?")
        await window.expect("Here.")
        await window.expect("> ")
        window.type("\x04")
        assert await window.end() == 0


async def test_without_a_model_setup_is_offered_and_a_no_names_the_ways_on(workspace: Path) -> None:
    window = await Window.run(cwd=workspace)
    await window.expect("No model yet. Set one up now?")
    await window.send("n")
    assert await window.end() == 2
    assert "Traceback" not in window.text


async def test_a_folder_that_cannot_be_a_workspace_is_said_at_once(workspace: Path) -> None:
    async with StrictServer([]) as server:
        window = await Window.run("--base-url", server.url, "--model", "openai:any", cwd=workspace, HOME=str(workspace))
        assert await window.end() == 2
    assert "cannot be shown to a sandbox" in window.text


async def test_a_picture_and_a_task_may_be_given_with_the_command(workspace: Path) -> None:
    Image.new("RGB", (4, 4)).save(workspace / "p.png")
    async with StrictServer(["Black."]) as server:
        window = await Window.chat(server, "chat", "What is it?", "--image", "p.png", cwd=workspace)
        await window.shows("> What is it?")
        await window.shows("finished")
        assert await window.leave() == 0
    assert "data:image/png;base64," in str(server.requests[0])


async def test_a_picture_that_is_none_is_said_before_it_is_sent(workspace: Path) -> None:
    (workspace / "p.png").write_text("no picture")
    async with StrictServer(["Fine."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("look at @p.png")
        await window.shows("cannot be used: it is no picture")
        await window.until(lambda: window.prompt == "> look at @p.png")
        assert server.requests == []
        window.type("\x03")
        await window.send("never mind")
        await window.shows("Fine.")
        await window.shows("finished")
        assert await window.leave() == 0


async def test_no_chat_without_a_terminal(workspace: Path) -> None:
    ended = await handwork("chat", cwd=workspace)
    assert (ended.code, ended.out) == (2, "")
    assert "A chat needs a terminal" in ended.err


def test_only_a_chat_loads_the_prompt() -> None:
    code = "import sys, handwork.cli.app, handwork.cli.run; print('prompt_toolkit' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "False\n"
