"""A chat from the first task to leaving: what is shown, at 80 and at 200 columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.chat.window import Window
from tests.support.strict_server import StrictServer, tool

ANSWER = """# Result

The **sum** of `a` and b is *4*: snake_case and 2*3*4 stay.

- first
- second

```python
print("hi")
```

| name | n |
|------|--:|
| x    | 1 |

Done."""


@pytest.mark.parametrize(("rows", "columns"), [(24, 80), (50, 200)])
async def test_a_task_is_worked_on_and_its_answer_drawn_as_markdown(workspace: Path, rows: int, columns: int) -> None:
    script = [{"content": "Let me look.", "tool_calls": [tool("bash", command="echo out; echo x > made")]}, ANSWER]
    async with StrictServer(script) as server:
        window = await Window.chat(server, cwd=workspace, rows=rows, columns=columns)
        await window.send("What is the sum?")
        await window.shows("finished · 2 steps")
        text = window.text
        assert await window.leave() == 0
    for part in (
        "> What is the sum?\n",
        "Let me look.\n▸ bash  echo out; echo x > made\n  ⎿ out\n",
        'Result\n\nThe sum of a and b is 4: snake_case and 2*3*4 stay.\n\n• first\n• second\n\nprint("hi")\n\n',
        "╭──────┬───╮\n│ name │ n │\n├──────┼───┤\n│ x    │ 1 │\n╰──────┴───╯\n\nDone.\n",
    ):
        assert part in text
    assert text.count("Done.") == 1
    assert server.refused == []


async def test_one_session_holds_all_runs_and_the_next_chat_goes_on_with_it(workspace: Path) -> None:
    async with StrictServer(["One.", "Two.", "Three."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("first")
        await window.shows("One.")
        await window.shows("finished")
        await window.send("second")
        await window.shows("Two.")
        await window.shows("finished", 2)
        await window.send("/quit")
        assert await window.end() == 0
        assert " -c --model openai:any --base-url http" in window.text.replace("\n", "")
        window = await Window.chat(server, "-c", cwd=workspace)
        await window.shows("· 4 messages so far")
        await window.shows("> second")
        await window.shows("Two.")
        await window.send("third")
        await window.shows("Three.")
        await window.shows("finished")
        assert await window.leave() == 0
    assert [m["content"] for m in server.requests[2]["messages"] if m["role"] in ("user", "assistant")][:5] == [
        "first",
        "One.",
        "second",
        "Two.",
        "third",
    ]


@pytest.mark.parametrize("word", ["quit", "exit", "q", "/quit", "/exit"])
async def test_words_that_leave(workspace: Path, word: str) -> None:
    async with StrictServer([]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send(word)
        assert await window.end() == 0
    assert server.requests == []


async def test_a_chat_in_which_nothing_was_said_leaves_no_session(workspace: Path) -> None:
    async with StrictServer([]) as server:
        window = await Window.chat(server, cwd=workspace)
        assert await window.leave() == 0
        window = await Window.run("-c", "--base-url", server.url, "--model", "openai:any", cwd=workspace)
        assert await window.end() == 2
    assert "There is no session" in window.text


async def test_ctrl_c_clears_the_line_and_then_says_how_to_leave(workspace: Path) -> None:
    async with StrictServer([]) as server:
        window = await Window.chat(server, cwd=workspace)
        window.type("half a senten")
        await window.until(lambda: window.prompt == "> half a senten")
        window.type("\x03")
        await window.until(lambda: window.prompt == ">")
        window.type("\x03")
        await window.until(lambda: window.status == "To leave: Ctrl-D or /quit")
        window.type("x")
        await window.until(lambda: "openai:any" in window.status)
        window.type("\x03")
        await window.until(lambda: window.prompt == ">")
        assert await window.leave() == 0


async def test_nothing_that_a_model_says_acts_on_the_terminal(workspace: Path) -> None:
    evil = "\x1b]0;title\x07\x1b[2Jplain\u202etxt **bo\x1b[31mld** `\x1b[5mcode`"
    async with StrictServer([evil]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("say it")
        await window.shows("plaintxt bold code")
        await window.shows("finished")
        assert await window.leave() == 0
    for acting in ("\x1b[2J", "\x1b]0", "\u202e", "\x07", "\x1b[5m", "\x1b[31m"):
        assert acting not in window.seen
