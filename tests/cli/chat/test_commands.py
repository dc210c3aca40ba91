"""The commands of a chat, what is mentioned with @, and what is run with !."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.chat.window import Window
from tests.support.strict_server import StrictServer, tool

from handwork.cli.chat.commands import COMMANDS, parse
from handwork.errors import ConfigError


def user_words(request: dict[str, Any]) -> list[str]:
    return [message["content"] for message in request["messages"] if message["role"] == "user"]


async def test_help_lists_every_command_and_an_unknown_one_names_the_nearest(workspace: Path) -> None:
    async with StrictServer([]) as server:
        window = await Window.chat(server, cwd=workspace, rows=50)
        await window.send("/help")
        await window.shows("paste a picture")
        assert [name for name, command in COMMANDS.items() if f"\n  {command.usage} " not in window.text] == []
        assert max(map(len, window.shown)) < 80
        await window.send("/tols")
        await window.shows("✗ There is no command /tols\n  → did you mean /tools?")
        await window.send("/tools")
        await window.shows("  str_replace_editor")
        await window.send("/plan")
        await window.shows("There is no plan.")
        await window.send("/cost")
        await window.shows("Nothing was spent yet.")
        await window.send("/undo")
        await window.shows("No step has changed a file")
        assert await window.leave() == 0
    assert server.requests == []


def test_a_path_and_a_division_are_no_commands() -> None:
    assert parse("/etc/hosts is missing") is None
    assert parse("1/2") is None
    assert parse("say /help") is None


def test_a_command_may_be_cut_short_where_that_is_clear() -> None:
    assert parse("/comp the names") == (COMMANDS["compact"], "the names")
    with pytest.raises(ConfigError, match="no command /co"):
        parse("/co")


async def test_another_model_takes_over_and_a_bad_one_changes_nothing(workspace: Path) -> None:
    async with StrictServer(["One.", "Two."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("first")
        await window.shows("finished")
        await window.send("/model nonsense:x")
        await window.shows("✗ ")
        await window.until(lambda: window.status.startswith("openai:any"))
        await window.send("/model openai:other")
        await window.shows(f"From now on: openai:other at {server.url.split('/')[2]}. The conversation is kept.")
        await window.send("second")
        await window.shows("Two.")
        await window.shows("finished", 2)
        await window.send("/cost")
        await window.shows("  in total      2 requests · 20 + 10 tokens")
        assert await window.leave() == 0
    assert [request["model"] for request in server.requests] == ["any", "other"]
    assert "One." in str(server.requests[1])


async def test_new_begins_another_session(workspace: Path) -> None:
    async with StrictServer(["One.", "Two."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("first")
        await window.shows("finished")
        await window.send("/new")
        await window.shows("A new conversation.")
        await window.send("second")
        await window.shows("finished", 2)
        assert await window.leave() == 0
    assert "first" not in user_words(server.requests[1])


async def test_the_plan_stands_in_the_status_line_and_can_be_shown(workspace: Path) -> None:
    create = tool("planning", command="create", plan_id="p", title="Build it", steps=["dig", "pour"])
    mark = tool("planning", command="mark_step", plan_id="p", step_index=0, step_status="completed")
    async with StrictServer([create, mark, "Done."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Plan it")
        await window.shows("finished")
        await window.until(lambda: "plan 1/2" in window.status)
        await window.send("/plan")
        await window.shows("  Build it – 1/2 done\n  [✓] dig\n  [ ] pour")
        assert await window.leave() == 0


async def test_context_says_what_fills_the_window(workspace: Path) -> None:
    async with StrictServer(["One."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("first")
        await window.shows("finished")
        await window.send("/context")
        await window.shows("  window")
        for part in (
            "system prompt  about",
            "tools          about",
            "(2 messages)",
            "15 tokens, as the provider counted",
        ):
            assert part in window.text
        assert "unknown for this model" in window.text
        assert await window.leave() == 0


async def test_undo_takes_back_what_a_step_wrote_and_tells_the_agent(workspace: Path) -> None:
    (workspace / "old").write_text("before\n")
    script = [tool("bash", command="echo after > old; echo x > new"), "Changed.", "I see."]
    async with StrictServer(script) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Change it")
        await window.shows("finished")
        assert (workspace / "new").exists()
        await window.send("/undo")
        await window.shows("Taken back: 2 files.")
        assert (workspace / "old").read_text() == "before\n"
        assert not (workspace / "new").exists()
        await window.send("and?")
        await window.shows("I see.")
        await window.shows("finished", 2)
        assert await window.leave() == 0
    assert any("I have taken back" in words and "\nold" in words for words in user_words(server.requests[2]))


async def test_compact_keeps_the_human_s_words_and_a_summary(workspace: Path) -> None:
    long = tool("bash", command="seq 2000")
    async with StrictServer([long, "It is long.", "SUMMARY of it.", "Yes."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Count")
        await window.shows("finished")
        await window.send("/compact the numbers")
        await window.shows("The conversation took ")
        await window.send("Still there?")
        await window.shows("Yes.")
        await window.shows("finished", 2)
        assert await window.leave() == 0
    assert "Count" in str(server.requests[3]["messages"])
    assert "SUMMARY of it." in str(server.requests[3]["messages"])
    assert "1999" not in str(server.requests[3]["messages"])


async def test_a_command_of_the_human_s_runs_in_the_agent_s_shell_and_is_told_it(workspace: Path) -> None:
    async with StrictServer([tool("bash", command="FOO=bar"), "Set.", "Seen."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("Set it")
        await window.shows("finished")
        await window.send("!echo value=$FOO; pwd; false")
        await window.shows("value=bar")
        await window.shows("  exit code 1")
        await window.send("go on")
        await window.shows("Seen.")
        await window.shows("finished", 2)
        assert await window.leave() == 0
    assert f"$ echo value=$FOO; pwd; false\nvalue=bar\n{workspace}\n[exit code 1]" in "\n".join(
        user_words(server.requests[2])
    )


async def test_a_command_of_the_human_s_can_be_interrupted(workspace: Path) -> None:
    async with StrictServer([]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("!echo begun; sleep 1000")
        await window.shows("\nbegun\n")
        window.type("\x03")
        await window.shows("  interrupted")
        await window.send("!echo again")
        await window.shows("\nagain\n")
        assert await window.leave() == 0


async def test_a_mentioned_file_goes_along_and_a_missing_one_is_said_before_sending(workspace: Path) -> None:
    (workspace / "notes.md").write_text("remember the milk\n")
    async with StrictServer(["Read."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("what of @gone.md?")
        await window.shows("✗ There is no file gone.md")
        await window.until(lambda: window.prompt == "> what of @gone.md?")
        window.type("\x15")
        await window.send("what of @notes.md, me@example.org and @property?")
        await window.shows("  with notes.md")
        await window.shows("finished")
        assert await window.leave() == 0
    (sent,) = server.requests
    words = next(words for words in user_words(sent) if "notes.md" in words)
    assert words.startswith(
        'what of @notes.md, me@example.org and @property?\n\n<file path="notes.md">\nremember the milk'
    )


async def test_paths_and_commands_are_completed(workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "src" / "a long name.txt").write_text("x")
    (workspace / "node_modules").mkdir()
    async with StrictServer([]) as server:
        window = await Window.chat(server, cwd=workspace)
        window.type("/co")
        await window.shows("/compact")
        await window.shows("/context")
        window.type("\x03")
        await window.until(lambda: "/compact" not in window.shown)
        window.type("see @s")
        await window.shows("  src/")
        window.type("\t")
        await window.until(lambda: window.prompt == "> see @src/")
        window.type("a")
        await window.shows("  src/a long name.txt")
        window.type("\t")
        await window.until(lambda: window.prompt == '> see @"src/a long name.txt"')
        window.type("\x03\x04")
        assert await window.end() == 0
