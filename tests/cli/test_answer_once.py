"""An answer beside the call that ends the run stands on the screen once, and alone on standard output."""

from __future__ import annotations

import asyncio
import io
import os
import pty
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.cli.chat.window import Window
from tests.cli.command import COMMAND, Ended, handwork
from tests.cli.terminal import Terminal
from tests.support.strict_server import StrictServer, tool

from handwork.cli.demo import try_task
from handwork.cli.lines import Screen
from handwork.config import LLMSettings, Settings
from handwork.llm.local.tiny_demo import DEMO_CONTENT, DEMO_FILE

ANSWER = "It is made, and I read it."


def ending(text: str = ANSWER, status: str = "success") -> dict[str, Any]:
    return {"content": text, "tool_calls": [tool("terminate", status=status)]}


def script(text: str = ANSWER) -> list[Any]:
    return [{"content": "I begin.", "tool_calls": [tool("bash", command="echo out")]}, ending(text)]


async def piped(workspace: Path, replies: list[Any], *arguments: str) -> Ended:
    async with StrictServer(replies) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        return await handwork("run", "Make it.", *arguments, *model, cwd=workspace)


async def test_in_a_chat(workspace: Path) -> None:
    async with StrictServer(script()) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Make it.")
        await window.shows("finished · 2 steps")
        text = window.text
        assert await window.leave() == 0
    assert f"  ⎿ out\n{ANSWER}\nfinished" in text
    assert text.count(ANSWER) == 1
    assert "terminate" not in text
    assert "I begin.\n▸ bash" in text


@pytest.mark.parametrize("colours", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
async def test_in_a_run_on_a_terminal(workspace: Path, colours: dict[str, str]) -> None:
    async with StrictServer(script()) as server:
        terminal = await Terminal.run(
            "Make it.", "--base-url", server.url, "--model", "openai:any", cwd=workspace, **colours
        )
        assert await terminal.end() == 0
    assert f"  ⎿ out\n{ANSWER}\nfinished" in terminal.plain
    assert terminal.plain.count(ANSWER) == 1
    assert "▸ terminate" not in terminal.plain
    assert "⎿ The interaction" not in terminal.plain


async def test_with_the_streams_apart_it_is_on_standard_output_alone(workspace: Path) -> None:
    ended = await piped(workspace, script())
    assert (ended.code, ended.out) == (0, f"{ANSWER}\n")
    assert ANSWER not in ended.err
    assert "terminate" not in ended.err
    assert "I begin.\n▸ bash  echo out\n  ⎿ out\nfinished" in ended.err


async def test_with_progress_in_a_file_it_still_reaches_the_terminal(workspace: Path) -> None:
    """`handwork "TASK" 2>log`: the log is no place where the answer has been seen."""
    for replies in (script(), ["Plain words."]):
        async with StrictServer(replies) as server:
            shown = await _on_a_terminal(workspace, "--base-url", server.url, "--model", "openai:any")
        assert shown in (f"{ANSWER}\r\n", "Plain words.\r\n")


async def _on_a_terminal(workspace: Path, *options: str) -> str:
    """What a run writes to its standard output, a terminal, while standard error is a file."""
    master, slave = pty.openpty()
    with (workspace / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *COMMAND, "run", "Make it.", *options, cwd=workspace, stdin=asyncio.subprocess.DEVNULL, stdout=slave, stderr=log
        )  # fmt: skip
    os.close(slave)
    try:
        assert await asyncio.wait_for(process.wait(), 30) == 0
        shown = b""
        with suppress(OSError):  # the other side is closed
            while piece := os.read(master, 65536):
                shown += piece
    finally:
        os.close(master)
    return shown.decode()


async def test_a_failure_is_said_by_the_last_line_and_the_words_beside_it_stay(workspace: Path) -> None:
    ended = await piped(workspace, [ending("I have no key for that.", "failure")])
    assert (ended.code, ended.out) == (4, "I have no key for that.\n")
    assert ended.err.splitlines()[-1].startswith("failed · 1 step")
    assert "terminate" not in ended.err


async def test_an_end_that_was_called_wrong_is_shown(workspace: Path) -> None:
    ended = await piped(workspace, [tool("terminate", status="perhaps"), "So it is."])
    assert "▸ terminate" in ended.err
    assert "✗ " in ended.err
    assert ended.out == "So it is.\n"


async def test_in_the_story_of_a_session(workspace: Path) -> None:
    await piped(workspace, script(), "--session", "mine")
    ended = await handwork("sessions", "show", "mine", cwd=workspace)
    assert f"  ⎿ out\n{ANSWER}\n── finished after 2 steps" in ended.out
    assert ended.out.count(ANSWER) == 1
    assert "terminate" not in ended.out


async def test_words_that_a_tool_took_are_shown_too(workspace: Path) -> None:
    given = tool("create_chat_completion", response="Forty-two.")
    ended = await piped(workspace, [given, ending("As I said.")], "--session", "mine", "--agent", "toolcall")
    assert ended.out == "Forty-two.\n"
    assert ended.err.count("As I said.") == 1
    ended = await handwork("sessions", "show", "mine", cwd=workspace)
    assert ended.out.count("Forty-two.") == ended.out.count("As I said.") == 1


@pytest.fixture
def settings() -> Callable[[StrictServer], Settings]:
    return lambda server: Settings(llm={"default": LLMSettings(model="openai:any", base_url=server.url, retries=0)})


async def test_in_the_demo(settings: Callable[[StrictServer], Settings], capfd: pytest.CaptureFixture[str]) -> None:
    shown = io.StringIO()
    write = tool("bash", command=f"printf '{DEMO_CONTENT}' > {DEMO_FILE}")
    async with StrictServer([write, ending()]) as server:
        assert await try_task(settings(server), Screen(shown)) == 0
    out, err = capfd.readouterr()
    assert out == f"{ANSWER}\n"
    assert ANSWER not in err + shown.getvalue()
    assert "terminate" not in err
