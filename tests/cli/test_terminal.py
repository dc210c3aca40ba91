"""On a terminal: streamed text, a spinner, colours, questions and approvals; nothing that a model says acts on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.command import handwork
from tests.cli.terminal import Terminal
from tests.support.fault_server import error_answer
from tests.support.strict_server import StrictServer, tool

from handwork.cli.columns import width

pytestmark = pytest.mark.whole

EVIL = "\x1b]0;title\x07\x1b[2Jplain\u202etxt"


async def test_a_run_is_drawn_as_it_happens_and_the_answer_is_shown_once(workspace: Path) -> None:
    script = [
        {"content": "Let me look.", "tool_calls": [tool("bash", command="seq 9; printf '\\033[2J\\033]0;t\\a'")]},
        EVIL,
    ]
    async with StrictServer(script) as server:
        terminal = await Terminal.run("Look at it", "--base-url", server.url, "--model", "openai:any", cwd=workspace)
        assert await terminal.end() == 0
    shown = terminal.plain
    for part in ("Let me look.\n", "▸ bash  seq 9", "  ⎿ 1\n    2\n", "more line", "plaintxt\nfinished · 2 steps"):
        assert part in shown
    assert shown.count("plaintxt") == 1
    assert "waiting for the model" in terminal.seen
    assert "\x1b[36m" in terminal.seen
    for acting in ("\x1b[2J", "\x1b]0", "\u202e", "\x07"):
        assert acting not in terminal.seen


async def test_json_on_a_terminal_acts_on_nothing_and_says_all(workspace: Path) -> None:
    said = "\x9b31mred\u202etxt \x1b[2J\x7f"
    async with StrictServer([said]) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        terminal = await Terminal.run("run", "Look", "--json", *model, cwd=workspace, columns=2000)
        assert await terminal.end() == 0
    lines = [line for line in terminal.seen.splitlines() if '"run_finished"' in line]
    assert json.loads(lines[0])["output"] == said
    for acting in ("\x9b", "\u202e", "\x1b[2J", "\x7f"):
        assert acting not in terminal.seen


async def test_no_color_means_none(workspace: Path) -> None:
    async with StrictServer([tool("bash", command="echo a"), "Done."]) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        terminal = await Terminal.run("Look at it", *model, cwd=workspace, NO_COLOR="1")
        assert await terminal.end() == 0
    assert "\x1b[3" not in terminal.seen.replace("\x1b[2K", "")
    assert "▸ bash  echo a" in terminal.plain


async def test_a_question_is_answered_at_the_terminal(workspace: Path) -> None:
    def script(request: dict[str, list[dict[str, str]]]) -> object:
        last = request["messages"][-2]["content"] if len(request["messages"]) > 3 else ""
        return f"Painted: {'grün' in str(request['messages'])}" if last else tool("ask_human", inquire="Which colour?")

    async with StrictServer(script) as server:
        terminal = await Terminal.run("Paint it now", "--base-url", server.url, "--model", "openai:any", cwd=workspace)
        await terminal.expect("? Which colour?")
        await terminal.expect("> ")
        terminal.type("grün\n")
        assert await terminal.end() == 0
    assert "Painted: True" in terminal.plain


async def test_the_end_of_input_leaves_the_question_for_later(workspace: Path) -> None:
    async with StrictServer([tool("ask_human", inquire="Which colour?")]) as server:
        terminal = await Terminal.run("Paint it now", "--base-url", server.url, "--model", "openai:any", cwd=workspace)
        await terminal.expect("Which colour?")
        await terminal.expect("> ")
        terminal.type("\x04")
        assert await terminal.end() == 5
    assert "To go on:" in terminal.plain
    assert "handwork run --session" in terminal.plain


async def test_an_approval_shows_exactly_what_will_run_and_takes_the_answer(workspace: Path) -> None:
    commands = ["touch one\u200b; \x1b[2K # \u202e", "touch two", "touch three"]
    script = [*(tool("bash", command=command) for command in commands), "Done."]
    async with StrictServer(script) as server:
        model = ("--base-url", server.url, "--model", "openai:any", "--approve", "ask")
        terminal = await Terminal.run("Touch them", *model, cwd=workspace)
        terminal.type("y\n")  # typed before it was asked: no answer
        await terminal.expect("touch one⟨U+200B⟩; ⟨U+001B⟩[2K # ⟨U+202E⟩")
        await terminal.expect("Run it?")
        terminal.type("use a file\n")
        await terminal.expect("touch two")
        await terminal.expect("Run it?")
        terminal.type("\n")
        await terminal.expect("Run it?")
        terminal.type("y\n")
        await terminal.expect("touch three")
        await terminal.expect("Run it?")
        terminal.type("n\n")
        assert await terminal.end() == 0
        assert "use a file" in str(server.requests[1])
    assert sorted(path.name for path in _files(workspace)) == ["two"]


async def test_ctrl_c_at_a_question_cancels_the_run(workspace: Path) -> None:
    async with StrictServer([tool("ask_human", inquire="Which colour?")]) as server:
        terminal = await Terminal.run("Paint it now", "--base-url", server.url, "--model", "openai:any", cwd=workspace)
        await terminal.expect("Which colour?")
        await terminal.expect("> ")
        terminal.process.send_signal(2)
        assert await terminal.end() == 130
    assert "cancelled" in terminal.plain


async def test_headless_approvals_are_denied_and_the_run_goes_on(workspace: Path) -> None:
    async with StrictServer([tool("bash", command="touch one"), "Could not."]) as server:
        model = ("--base-url", server.url, "--model", "openai:any", "--approve", "ask")
        ended = await handwork("run", "Touch it.", *model, cwd=workspace)
    assert (ended.code, ended.out) == (0, "Could not.\n")
    assert _files(workspace) == []


def _files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


WHY = "the provider of this model says at some length that it has no place for you just now, and that you may come again later"


async def test_no_word_is_broken_at_the_edge_and_a_command_to_type_stays_whole(workspace: Path) -> None:
    async with StrictServer([error_answer(400, WHY)]) as server:
        terminal = await Terminal.run(
            "Do it now", "--base-url", server.url, "--model", "openai:any", cwd=workspace, columns=50
        )
        assert await terminal.end() == 1
    rows = terminal.plain.splitlines()
    words = {word for row in rows for word in row.split()}
    assert set(WHY.split()) <= words
    command = next(row for row in rows if "run --session" in row)
    assert command.startswith("  ")
    assert command.endswith(server.url)
    assert all(len(row) <= 50 for row in rows if row != command and " " in row.strip())


async def test_an_error_before_the_run_is_broken_between_words_too(workspace: Path) -> None:
    terminal = await Terminal.run("sessions", "show", "nowhere", "--config", "nosuch.toml", cwd=workspace, columns=40)
    assert await terminal.end() == 2
    assert max(len(row) for row in terminal.plain.splitlines() if " " in row.strip()) <= 40


async def test_a_long_command_stands_inside_its_frame_at_an_approval(workspace: Path) -> None:
    command = "echo one " + " ".join(f"word{number}" for number in range(30)) + "  ; touch evil"
    async with StrictServer([tool("bash", command=command), "Done."]) as server:
        model = ("--base-url", server.url, "--model", "openai:any", "--approve", "ask")
        terminal = await Terminal.run("Do it now", *model, cwd=workspace, columns=60)
        await terminal.expect("Run it?")
        terminal.type("n\n")
        assert await terminal.end() == 0
    rows = terminal.plain.split("wants to run")[1].split("[s]")[0].splitlines()
    framed = [row[4:] for row in rows if row.startswith(("  │ ", "  ┊ "))]
    assert "".join(framed) == command
    assert max(map(len, framed)) <= 56


async def test_the_list_of_sessions_stays_inside_the_terminal(workspace: Path) -> None:
    task = "漢字を数えて、それから一つの文書に書いてください。" * 3
    async with StrictServer(["Done."]) as server:
        await handwork("run", task, "--base-url", server.url, "--model", "openai:any", cwd=workspace)
    for columns in (80, 60, 200):
        terminal = await Terminal.run("sessions", "list", cwd=workspace, columns=columns)
        assert await terminal.end() == 0
        rows = terminal.plain.splitlines()
        assert len(rows) == 2
        assert max(map(width, rows)) <= columns
        assert "漢字を数え" in rows[1]


MARKDOWN = (
    "# Result\n\nThe **sum** is `4`.\n\n- first\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\n**raw**\n```\nLast *line*"
)


async def test_an_answer_is_drawn_as_markdown_as_in_a_chat(workspace: Path) -> None:
    async with StrictServer([MARKDOWN, MARKDOWN]) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        for quiet in ((), ("--quiet",)):
            terminal = await Terminal.run("Add them up", *quiet, *model, cwd=workspace)
            assert await terminal.end() == 0
            shown = "Result\n\nThe sum is 4.\n\n• first\n\n╭───┬───╮\n│ a │ b │\n├───┼───┤\n│ 1 │ 2 │\n╰───┴───╯\n\n**raw**\nLast line\n"
            assert shown in terminal.plain
            assert terminal.plain.count("Last line") == 1


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
async def test_without_colours_an_answer_stays_as_it_was_written(workspace: Path, environ: dict[str, str]) -> None:
    async with StrictServer([MARKDOWN, MARKDOWN]) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        for quiet in ((), ("--quiet",)):
            terminal = await Terminal.run("Add them up", *quiet, *model, cwd=workspace, **environ)
            assert await terminal.end() == 0
            assert MARKDOWN in terminal.plain


async def test_a_line_that_is_being_written_is_seen_before_it_ends(workspace: Path) -> None:
    async with StrictServer([{"content": "Half a line"}]) as server:
        terminal = await Terminal.run("Say it now", "--base-url", server.url, "--model", "openai:any", cwd=workspace)
        await terminal.expect(" Half a line")
        assert await terminal.end() == 0
    assert terminal.plain.count("Half a line") == 1
