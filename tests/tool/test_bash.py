"""bash on real sandboxes: nothing that a command does hangs or confuses it (CONTRACT D2)."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import psutil
import pytest

from handwork.errors import ToolError
from handwork.schema import Message, ToolResult
from handwork.tool.bash import Bash
from handwork.tool.shell import Shell
from handwork.tool.shell_process import frame
from tests.tool.conftest import Place, kill_all_children


async def run(place: Place, command: str | None = None, **arguments: Any) -> ToolResult:
    async with asyncio.timeout(30):
        return await Bash().execute(context=place.context(), command=command, **arguments)


async def test_state_is_kept_over_calls(place: Place) -> None:
    await run(place, "mkdir sub && cd sub; export A=1; b=2; f() { echo f$A$b; }; alias q='echo aliased'")
    assert (await run(place, "f; q; basename $PWD")).output == "f12\naliased\nsub\n"


async def test_it_starts_in_the_workspace(place: Place) -> None:
    (place.workspace / "here.txt").write_text("x")
    assert (await run(place, "ls")).output == "here.txt\n"


async def test_an_exit_code_is_shown_and_is_no_error(place: Place) -> None:
    result = await run(place, "echo out; (exit 3)")
    assert (result.output, result.error) == ("out\n[exit code: 3]", None)
    assert result.details is not None
    assert result.details["exit_code"] == 3


async def test_the_status_of_the_last_command_is_kept(host: Place) -> None:
    await run(host, "(exit 7)")
    assert (await run(host, "echo $?")).output == "7\n"


async def test_output_and_errors_come_in_order(place: Place) -> None:
    result = await run(place, "echo 1; echo 2 >&2; echo 3; echo 4 >&2")
    assert result.output == "1\n2\n3\n4\n"


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("echo a # trailing", "a\n"),
        ("echo a\n# last line", "a\n"),
        ('cat <<E\nit\'s $((1+1)) "x"\nE', 'it\'s 2 "x"\n'),
        ("cat <<'E'\n$HOME `no`\nE", "$HOME `no`\n"),
        ("printf 'no newline'", "no newline"),
        ("printf 'a\\000b'", "a\ufffdb"),
        ("printf '\\033[31mred\\033[0m \\033]0;title\\007x'", "red x"),
        ("printf '\\377\\376'", "\ufffd\ufffd"),
        ("printf 'a\\r\\nb\\rc'", "a\nb\nc"),
        (
            "for i in 1 2 3 4 5; do printf '\\r%s0%%' $i; done; echo",
            "[4 earlier states of this line, each overwritten, are left out]\n50%\n",
        ),
        ("echo trailing \\", "trailing \\\n"),
        ("", ""),
        ("\n\n", ""),
        ("cat; read x; echo $?", "1\n"),
        ("break; continue; echo on 2>/dev/null", None),
        ("echo 'it'\\''s' \"$(echo \"nested 'quotes'\")\"", "it's nested 'quotes'\n"),
        ("echo ü 漢字", "ü 漢字\n"),
    ],
)
async def test_every_form_of_a_command_ends(host: Place, command: str, output: str | None) -> None:
    result = await run(host, command)
    assert output is None or result.output == output
    assert (await run(host, "echo alive")).output == "alive\n"


@pytest.mark.parametrize(
    "command", ["echo 'open", 'echo "open', "echo $(", "if true", ")", "}", "cat <<E\nopen", "echo `x", "${"]
)
async def test_a_syntax_error_is_reported_and_the_shell_survives(host: Place, command: str) -> None:
    await run(host, "x=kept")
    result = await run(host, command)
    assert "bash: " in result.output
    assert (await run(host, "echo $x")).output == "kept\n"


@pytest.mark.parametrize(
    "setting",
    [
        "set -x",
        "set -v",
        "set -u",
        "set -f",
        "set -o posix",
        "set -m",
        "set -e",
        "trap 'echo DEBUG' DEBUG",
        "trap 'echo ERR' ERR",
        "trap '' INT TERM HUP",
        "exec > inner.txt",
        "exec 2>&-",
        "exec < /etc/passwd",
        "exec 19>&-",
        "ulimit -n 20",
        "alias printf='echo no' builtin='echo no' eval='echo no'",
        "printf() { echo no; }; eval() { echo no; }",
        "shopt -s extglob nullglob failglob",
        "IFS=x",
        "PATH=/nowhere",
        "unset -v PWD HOME",
        "cd / && unset PWD",
    ],
)
async def test_no_setting_of_the_shell_confuses_the_end_of_a_command(host: Place, setting: str) -> None:
    await run(host, setting)
    result = await run(host, "echo marked")
    assert "marked\n" in result.output
    assert (result.error, result.system) == (None, None)
    assert (await run(host, "echo again")).output.endswith("again\n")


async def test_a_command_that_prints_what_ends_a_command_is_not_believed(host: Place) -> None:
    shown = await run(host, "set; declare -p; trap 'echo $BASH_COMMAND' DEBUG; set -xv; history; echo end")
    assert "end\n" in shown.output
    assert "[exit code" not in shown.output
    faked = await run(host, "trap - DEBUG; set +xv; printf '%s 9 /tmp\\0' 0123456789abcdef0123456789abcdef; echo real")
    assert faked.output.endswith(" 9 /tmp\ufffdreal\n")


@pytest.mark.parametrize("pipe", ["", "/tmp/a b'c"])
def test_the_token_is_read_only_after_the_command_is_over(pipe: str) -> None:
    lines = frame("echo it's\nme", 0, "TOKEN", pipe).splitlines()
    command_ends = next(number for number, line in enumerate(lines) if line.startswith("me'"))
    assert "TOKEN" not in "\n".join(lines[: command_ends + 1])
    assert "TOKEN" in lines[command_ends + 1]


async def test_exit_ends_the_shell_and_the_next_call_says_so(place: Place) -> None:
    await run(place, "x=1")
    result = await run(place, "trap 'echo bye' EXIT; exit 4")
    assert result.output == "bye\n[exit code: 4]"
    assert "shell has ended" in str(result.system)
    after = await run(place, "echo x=$x")
    assert after.output == "x=\n"
    assert "exit code 4" in str(after.system)
    assert (await run(place, "echo z")).system is None


async def test_exit_with_a_background_job_holding_the_output_does_not_hang(place: Place) -> None:
    result = await run(place, "sleep 300 & exit 0")
    assert "shell has ended" in str(result.system)
    assert (await run(place, "echo on")).output == "on\n"


async def test_exec_replaces_the_shell_and_its_output_is_shown(place: Place) -> None:
    result = await run(place, "exec sh -c 'echo replaced; exit 6'")
    assert result.output == "replaced\n[exit code: 6]"


async def test_set_e_ends_the_shell_at_the_first_failure(host: Place) -> None:
    result = await run(host, "set -e; echo one; false; echo two")
    assert result.output == "one\n[exit code: 1]"
    assert "shell has ended" in str(result.system)


async def test_a_shell_that_was_killed_is_an_error(place: Place) -> None:
    result = await run(place, "echo before; kill -9 $$")
    assert "SIGKILL" in str(result.error)
    assert result.output.startswith("before")


async def test_commands_find_standard_input_empty_and_no_terminal(place: Place) -> None:
    result = await run(place, "cat; tty; python3 -c 'input()' 2>&1 | tail -1; cat </dev/tty")
    assert "not a tty" in result.output
    assert "EOFError" in result.output


async def test_a_background_job_does_not_hang_the_call_and_lives_on(place: Place) -> None:
    result = await run(place, "sleep 300 & echo started")
    assert result.output == "started\n"
    assert "Running" in (await run(place, "jobs")).output


async def test_a_hundred_megabytes_are_bounded_with_head_tail_and_a_note(place: Place) -> None:
    result = await run(place, "echo first; yes | head -c 100000000; echo last")
    assert len(result.output) < 401_000
    assert result.output.startswith("first\ny\n")
    assert result.output.endswith("y\nlast\n")
    assert result.details is not None
    assert result.details["omitted_bytes"] == 100_000_011 - 400_000
    assert "[... 99600011 bytes omitted ...]" in result.output
    assert "too long" in str(result.system)


async def test_a_time_out_kills_the_whole_tree_and_keeps_shell_and_output(place: Place) -> None:
    seconds = f"{os.getpid()}30"  # by which these are known among those of other workers
    await run(place, f"x=kept; sleep {seconds}1 &")
    killed = f"echo partial; (setsid sleep {seconds}2 & sleep {seconds}3 & sleep {seconds}4)"
    result = await run(place, killed, timeout=1)
    assert "timed out after 1 s" in str(result.error)
    assert "A new shell goes on with the state from before it" in str(result.error)
    assert result.output.startswith("partial\n")
    after = await run(
        place, f"echo $x; for n in '[1]' '[234]'; do grep -lszx \"{seconds}$n\" /proc/[0-9]*/cmdline | wc -l; done"
    )
    assert after.output == "kept\n1\n0\n"
    assert f"sleep {seconds}1" in (await run(place, job="list")).output


async def test_the_end_of_the_runs_time_bounds_a_command(host: Place) -> None:
    deadline = asyncio.get_running_loop().time() + 0.5
    result = await Bash().execute(context=host.context(deadline=deadline), command="sleep 100", timeout=90)
    assert "timed out" in str(result.error)


async def test_cancelling_kills_the_tree_within_two_seconds_and_the_next_result_says_so(place: Place) -> None:
    await run(place, "x=kept")
    place.seen.clear()
    task = asyncio.create_task(run(place, "echo going; setsid sleep 305; touch finished"))
    await place.seen.wait()
    task.cancel()
    async with asyncio.timeout(2):
        with pytest.raises(asyncio.CancelledError):
            await task
    after = await run(place, "echo $x; grep -lszx '3[0]5' /proc/[0-9]*/cmdline | wc -l")
    assert after.output == "kept\n0\n"
    assert "cancelled" in str(after.system)
    assert "goes on with the state" in str(after.system)
    assert not (place.workspace / "finished").exists()


async def test_output_is_shown_while_the_command_runs(host: Place) -> None:
    task = asyncio.create_task(run(host, "echo early; until [ -e go ]; do sleep 0.01; done; printf '\\033[1mlate'"))
    await host.seen.wait()
    assert "".join(host.shown) == "early\n"
    (host.workspace / "go").touch()
    await task
    assert "".join(host.shown) == "early\nlate"


async def test_a_million_lines_are_shown_in_a_few_pieces(host: Place) -> None:
    result = await run(host, "seq 1000000", timeout=25)
    assert result.output.endswith("999999\n1000000\n")
    assert len(host.shown) < 200
    assert sum(map(len, host.shown)) < 2_000_000


async def test_time_and_memory_of_a_command_are_in_its_details(place: Place) -> None:
    busy = await run(place, "i=0; while ((i < 200000)); do ((i += 1)); done")
    assert busy.details is not None
    assert float(str(busy.details["cpu_seconds"])) > 0.05
    assert int(str(busy.details["peak_memory"])) > 1_000_000
    idle = await run(place, "true")
    assert idle.details is not None
    assert float(str(idle.details["cpu_seconds"])) < 0.05


async def test_restart_gives_a_fresh_shell_and_ends_its_jobs(place: Place) -> None:
    await run(place, "x=old; sleep 306 &")
    result = await run(place, restart=True)
    assert "restarted" in result.output
    after = await run(place, "echo x=$x; grep -lszx '3[0]6' /proc/[0-9]*/cmdline | wc -l")
    assert after.output == "x=\n0\n"
    assert after.system is None
    assert (await run(place, "echo both", restart=True)).output == "both\n"


async def test_a_new_shell_in_a_resumed_session_says_so_once(host: Place) -> None:
    history = [Message.tool_message("Observed output", "bash", "c1")]
    tool = Bash()
    first = await tool.execute(context=host.context(history=history), command="echo a")
    second = await tool.execute(context=host.context(history=history), command="echo b")
    assert "resumed" in str(first.system)
    assert second.system is None


@pytest.mark.parametrize("answer", ["Not executed: denied by the policy", "Error: Invalid arguments for bash: no"])
async def test_a_call_that_never_began_makes_no_resumed_session(host: Place, answer: str) -> None:
    history = [Message.tool_message(answer, "bash", "c1", is_error=True)]
    first = await Bash().execute(context=host.context(history=history), command="echo a")
    assert first.system is None


async def test_a_look_at_the_jobs_before_the_first_command_makes_no_resumed_session(host: Place) -> None:
    tool = Bash()
    await tool.execute(context=host.context(), job="list")
    history = [Message.tool_message("Observed output", "bash", "c1")]
    after = await tool.execute(context=host.context(history=history), command="echo a")
    assert after.system is None


async def test_a_new_sandbox_means_a_new_shell_and_says_so(host: Place) -> None:
    await run(host, "x=1")
    shell = host.resources["shell"]
    assert isinstance(shell, Shell)
    assert shell._bash is not None
    shell._bash.generation -= 1  # as after a restart of the sandbox
    after = await run(host, "echo x=$x")
    assert after.output == "x=\n"
    assert "started anew" in str(after.system)


async def test_pagers_and_prompts_are_off(host: Place) -> None:
    result = await run(host, "echo $TERM $PAGER $GIT_TERMINAL_PROMPT $DEBIAN_FRONTEND")
    assert result.output == "dumb cat 0 noninteractive\n"


@pytest.mark.parametrize(
    "arguments", [{}, {"command": "a\0b"}, {"command": "true", "timeout": 0}, {"command": "true", "timeout": -5}]
)
async def test_unusable_arguments_are_clear_errors(host: Place, arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolError):
        await run(host, **arguments)


async def test_a_large_command_is_run(host: Place) -> None:
    text = "x" * 300_000
    result = await run(host, f"cat > big.txt <<'E'\n{text}\nE\nwc -c < big.txt")
    assert result.output.strip() == "300001"


async def test_a_lone_surrogate_in_a_command_is_replaced(host: Place) -> None:
    assert (await run(host, "echo 'a\ud800b'")).output == "a\ufffdb\n"


async def test_two_commands_at_once_run_one_after_the_other(host: Place) -> None:
    first, second = await asyncio.gather(run(host, "sleep 0.2; echo one"), run(host, "echo two"))
    assert (first.output, second.output) == ("one\n", "two\n")


async def test_closing_leaves_no_process(host: Place) -> None:
    await run(host, "sleep 307 & setsid sleep 308 & (trap '' TERM; sleep 309) &")
    await host.close()
    left = [p for p in psutil.Process(os.getpid()).children(recursive=True) if "sleep" in p.name()]
    assert left == []


async def test_a_command_of_another_call_may_not_be_declared_harmless() -> None:
    (action,) = Bash().actions({"command": "ls"})
    assert (action.kind, action.resource, action.repeatable) == ("execute", "*", False)


async def test_a_sandbox_that_dies_is_started_anew_and_the_next_result_says_so(place: Place) -> None:
    await run(place, "x=1")
    kill_all_children()
    after = await run(place, "echo x=$x")
    assert after.output == "x=\n"
    assert "started anew" in str(after.system)


async def test_a_shell_that_dies_between_two_calls_is_replaced(host: Place) -> None:
    pid = int((await run(host, "x=1; echo $$")).output)
    psutil.Process(pid).kill()
    await asyncio.wait({host.resources["shell"]._bash._reader}, timeout=10)
    after = await run(host, "echo x=$x")
    assert after.output == "x=\n"
    assert "signal 9" in str(after.system)
