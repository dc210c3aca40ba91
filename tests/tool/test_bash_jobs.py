"""Background jobs of the shell: listed, read and stopped by the tool that started them (CONTRACT D2)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from handwork.errors import ToolError
from handwork.schema import ToolResult
from handwork.tool.bash import Bash
from handwork.tool.shell_slot import may_leave_jobs
from handwork.tool.shell_table import read_table
from tests.tool.conftest import Place


async def run(place: Place, command: str | None = None, **arguments: Any) -> ToolResult:
    async with asyncio.timeout(30):
        return await Bash().execute(context=place.context(), command=command, **arguments)


async def test_a_job_is_listed_read_and_stopped(place: Place) -> None:
    await run(place, "(echo ready; exec sleep 311) & until grep -lszx '31[1]' /proc/[0-9]*/cmdline; do :; done")
    await run(place, "sleep 312 &")
    listed = await run(place, job="list")
    assert "%1  running" in listed.output
    assert "%2  running  sleep 312" in listed.output
    stopped = await run(place, job="%2", stop=True)
    assert stopped.output == "(nothing new)\n[job %2: ended: killed by signal 15 (SIGTERM)]"
    left = await run(place, "grep -lszx '31[12]' /proc/[0-9]*/cmdline | wc -l; jobs")
    assert left.output.startswith("1\n[1]+  Running ")
    assert "sleep 312" not in left.output


async def test_what_a_job_writes_is_its_own_and_comes_once(host: Place) -> None:
    await run(host, "mkfifo go; (read x < go; echo from the job; sleep 313) &")
    assert (await run(host, "echo mine")).output == "mine\n"
    await asyncio.to_thread((host.workspace / "go").write_text, "now\n")
    read = await run(host, job="1", timeout=1)
    assert read.output == "from the job\n[job %1: running]"
    assert (await run(host, job="1")).output == "(nothing new)\n[job %1: running]"


async def test_two_jobs_of_two_commands_do_not_mix(host: Place) -> None:
    await run(host, "(echo one; sleep 314) & until [ -e a ]; do touch a; done")
    started = await run(host, "(echo two; sleep 315) &")  # its first line may be there already
    texts = {name: (await run(host, job=name, timeout=1)).output for name in ("%1", "%2")}
    assert "two" not in texts["%1"]
    assert "two\n" in f"{started.output}\n{texts['%2']}"


async def test_output_of_a_background_job_is_read_all_the_time(host: Place) -> None:
    await run(host, "mkfifo done; (head -c 300000 /dev/zero | tr '\\0' y; echo > done) &")
    # More than a pipe holds: the job comes to its end only if somebody reads.
    await asyncio.to_thread((host.workspace / "done").read_text)
    result = await run(host, "echo mine")
    assert result.output.endswith("[this command]\nmine\n")
    assert 'read them with job: "%1"' in result.output
    text = (await run(host, job="%1")).output
    assert text.count("y") == 300_000


async def test_the_end_of_a_job_and_its_exit_code_are_told_once_at_the_next_call(place: Place) -> None:
    await run(place, "mkfifo go; (read x < go; exit 7) & sleep 316 &")
    await run(place, "echo > go; wait -n")
    told = await run(place, "true")
    assert "Job %1 (( read x < go; exit 7 )) has ended: exit code 7." in str(told.system)
    assert (await run(place, "true")).system is None
    assert (await run(place, job="list")).output == "%2  running  sleep 316"


@pytest.mark.parametrize(
    ("command", "how"),
    [
        ("kill -9 %1; wait %1", "signal 9"),
        ("kill %1; wait %1", "signal 15"),
        ("echo > go; wait %1", "exit code 0"),
    ],
)
async def test_how_a_job_ended_is_known_whoever_ended_it(host: Place, command: str, how: str) -> None:
    await run(host, "mkfifo go; (read x < go) &")
    await run(host, command)
    assert how in (await run(host, job="%1")).output


async def test_a_job_that_failed_within_its_call_is_told_and_one_that_went_well_is_not(host: Place) -> None:
    result = await run(
        host, "sh -c 'exit 9' & true & until ! kill -0 $!; do :; done 2>/dev/null; jobs >/dev/null; true"
    )
    assert "exit code 0" not in str(result.system)


async def test_stopping_asks_first_and_then_kills_all_below(place: Place) -> None:
    await run(place, "(trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done) &")
    polite = await run(place, job="%1", stop=True)
    assert "bye" in polite.output
    await run(place, "(trap '' TERM; sleep 317 | sleep 317; sleep 317) & sleep 318 &")
    await run(place, job="%1", stop=True)
    count = "grep -lszx '31[78]' /proc/[0-9]*/cmdline | wc -l"
    assert (await run(place, count)).output == "1\n"


async def test_processes_that_are_no_jobs_are_counted(host: Place) -> None:
    await run(host, "(setsid sleep 319 &)")
    assert "1 other process that commands left running" in (await run(host, job="list")).output


async def test_a_jobs_own_processes_are_not_said_to_be_left_behind(host: Place) -> None:
    await run(host, "(sleep 317; :) &")
    assert "1 other process of these jobs, or left running by commands" in (await run(host, job="list")).output


async def test_waiting_for_a_job_ends_with_it(host: Place) -> None:
    await run(host, "(sleep 0.3; echo over) &")
    result = await run(host, job="%1", timeout=20)
    assert result.output == "over\n[job %1: ended: exit code 0]"


async def test_many_commands_that_leave_jobs_still_work(host: Place) -> None:
    for number in range(20):
        assert (await run(host, f"sleep 320 & echo {number}")).output.endswith(f"{number}\n")
    assert (await run(host, job="list")).output.count("sleep 320") == 20
    assert (await run(host, job="%20", stop=True)).output.endswith("SIGTERM)]")


async def test_jobs_survive_their_shell_and_are_stopped_all_the_same(place: Place) -> None:
    await run(place, "sleep 321 &")
    await run(place, "exit 3")
    await run(place, "sleep 322 & true")
    listed = (await run(place, job="list")).output
    assert "%1  running  sleep 322" in listed
    assert "%1-old  running  sleep 321" in listed
    assert "ended" in (await run(place, job="%1-old", stop=True)).output
    assert (await run(place, "grep -lszx '32[12]' /proc/[0-9]*/cmdline | wc -l")).output == "1\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"job": "%9"}, "There is no job '%9'"),
        ({"job": "%1", "input": "x\n"}, "no terminal"),
        ({"job": "list", "stop": True}, "must name one job"),
        ({"job": "%1", "stop": True, "input": "x"}, "not both"),
        ({"job": "%1", "command": "ls"}, "a call of its own"),
        ({"input": "x"}, "which job"),
        ({"stop": True}, "which job"),
        ({"pty": True}, "`command` is required"),
    ],
)
async def test_unusable_arguments_about_jobs_are_clear_errors(
    host: Place, arguments: dict[str, Any], says: str
) -> None:
    await run(host, "sleep 323 &")
    with pytest.raises(ToolError, match=says):
        await run(host, **arguments)


def test_reading_a_job_is_no_execution_and_typing_is_one() -> None:
    tool = Bash()
    assert [action.kind for action in tool.actions({"job": "t1"})] == ["read"]
    (action,) = tool.actions({"job": "t1", "stop": True})
    assert (action.kind, action.command) == ("execute", "")
    typing = tool.actions({"job": "t1", "input": "x"})
    assert [(action.kind, action.resource) for action in typing] == [("execute", "*"), ("execute", "terminal t1")]
    (action,) = tool.actions({"command": "ls -l"})
    assert (action.kind, action.command) == ("execute", "ls -l")


@pytest.mark.parametrize(
    ("command", "may"),
    [
        ("sleep 1 &", True),
        ("a & b", True),
        ("x 2>&1 &", True),
        ("coproc cat", True),
        ("a && b", False),
        ("a 2>&1 | b |& c", False),
        ("a &> f", False),
        ("a >& f; b <&3", False),
    ],
)
def test_a_command_that_may_leave_jobs_is_known_by_its_sign(command: str, may: bool) -> None:
    assert may_leave_jobs(command) is may


def test_the_table_of_jobs_is_read_with_pipelines_and_compound_commands() -> None:
    text = (
        "[1]   100 Running                 sleep 1\n     101                       | cat &\n"
        "[2]-  102 Exit 3                  ( for i in 1 2;\ndo\n    echo $i;\ndone )\nnoise\n"
        "[3]+  103 Stopped                 vi  (wd: /tmp)\n"
    )
    entries = read_table(text.replace("noise\n", ""))
    assert [(e.number, e.pids, e.state, e.exit_code) for e in entries] == [
        (1, (100, 101), "Running", None),
        (2, (102,), "Exit 3", 3),
        (3, (103,), "Stopped", None),
    ]
    assert entries[0].command == "sleep 1 | cat"
    assert entries[2].command == "vi"
    assert entries[1].command.startswith("( for i in 1 2; do echo $i; done")
