"""Approvals and questions in a chat."""

from __future__ import annotations

from pathlib import Path

from tests.cli.chat.window import Window
from tests.support.strict_server import StrictServer, tool

ASK = "Run it? [y]es once, "


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def _asked(window: Window, what: str) -> None:
    await window.shows(what)
    await window.until(lambda: window.prompt == "?", "the answer's prompt")


async def test_an_approval_shows_what_will_run_and_takes_yes_no_and_a_reason(workspace: Path) -> None:
    commands = ["touch one\u200b; \x1b[2K # \u202e", "touch two", "touch three"]
    script = [*(tool("bash", command=command) for command in commands), "Done."]
    async with StrictServer(script) as server:
        window = await Window.chat(server, "--sandbox", "host", cwd=workspace)
        await window.send("Touch them")
        await _asked(window, "  │ touch one⟨U+200B⟩; ⟨U+001B⟩[2K # ⟨U+202E⟩")
        assert ASK in window.text
        await window.send("use a file")
        await _asked(window, "  │ touch two")
        await window.send("y")
        await _asked(window, "  │ touch three")
        await window.send("n")
        await window.shows("finished")
        assert await window.leave() == 0
        assert "use a file" in str(server.requests[1])
    assert names_in(workspace) == ["two"]
    assert "✗ denied (human): use a file" in window.text


async def test_what_was_allowed_for_the_session_is_not_asked_again_and_nothing_else_is_allowed(workspace: Path) -> None:
    script = [*(tool("bash", command=command) for command in ("touch one", "touch one", "touch two")), "Done."]
    async with StrictServer(script) as server:
        window = await Window.chat(server, "--sandbox", "host", cwd=workspace)
        await window.send("Touch them")
        await _asked(window, "  │ allow run touch one")
        await window.send("s")
        await _asked(window, "  │ touch two")
        await window.send("n")
        await window.shows("finished")
        assert await window.leave() == 0
    assert window.text.count("wants to run") == 2
    assert names_in(workspace) == ["one"]


async def test_what_was_allowed_for_the_session_is_listed_and_taken_back_for_good(workspace: Path) -> None:
    script = [*(tool("bash", command=command) for command in ("touch one", "touch two")), "Done."]
    script += [tool("bash", command="touch one"), "Again."]
    async with StrictServer(script) as server:
        window = await Window.chat(server, "--sandbox", "host", cwd=workspace)
        await window.send("Touch them")
        for name in ("one", "two"):
            await _asked(window, f"  │ allow run touch {name}")
            await window.send("s")
        await window.shows("Done.")
        await window.send("/allowed")
        await window.shows("  1. allow run touch one\n  2. allow run touch two\n")
        await window.send("/allowed forget 3")
        await window.shows("✗ There is no number 3")
        await window.send("/allowed forget 1")
        await window.shows("Taken back: allow run touch one\n")
        await window.send("Go on")
        await window.until(lambda: window.text.count("wants to run") == 3)
        await window.until(lambda: window.prompt == "?", "the answer's prompt")
        await window.send("n")
        await window.shows("Again.")
        assert await window.leave() == 0
        window = await Window.chat(server, "--sandbox", "host", "--continue", cwd=workspace)
        await window.send("/allowed")
        await window.shows("  1. allow run touch two\n")
        assert await window.leave() == 0


async def test_a_question_is_whole_on_a_narrow_terminal(workspace: Path) -> None:
    async with StrictServer([tool("bash", command="touch one"), "Fine."]) as server:
        window = await Window.chat(server, "--sandbox", "host", cwd=workspace, columns=30)
        await window.send("Touch it")
        await _asked(window, "why not:")
        joined = " ".join(window.text.split())
        assert "Run it? [y]es once, [s]ession, [a]lways, [n]o or why not:" in joined
        await window.send("n")
        await window.shows("finished")
        assert await window.leave() == 0


async def test_what_was_begun_before_an_approval_is_no_answer_and_is_kept(workspace: Path) -> None:
    script = [tool("bash", command="touch one"), "Done."]
    async with StrictServer(script) as server:
        window = await Window.chat(server, "--sandbox", "host", cwd=workspace)
        window.type("Touch it\ry")
        await _asked(window, "  │ touch one")
        await window.send("no thanks")
        await window.shows("finished")
        await window.until(lambda: window.prompt == "> y")
        window.type("\x03\x04")
        assert await window.end() == 0
    assert names_in(workspace) == []


async def test_esc_at_an_approval_ends_the_run_and_runs_nothing(workspace: Path) -> None:
    async with StrictServer([tool("bash", command="touch one"), "Fine."]) as server:
        window = await Window.chat(server, "--sandbox", "host", cwd=workspace)
        await window.send("Touch it")
        await _asked(window, "  │ touch one")
        window.type("\x1b")
        await window.shows("cancelled")
        await window.until(lambda: window.prompt == ">")
        assert names_in(workspace) == []
        assert await window.leave() == 0


async def test_a_long_command_is_shown_page_by_page_and_whole(workspace: Path) -> None:
    lines = [f"echo line {number}" for number in range(60)]
    async with StrictServer([tool("bash", command="\n".join(lines)), "Done."]) as server:
        window = await Window.chat(server, "--sandbox", "host", cwd=workspace)
        await window.send("Echo them")
        await _asked(window, "  │ echo line 9")
        assert "echo line 59" not in window.text
        first = next(row for row in window.shown if "wants to run" in row)
        assert first.startswith("? bash")
        await window.send("y")
        await _asked(window, "rows of it you have not seen")
        await window.send("")
        await _asked(window, "  │ echo line 20")
        await window.send("d")
        await _asked(window, "  │ echo line 59")
        rows = window.text.split("\n")
        assert [row for row in rows if row.startswith("  │ echo line")] == [f"  │ {line}" for line in lines]
        await window.send("n")
        await window.shows("finished")
        assert await window.leave() == 0


async def test_a_question_is_answered_in_the_prompt(workspace: Path) -> None:
    async with StrictServer([tool("ask_human", inquire="Which colour?"), "Painted."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Paint it")
        await _asked(window, "? Which colour?")
        window.type("dark\n")
        await window.send("grün")
        await window.shows("finished")
        assert await window.leave() == 0
    assert "dark\\ngr\\u00fcn" in str(server.bodies[1]) or "dark\\ngrün" in server.bodies[1].decode()


async def test_quit_at_a_question_is_no_answer_but_leaves(workspace: Path) -> None:
    async with StrictServer([tool("ask_human", inquire="Which one?"), "Done."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Ask me")
        await _asked(window, "Which one?")
        window.type("/quit\r")
        assert await window.end() == 0
        assert len(server.requests) == 1
