"""While the agent works: what is typed reaches it, and Esc and Ctrl-C stop it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import psutil
import pytest
from tests.cli.chat.window import Window
from tests.cli.command import handwork
from tests.support.fault_server import Fault, delta, error_answer, stream
from tests.support.strict_server import StrictServer, tool

pytestmark = pytest.mark.whole


def gated(folder: Path, name: str = "go") -> str:
    """A command that waits for a file of that name."""
    return f"echo begun; until [ -e {folder / name} ]; do sleep 0.05; done; echo over"


async def test_what_is_typed_meanwhile_is_read_at_the_next_step(workspace: Path) -> None:
    async with StrictServer([tool("bash", command=gated(workspace)), "As you wish."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Begin")
        await window.shows("bash: begun")
        await window.send("make it blue")
        await window.send("make it blue")
        await window.shows("↳ make it blue  (is read next)", 2)
        assert window.prompt == ">"
        (workspace / "go").touch()
        await window.shows("> make it blue", 2)
        await window.shows("As you wish.")
        await window.shows("finished")
        assert "↳" not in window.text
        assert await window.leave() == 0
    roles = [(m["role"], m["content"]) for m in server.requests[1]["messages"][-4:]]
    assert roles.count(("user", "make it blue")) == 2
    assert server.refused == []


async def test_a_command_that_fails_meanwhile_says_so_and_the_work_goes_on(workspace: Path) -> None:
    async with StrictServer([tool("bash", command=gated(workspace)), "Done."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Begin")
        await window.shows("bash: begun")
        await window.send("/allowed forget 3")
        await window.shows("✗ There is no number 3")
        (workspace / "go").touch()
        await window.shows("finished")
        assert await window.leave() == 0


@pytest.mark.parametrize("key", ["\x1b", "\x03"])
async def test_esc_and_ctrl_c_end_the_run_and_keep_the_session(workspace: Path, key: str) -> None:
    async with StrictServer([tool("bash", command="echo begun; sleep 1000"), "Here again."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Begin")
        await window.shows("bash: begun")
        pressed = time.monotonic()
        window.type(key)
        await window.shows("cancelled · 1 step")
        assert time.monotonic() - pressed < 3
        await window.send("and now?")
        await window.shows("Here again.")
        await window.shows("finished")
        assert await window.leave() == 0
    assert "Begin" in str(server.requests[1])
    assert "I interrupted it." in str(server.requests[1])
    assert server.refused == []


async def test_a_second_ctrl_c_ends_at_once_and_the_session_can_be_taken_up(workspace: Path) -> None:
    async with StrictServer([tool("bash", command="echo begun; sleep 1000"), "Here again."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Begin")
        await window.shows("bash: begun")
        children = psutil.Process(window.process.pid).children(recursive=True)
        window.type("\x03\x03")
        assert await window.end() == 130
        assert "To go on:" in window.text
        assert not psutil.wait_procs(children, timeout=5)[1]
        ended = await handwork("-c", "--base-url", server.url, "--model", "openai:any", "Go on.", cwd=workspace)
    assert (ended.code, ended.out) == (0, "Here again.\n")
    assert server.refused == []


async def test_words_that_nobody_has_read_come_back_to_the_prompt(workspace: Path) -> None:
    async with StrictServer([tool("bash", command="echo begun; sleep 1000")]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Begin")
        await window.shows("bash: begun")
        await window.send("and another thing")
        await window.shows("↳ and another thing")
        window.type("\x1b")
        await window.shows("cancelled")
        await window.until(lambda: window.prompt == "> and another thing")
        window.type("\x03\x04")
        assert await window.end() == 0


async def test_the_answer_stands_there_as_it_arrives(workspace: Path) -> None:
    half = stream(delta(content="First line.\nSecond li"), Fault.SILENCE)
    async with StrictServer([half]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Say it")
        await window.shows("First line.\nSecond li\n>")
        window.type("\x1b")
        await window.shows("cancelled")
        assert window.text.count("First line.") == 1
        assert await window.leave() == 0


async def test_a_model_that_fails_is_told_in_two_lines_and_the_chat_goes_on(workspace: Path) -> None:
    async with StrictServer([error_answer(401, "bad key"), "Better."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Begin")
        await window.shows("✗ openai:any: HTTP 401: bad key\n  → check the API key")
        await window.send("again")
        await window.shows("Better.")
        await window.shows("finished")
        assert "Traceback" not in window.text
        assert await window.leave() == 0
    assert server.refused == []


async def test_a_server_that_is_gone_is_told_and_the_chat_goes_on(workspace: Path) -> None:
    async with StrictServer(["One."]) as server:
        (workspace / "c.toml").write_text("[llm]\nretries = 0\n")
        window = await Window.chat(server, "--config", "c.toml", cwd=workspace)
        await window.send("first")
        await window.shows("One.")
        await window.shows("finished")
    await window.send("second")
    await window.shows("connection refused\n  → check the base URL")
    assert "Traceback" not in window.text
    window.type("still here")
    await window.until(lambda: window.prompt == "> still here")
    window.type("\x03\x04")
    assert await window.end() == 0


async def test_sigterm_leaves_in_good_order(workspace: Path) -> None:
    async with StrictServer([tool("bash", command="echo begun; sleep 1000")]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Begin")
        await window.shows("bash: begun")
        os.kill(window.process.pid, signal.SIGTERM)
        assert await window.end() == 0
    assert "To go on:" in window.text


async def test_commands_that_must_wait_say_so_and_others_are_done_at_once(workspace: Path) -> None:
    async with StrictServer([tool("bash", command=gated(workspace)), "Done."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Begin")
        await window.shows("bash: begun")
        await window.send("/new")
        await window.until(lambda: "Esc interrupts it" in window.status)
        assert window.prompt == "> /new"
        window.type("\x15")
        await window.send("/cost")
        await window.shows("1 request · 10 + 5 tokens")
        (workspace / "go").touch()
        await window.shows("finished")
        assert await window.leave() == 0


async def test_a_terminal_that_goes_away_ends_the_chat_and_all_that_runs(workspace: Path) -> None:
    async with StrictServer([tool("bash", command="echo begun; sleep 1000")]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Begin")
        await window.shows("bash: begun")
        children = psutil.Process(window.process.pid).children(recursive=True)
        window.hang_up()
        await asyncio.wait_for(window.process.wait(), 30)
        assert not psutil.wait_procs(children, timeout=5)[1]


async def test_a_command_that_waits_its_turn_is_shown_and_done(workspace: Path) -> None:
    async with StrictServer(["Hello."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send(f"!{gated(workspace)}")
        await window.shows("\nbegun\n")
        await window.send("hello")
        await window.shows("↳ hello  (is read next)")
        (workspace / "go").touch()
        await window.shows("Hello.")
        await window.shows("finished")
        assert "↳" not in window.text
        assert await window.leave() == 0


async def test_words_that_came_too_late_for_a_run_begin_the_next(workspace: Path) -> None:
    (workspace / "notes.md").write_text("the milk\n")
    end = {
        "content": "Over.",
        "tool_calls": [tool("bash", command=gated(workspace)), tool("terminate", status="success")],
    }
    async with StrictServer([end, "Read."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Begin")
        await window.shows("bash: begun")
        await window.send("see @notes.md")
        await window.shows("↳ see @notes.md")
        (workspace / "go").touch()
        await window.shows("> see @notes.md")
        await window.shows("Read.")
        await window.shows("finished", 2)
        assert await window.leave() == 0
    assert "the milk" in str(server.requests[1])
    assert server.refused == []
