"""After a time-out or a cancel nothing of a command runs any more, and the next one finds the shell as it was before."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from handwork.schema import ToolResult
from handwork.tool.bash import Bash
from tests.tool.conftest import Place

RUNNING_ON = {
    "the next command": "sleep 60; touch late",
    "the next line": "sleep 60\ntouch late",
    "and": "sleep 60 && touch late",
    "or": "sleep 60 || touch late",
    "not": "if ! sleep 60; then touch late; fi",
    "a redirection": "sleep 60; { :; } > late",
    "an assignment": "sleep 60; x=$(touch late)",
    "a loop": "while :; do sleep 60; touch late; done",
    "until": "until sleep 60; do touch late; done",
    "a loop without programs": "SECONDS=0; while ((SECONDS < 3)); do :; done; touch late",
    "for": "for n in 1 2 3; do sleep 60; touch late; done",
    "a function": "f() { sleep 60; touch late; }; f",
    "a substitution": "echo $(sleep 60; touch late); touch late",
    "a subshell": "(sleep 60; touch late); touch late",
    "a pipeline": "yes | while read -r line; do sleep 60; touch late; done; touch late",
    "lastpipe": "shopt -s lastpipe; echo | { sleep 60; touch late; }",
    "a here-document": "bash <<'E'\nsleep 60\ntouch late\nE\ntouch late",
    "a sourced file": "printf 'sleep 60\\ntouch late\\n' > part; . ./part; touch late",
    "eval": "eval 'sleep 60; touch late'",
    "a wait": "sleep 60 & wait; touch late",
    "a read": "read -t 60 < <(sleep 60); touch late",
    "select": "select x in a b; do :; done < <(sleep 60); touch late",
    "a coprocess": "coproc { sleep 60; touch late; }; wait; touch late",
    "a trap of the exit": "trap 'touch late' EXIT; sleep 60",
    "a trap of an error": "trap 'touch late' ERR; sleep 60",
    "a trap of a child": "trap 'touch late' CHLD; sleep 60",
    "traps of signals": "trap 'touch late' INT TERM HUP USR1 USR2 RTMIN; sleep 60; touch late",
    "a trap of every command": "n=0; trap '((n++ < 2)) || touch late' DEBUG; sleep 60; :",
    "ignored signals": "trap '' INT TERM HUP USR1 USR2 CHLD; sleep 60; touch late",
    "job control": "set -m; sleep 60; touch late",
    "another session": "setsid bash -c 'sleep 60; touch late' & sleep 60; touch late",
    "another shell": "bash -c 'sleep 60; touch late'; touch late",
    "exec": "exec bash -c 'sleep 60; touch late'",
    "its own names": "trap() { :; }; kill() { :; }; exec() { :; }; sleep 60; touch late",
    "no builtin": "builtin() { touch late; }; sleep 60; touch late",
    "a stopped shell": "kill -STOP $$; touch late",
}


async def run(place: Place, command: str | None = None, **arguments: Any) -> ToolResult:
    return await Bash().execute(context=place.context(), command=command, **arguments)


async def cancelled(place: Place, command: str) -> None:
    place.seen.clear()
    task = asyncio.create_task(run(place, f"echo going; {command}"))
    await place.seen.wait()
    task.cancel()
    async with asyncio.timeout(5):
        await asyncio.wait({task})
    assert task.cancelled()


@pytest.mark.parametrize("command", RUNNING_ON.values(), ids=RUNNING_ON)
async def test_nothing_of_a_command_runs_after_its_time(host: Place, command: str) -> None:
    await run(host, "x=kept")
    result = await run(host, command, timeout=1)
    assert "timed out after 1 s" in str(result.error)
    assert "goes on with the state from before it" in str(result.error)
    assert (await run(host, "echo $x")).output == "kept\n"
    assert not (host.workspace / "late").exists()


async def test_nothing_of_a_command_runs_after_its_time_or_a_cancel_on_any_backend(place: Place) -> None:
    await run(place, "x=kept; mkdir inner; cd inner")
    await run(place, "cd /; sleep 60; touch late", timeout=1)
    await cancelled(place, "while :; do sleep 0.05; done; touch late")
    await cancelled(place, "sleep 60; touch late")
    after = await run(place, "echo $x ${PWD##*/}")
    assert after.output == "kept inner\n"
    assert str(after.system).startswith(
        "The command before was cancelled and killed with all its processes. A new shell"
    )
    assert not list(place.workspace.rglob("late"))


STATE = r"""
mkdir -p inner; cd inner
plain='two words'; export out=$'line\nand "quotes" $HOME `x` \xff'; declare -i number=3; readonly fixed=1
list=(a 'b c' [7]=d); declare -A map=([k 1]='v 1'); declare -n ref=plain; unset LANG; declare -x bare
shopt -s extglob nullglob; set -u; set -o pipefail; umask 027; set -- one 'two three'
greet() { case $1 in @(a|b)) echo "hi $1 $plain" ;; esac; }; export -f greet
alias say='echo said'
"""
SHOW = r"""
declare -p plain out number list map ref bare LANG 2>&1 | grep -v '^bash: line'
echo "$fixed $ref $# $2 ${PWD##*/} $(umask) $-"; shopt extglob nullglob | cat; set -o | grep -E 'pipefail|nounset'
greet a; bash -c 'greet b'; (fixed=2) 2>&1 | grep -o readonly
say so
"""


async def test_the_state_from_before_is_taken_up_again_and_again(place: Place) -> None:
    await run(place, STATE)
    before = await run(place, SHOW)
    assert "hi a two words" in before.output
    assert "said so" in before.output
    for _ in range(2):
        result = await run(place, "plain=other; unset -f greet; cd /; set +u; sleep 60", timeout=1)
        assert "goes on with the state from before it" in str(result.error)
        assert (await run(place, SHOW)).output == before.output


@pytest.mark.parametrize(
    "setting",
    [
        "set -e",
        "set -x",
        "set -v",
        "set -m",
        "set -o posix",
        "set -o noclobber",
        "set -a",
        "set -f; IFS=x",
        "trap 'echo DEBUG' DEBUG",
        "alias builtin=no eval=no if=no printf=no declare=no",
        "printf() { echo no; }; eval() { echo no; }; declare() { echo no; }; source() { echo no; }",
        "shopt -s failglob",
        "PATH=/nowhere",
        "exec > /dev/null",
        "ulimit -n 20",
        "for n in {1..10000}; do declare v$n=$n; done",
    ],
)
async def test_no_setting_of_the_shell_is_in_the_way_of_its_state(host: Place, setting: str) -> None:
    await run(host, f"x=kept; {setting}")
    result = await run(host, "while :; do :; done; > late", timeout=2)
    assert "goes on with the state from before it" in str(result.error)
    assert "kept\n" in (await run(host, "echo $x")).output
    assert not (host.workspace / "late").exists()


@pytest.mark.parametrize("setting", ["unset -f __handwork_save", "x=$(printf '%01500000d' 1)"])
async def test_a_state_that_cannot_be_told_is_lost_and_that_is_said(host: Place, setting: str) -> None:
    await run(host, f"y=lost; {setting}", timeout=3)
    result = await run(host, "while :; do :; done", timeout=1)
    assert "its variables, functions, aliases and current folder are gone" in str(result.error)
    assert (await run(host, "echo $y.")).output == ".\n"


async def test_a_folder_that_is_gone_is_told(host: Place) -> None:
    await run(host, "x=kept; mkdir inner; cd inner")
    result = await run(host, "rmdir ../inner; sleep 60", timeout=1)
    assert "That folder cannot be entered, so the shell is in the workspace." in str(result.error)
    assert (await run(host, "echo $x $PWD")).output == f"kept {host.workspace.resolve()}\n"


async def test_a_command_that_writes_on_the_pipe_of_the_state_changes_nothing_of_it(host: Place) -> None:
    await run(host, "x=kept")
    forged = r"for fd in /proc/$$/fd/17; do printf '# %s\ntouch late\n# %s\n' a a > $fd; done; sleep 60"
    await run(host, forged, timeout=1)
    assert (await run(host, "echo $x")).output == "kept\n"
    assert not (host.workspace / "late").exists()


async def test_jobs_of_earlier_commands_run_on_and_stay_known(place: Place) -> None:
    await run(place, "(while :; do echo beat; sleep 0.2; done) & echo started")
    await run(place, "sh -c 'while :; do echo tick; sleep 0.1; done' > ticks 2>&1 &")
    await run(place, "sleep 60", timeout=1)
    listed = (await run(place, job="list")).output
    assert "%1  running" in listed
    assert "%2  running" in listed
    assert "beat" in (await run(place, job="%1", timeout=1)).output
    await run(place, job="%1", stop=True)
    assert "%1  running" not in (await run(place, job="list")).output


async def test_a_hidden_job_does_not_wait_on_a_pipe_that_nobody_reads_after_its_shell_was_killed(host: Place) -> None:
    hidden = (
        "(until [ -e go ]; do sleep 0.05; done; head -c 300000 /dev/zero | tr '\\0' z; echo beat; touch written) &\n"
    )
    (host.workspace / "start").write_text(hidden)
    await run(host, "bash ./start")
    await run(host, "sleep 60", timeout=1)
    await run(host, "touch go; until [ -e written ]; do sleep 0.05; done", timeout=10)
    assert (host.workspace / "written").exists()
    assert "beat" in (await run(host, "echo after")).output
