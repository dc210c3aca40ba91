"""`handwork run` as users meet it: exit codes, what stands on which stream, sessions, standard input (CONTRACT H)."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import Ended, handwork, reached, start
from tests.support.fault_server import error_answer
from tests.support.strict_server import Script, StrictServer, tool

LOOP = tool("bash", command="echo again")


async def run(workspace: Path, script: Script, *arguments: str, stdin: str | None = None, **environ: str) -> Ended:
    """`handwork …` against a server with this script; every history that it was sent must have been valid."""
    async with StrictServer(script) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        ended = await handwork(*arguments, *model, cwd=workspace, stdin=stdin, **environ)
        assert not server.refused
    return ended


async def test_the_answer_alone_stands_on_standard_output_and_the_rest_on_standard_error(workspace: Path) -> None:
    script = [{"content": "I look.", "tool_calls": [tool("bash", command="echo found")]}, "The answer\nis 42."]
    ended = await run(workspace, script, "run", "What is it?")
    assert (ended.code, ended.out) == (0, "The answer\nis 42.\n")
    assert "I look." in ended.err
    assert "▸ bash  echo found" in ended.err
    assert "⎿ found" in ended.err
    assert "The answer" not in ended.err
    assert ended.err.splitlines()[-1].startswith("finished · 2 steps · ")
    assert "20 + 10 tokens · cost unknown" in ended.err
    assert "\x1b" not in ended.err


async def test_quiet_prints_the_answer_and_nothing_else(workspace: Path) -> None:
    ended = await run(workspace, [LOOP, "Yes."], "run", "--quiet", "Is it?")
    assert (ended.code, ended.out, ended.err) == (0, "Yes.\n", "")


async def test_quiet_keeps_no_warning_from_the_user(workspace: Path) -> None:
    script = [{"tool_calls": [tool("bash", command="mkdir .vscode; echo x > .vscode/tasks.json")]}, "Yes."]
    ended = await run(workspace, script, "run", "--quiet", "Is it?")
    assert (ended.code, ended.out) == (0, "Yes.\n")
    assert ended.err.startswith("! In the workspace, .vscode was moved to ")
    assert len(ended.err.splitlines()) == 1


async def test_json_is_one_event_a_line_and_nothing_else(workspace: Path) -> None:
    ended = await run(workspace, [LOOP, "Yes."], "run", "Is it?", "--json")
    assert (ended.code, ended.err) == (0, "")
    types = [event["type"] for event in ended.events]
    assert (types[0], types[-1]) == ("run_started", "run_finished")
    assert {"text_delta", "tool_call_started", "tool_call_finished", "usage_reported"} < set(types)
    assert ended.events[-1]["output"] == "Yes."
    stored = [event["seq"] for event in ended.events if event["seq"] is not None]
    assert stored == list(range(1, len(stored) + 1))


@pytest.mark.parametrize(
    ("script", "options", "code", "status"),
    [
        (["Done."], (), 0, "finished"),
        ([error_answer(401, "bad key")], (), 1, "error"),
        ([LOOP, tool("bash", command="echo other")], ("--max-steps", "2"), 3, "max_steps"),
        ([LOOP] * 9, (), 3, "stuck"),
        ([tool("bash", command="sleep 30")], ("--timeout", "2"), 3, "timeout"),
        ([LOOP, "never asked"], ("--max-total-tokens", "1"), 3, "budget"),
        ([tool("terminate", status="failure")], (), 4, "failed"),
        ([tool("ask_human", inquire="Which colour?")], (), 5, "waiting"),
    ],
)
async def test_the_exit_code_says_how_the_run_ended(
    workspace: Path, script: list[Any], options: tuple[str, ...], code: int, status: str
) -> None:
    ended = await run(workspace, script, "run", "Do it.", "--json", *options)
    assert ended.events[-1]["status"] == status
    assert ended.code == code


async def test_an_end_that_is_none_says_how_to_go_on(workspace: Path) -> None:
    ended = await run(workspace, [tool("ask_human", inquire="Which colour?")], "run", "Paint it.", "--session", "paint")
    assert (ended.code, ended.out) == (5, "")
    assert "Which colour?" in ended.err
    assert "handwork run --session paint --model openai:any --base-url http://127.0.0.1:" in ended.err
    assert ended.err.rstrip().endswith('/v1 "your answer"')
    ended = await run(workspace, ["Painted blue."], "run", "--session", "paint", "blue")
    assert (ended.code, ended.out) == (0, "Painted blue.\n")


async def test_an_error_of_the_provider_is_said_with_what_to_do(workspace: Path) -> None:
    ended = await run(workspace, [error_answer(401, "bad key")], "run", "Do it.")
    assert (ended.code, ended.out) == (1, "")
    assert "API key" in ended.err


async def test_without_a_model_it_ends_at_once_and_names_the_ways_on(workspace: Path, home: Path) -> None:
    ended = await handwork("run", "Do it.", "--json", cwd=workspace)
    assert (ended.code, ended.out) == (2, "")
    assert "OPENAI_API_KEY" in ended.err
    assert "--base-url" in ended.err
    assert _files(home) == []


async def test_a_missing_key_is_named_before_anything_is_stored(workspace: Path, home: Path) -> None:
    ended = await handwork("run", "Do it.", "--model", "groq:some", cwd=workspace)
    assert ended.code == 2
    assert "GROQ_API_KEY" in ended.err
    assert _files(home) == []


async def test_the_task_may_come_through_a_pipe(workspace: Path) -> None:
    async with StrictServer(["Read.", "Read."]) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        assert (await handwork("run", *model, cwd=workspace, stdin="Grüße lesen\n")).code == 0
        assert (await handwork(*model, cwd=workspace, stdin="Bare\n")).code == 0
        tasks = [request["messages"][1]["content"] for request in server.requests]
    assert "Grüße lesen" in json.dumps(tasks[0], ensure_ascii=False)
    assert "Bare" in json.dumps(tasks[1])


@pytest.mark.parametrize("arguments", [("run",), (), ("run", ""), ("run", "--prompt", " \n"), ("",)])
async def test_an_empty_task_is_refused(workspace: Path, arguments: tuple[str, ...]) -> None:
    ended = await handwork(*arguments, cwd=workspace, stdin="")
    assert (ended.code, ended.out) == (2, "")
    assert "Empty prompt provided." in ended.err


@pytest.mark.parametrize(
    "before",
    [("Say it",), ("--quiet", "Say it"), ("--prompt", "Say it"), ("--quiet", "run", "Say it"), ("--", "Say it")],
)
async def test_a_bare_task_is_run_wherever_its_options_stand(workspace: Path, before: tuple[str, ...]) -> None:
    async with StrictServer(["Said."]) as server:
        ended = await handwork("--base-url", server.url, "--model", "openai:any", *before, cwd=workspace)
    assert (ended.code, ended.out) == (0, "Said.\n")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("sesions",), "handwork sessions"),
        (("sesions", "list"), "handwork sessions"),
        (("frobnicate",), "The commands are"),
        (("run", "--modle", "x", "task"), "--model"),
        (("run", "task", "more"), "unexpected extra argument"),
        (("run", "task", "--sandbox", "none"), "--sandbox"),
        (("run", "task", "--approve", "always"), "--approve"),
        (("run", "task", "--max-steps", "0"), "--max-steps"),
        (("run", "task", "--budget", "nan"), "budget"),
        (("run", "task", "--session", "a", "-c"), "--continue"),
        (("run", "task", "--prompt", "task"), "--prompt"),
        (("run", "task one", "--agent", "manis", "--model", "openai:any", "--base-url", "http://127.0.0.1:1"), "manus"),
        (("run", "task", "--config", "absent.toml"), "absent.toml"),
        (("run", "task", "--model", "opnai:x"), "openai"),
        (("run", "task", "--model", "openai:x", "--base-url", "nonsense"), "nonsense"),
        (("sessions", "show", "nothing"), "nothing"),
        (("model", "fetch", "nothing"), "smollm2-135m"),
    ],
)
async def test_what_is_typed_wrong_is_named_and_nothing_is_printed(
    workspace: Path, arguments: tuple[str, ...], expected: str
) -> None:
    ended = await handwork(*arguments, cwd=workspace)
    assert (ended.code, ended.out) == (2, "")
    assert expected in ended.err
    assert "Traceback" not in ended.err


async def test_an_error_in_the_configuration_names_file_and_line(workspace: Path) -> None:
    (workspace / "mine.toml").write_text('[llm]\nmodel = "openai:any"\nbase_ulr = "x"\n')
    ended = await handwork("run", "Do it.", "--config", "mine.toml", cwd=workspace)
    assert ended.code == 2
    assert "mine.toml, line 3: unknown key [llm] base_ulr\n→ did you mean base_url?\n" in ended.err


async def test_a_configuration_in_the_workspace_is_not_read_and_that_is_said(workspace: Path) -> None:
    (workspace / "handwork.toml").write_text("nonsense = 1")
    ended = await run(workspace, ["Done."], "run", "Do it.")
    assert ended.code == 0
    assert "handwork.toml is not read" in ended.err


async def test_continue_takes_the_last_session_of_the_workspace(workspace: Path, tmp_path: Path) -> None:
    async with StrictServer(["One.", "Two."]) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        assert (await handwork("run", "First thing", *model, cwd=workspace)).out == "One.\n"
        assert (await handwork("run", "-c", "Second thing", *model, cwd=workspace)).out == "Two.\n"
        assert "First thing" in json.dumps(server.requests[1])
        ended = await handwork("run", "-c", "Third thing", *model, cwd=tmp_path)
        assert (ended.code, len(server.requests)) == (2, 2)
        assert "no session" in ended.err


async def test_a_session_that_is_in_use_is_busy_and_one_that_was_cancelled_goes_on(workspace: Path) -> None:
    script: list[Any] = [tool("bash", command="echo begun; sleep 60"), "Went on."]
    async with StrictServer(script) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        first = await start("run", "Wait.", "--session", "mine", "--json", *model, cwd=workspace)
        await reached(first, "tool_output_delta")
        second = await handwork("run", "Me too.", "--session", "mine", *model, cwd=workspace)
        assert second.code == 1
        assert "in use" in second.err
        first.terminate()
        out, _ = await asyncio.wait_for(first.communicate(), 10)
        assert first.returncode == 130
        assert json.loads(out.splitlines()[-1])["status"] == "cancelled"
        third = await handwork("run", "--session", "mine", *model, cwd=workspace)
        assert (third.code, third.out) == (0, "Went on.\n")
        assert not server.refused


async def test_a_reader_that_goes_away_ends_the_run_quietly(workspace: Path) -> None:
    reading, writing = os.pipe()
    async with StrictServer([tool("bash", command="sleep 60")]) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        process = await start("run", "Go.", "--json", *model, cwd=workspace, stdout=writing)
        os.close(writing)
        await asyncio.to_thread(os.read, reading, 1)
        os.close(reading)
        _, err = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, err) == (130, b"")


async def test_a_reader_that_has_stopped_reading_holds_up_nothing(workspace: Path) -> None:
    reading, writing = os.pipe()
    calls = [tool("bash", command=f"echo {number}; head -c 9000 /dev/zero | tr '\\0' x") for number in range(15)]
    all_asked = asyncio.Event()

    def script(request: dict[str, Any]) -> dict[str, Any]:
        if calls:
            return calls.pop(0)
        all_asked.set()
        return tool("bash", command="sleep 60")

    async with StrictServer(script) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        process = await start("run", "Go.", "--json", *model, cwd=workspace, stdout=writing)
        os.close(writing)
        await asyncio.wait_for(all_asked.wait(), 60)
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 20) == 130
    os.close(reading)


async def test_without_a_task_a_session_that_is_done_has_nothing_left_to_do(workspace: Path) -> None:
    await run(workspace, ["Done."], "run", "Do it.", "--session", "mine")
    ended = await run(workspace, [], "run", "--session", "mine")
    assert ended.code == 2
    assert "nothing left to do" in ended.err
    ended = await run(workspace, [], "run", "--session", "other")
    assert ended.code == 2
    assert "no session 'other'" in ended.err


async def test_a_session_goes_on_in_its_own_workspace(workspace: Path, tmp_path: Path) -> None:
    await run(workspace, ["Done."], "run", "Do it.", "--session", "mine")
    ended = await run(tmp_path, [tool("bash", command="touch here"), "Done."], "run", "Go on.", "--session", "mine")
    assert ended.code == 0
    assert [path.name for path in _files(workspace)] == ["here"]


async def test_the_sessions_can_be_listed_and_shown(workspace: Path) -> None:
    ended = await handwork("sessions", "list", cwd=workspace)
    assert (ended.code, ended.out) == (0, "")
    await run(workspace, [LOOP, "Done \x1b[31mred\x1b[0m."], "run", "Do this first.", "--session", "mine")
    ended = await handwork("sessions", "list", cwd=workspace)
    assert ended.out.splitlines()[0].split() == ["ID", "WHEN", "STATUS", "AGENT", "STEPS", "COST", "TITLE"]
    row = ended.out.splitlines()[1]
    assert row.startswith("mine ")
    for part in ("finished", "manus", "2", "unknown", "Do this first."):
        assert part in row
    ended = await handwork("sessions", "list", "--json", cwd=workspace)
    assert ended.events[0]["id"] == "mine"
    ended = await handwork("sessions", "show", "mine", cwd=workspace)
    assert "> Do this first." in ended.out
    assert "▸ bash  echo again" in ended.out
    assert "Done red." in ended.out
    assert "finished after 2 steps" in ended.out
    ended = await handwork("sessions", "show", "mine", "--json", cwd=workspace)
    assert [event["seq"] for event in ended.events] == list(range(1, len(ended.events) + 1))
    ended = await handwork("sessions", "show", "mime", cwd=workspace)
    assert ended.code == 2
    assert "mine" in ended.err


async def test_a_killed_run_is_shown_as_interrupted_and_its_cost_as_not_known_yet(workspace: Path) -> None:
    script: list[Any] = [
        [tool("bash", command="true"), tool("bash", command="echo begun; sleep 60")],
        tool("bash", command="echo again"),
        "Went on.",
    ]
    async with StrictServer(script) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        first = await start("run", "Wait.", "--session", "mine", "--json", *model, cwd=workspace)
        await reached(first, "tool_output_delta")
        running = await handwork("sessions", "show", "mine", cwd=workspace)
        assert "interrupted" not in running.out
        first.kill()
        await asyncio.wait_for(first.communicate(), 10)
        killed = await handwork("sessions", "show", "mine", cwd=workspace)
        assert killed.out.count("── interrupted") == 1
        assert killed.out.rstrip().endswith("── interrupted")
        ended = await handwork("run", "--session", "mine", *model, cwd=workspace)
        assert (ended.code, ended.out) == (0, "Went on.\n")
    shown = (await handwork("sessions", "show", "mine", cwd=workspace)).out
    assert shown.count("── interrupted") == 1
    assert shown.index("── interrupted") < shown.index("· went on")
    assert "⎿ again" in shown


async def test_a_cost_is_shown_only_where_one_is_known(workspace: Path) -> None:
    await run(workspace, [error_answer(401, "bad key")], "run", "Do it.", "--session", "failed")
    await run(workspace, ["Done."], "run", "Do it.", "--session", "unpriced")
    (workspace / "prices.toml").write_text("[llm.prices]\ninput = 1\noutput = 1\n")
    await run(workspace, ["Done."], "run", "Do it.", "--session", "priced", "--config", "prices.toml")
    await run(workspace, ["Done."], "run", "And that.", "--session", "unpriced", "--config", "prices.toml")
    listed = (await handwork("sessions", "list", cwd=workspace)).out.splitlines()[1:]
    costs = {row.split()[0]: row.split()[6] for row in listed}
    assert costs == {"failed": "–", "unpriced": "unknown", "priced": "$0.0000"}
    events = (await handwork("sessions", "list", "--json", cwd=workspace)).events
    assert {event["id"]: event["cost"] for event in events} == {"failed": None, "unpriced": None, "priced": 1.5e-05}


async def test_models_are_listed_with_what_they_lack(workspace: Path) -> None:
    (workspace / "mine.toml").write_text('[llm]\nmodel = "openai:one"\n[llm.swe]\nmodel = "groq:two"')
    ended = await handwork("model", "list", "--config", "mine.toml", cwd=workspace, OPENAI_API_KEY="x")
    assert ended.code == 0
    rows = {row.split()[0]: row for row in ended.out.splitlines() if row.strip()}
    assert "usable" in rows["openai:one"]
    assert "GROQ_API_KEY" in rows["groq:two"]
    assert "not usable" in rows["local:smollm2-135m"]


async def test_the_version_is_printed(workspace: Path) -> None:
    ended = await handwork("--version", cwd=workspace)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("handwork ")


def _files(folder: Path) -> list[Path]:
    return list(folder.iterdir())
