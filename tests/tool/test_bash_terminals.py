"""Programs in a terminal: started with pty, read, typed into and stopped as jobs; without one they fail fast (CONTRACT D2)."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from handwork.errors import ToolError
from handwork.schema import ToolResult
from handwork.tool.bash import Bash
from handwork.tool.terminal_hint import hint_for
from handwork.tool.terminal_keys import typed
from tests.tool.conftest import Place


async def run(place: Place, command: str | None = None, **arguments: Any) -> ToolResult:
    async with asyncio.timeout(30):
        return await Bash().execute(context=place.context(), command=command, **arguments)


def _tells_sleep() -> bool:
    try:
        return any(Path(f"/proc/{pid}/wchan").read_text() not in ("", "0") for pid in psutil.pids()[:50])
    except OSError:
        return False


needs_wchan = pytest.mark.skipif(not _tells_sleep(), reason="this kernel does not tell in what a process sleeps")


@needs_wchan
async def test_a_program_is_asked_and_answered(place: Place) -> None:
    first = await run(place, "python3 -q", pty=True)
    assert first.output == ">>>\n[job t1: waits for input]"
    second = await run(place, job="t1", input="6 * 7\\n")
    assert second.output == ">>> 6 * 7\n42\n>>>\n[job t1: waits for input]"
    last = await run(place, job="1", input="\\x04")
    assert last.output.endswith("[job t1: ended: exit code 0]")
    assert last.details is not None
    assert (last.details["exit_code"], last.details["ended"]) == (0, True)
    assert set(last.details) >= {"cpu_seconds", "peak_memory", "seconds"}


@needs_wchan
@pytest.mark.parametrize(
    ("command", "prompt"),
    [
        ("read -p 'name? ' x; echo got $x", "name?"),
        ("read -s -p 'secret: ' x < /dev/tty; echo got $x", "secret:"),
        ("python3 -c \"import getpass; print('got', getpass.getpass('pass: '))\"", "pass:"),
        ("sh -c 'printf q:; head -n 1 | sed s/^/got\\ /'", "q:"),
    ],
)
async def test_whatever_asks_at_its_terminal_is_seen_to_wait(host: Place, command: str, prompt: str) -> None:
    asked = await run(host, command, pty=True)
    assert asked.output == f"{prompt}\n[job t1: waits for input]"
    answered = await run(host, job="t1", input="me\\n")
    assert "got me" in answered.output
    assert "ended: exit code 0" in answered.output


@needs_wchan
async def test_a_program_that_only_sleeps_does_not_seem_to_wait_for_input(host: Place) -> None:
    result = await run(host, "echo begun; sleep 331", pty=True, timeout=1)
    assert result.output.startswith("begun\n[job t1: still running")


async def test_a_silent_program_does_not_hold_the_call(host: Place) -> None:
    result = await run(host, "echo begun; sleep 332", pty=True)
    assert result.output.startswith("begun\n[job t1: running; it has written nothing")
    assert result.details is not None
    assert float(str(result.details["seconds"])) < 8


async def test_it_runs_in_the_shells_folder_with_its_environment_and_a_size(place: Place) -> None:
    await run(place, "mkdir sub; cd sub; export KIND='a b'; export MULTI=$'x\\ny'")
    result = await run(
        place, 'pwd; echo $KIND; echo "$MULTI" | wc -l; stty size; tty > /dev/null && echo $TERM; exit 5', pty=True
    )
    assert result.output.splitlines()[1:] == ["a b", "2", "30 100", "xterm", "[job t1: ended: exit code 5]"]
    assert result.output.splitlines()[0].endswith("/sub")


async def test_what_is_drawn_is_shown_as_a_person_would_see_it(host: Place) -> None:
    result = await run(
        host,
        "for i in 10 50 100; do printf '\\r\\033[32m%s%%\\033[0m' $i; done; printf '\\nab\\b\\033[K!\\n'",
        pty=True,
    )
    assert result.output == "100%\na!\n[job t1: ended: exit code 0]"


@pytest.mark.skipif(not shutil.which("vim"), reason="there is no vim here")
async def test_a_full_screen_editor_can_be_used(place: Place) -> None:
    (place.workspace / "f.txt").write_text("old\n")
    shown = await run(place, "vim -u NONE f.txt", pty=True)
    assert shown.output.startswith("old\n~\n")
    saved = await run(place, job="t1", input="inew \\e:wq\\n", timeout=10)
    assert "ended: exit code 0" in saved.output
    assert (place.workspace / "f.txt").read_text() == "new old\n"


async def test_stopping_ends_its_tree_and_no_other(place: Place) -> None:
    await run(place, "sleep 333 &")
    await run(place, "trap '' HUP; setsid sleep 334 & sleep 334", pty=True, timeout=1)
    stopped = await run(place, job="t1", stop=True)
    assert "ended: killed by signal" in stopped.output
    left = await run(
        place, "grep -lszx '33[4]' /proc/[0-9]*/cmdline | wc -l; grep -lszx '33[3]' /proc/[0-9]*/cmdline | wc -l"
    )
    assert left.output == "0\n1\n"


async def test_restart_and_close_end_all_terminals(host: Place) -> None:
    await run(host, "sleep 335", pty=True, timeout=1)
    await run(host, restart=True)
    assert (await run(host, job="list")).output == "No jobs."
    await run(host, "sleep 336", pty=True, timeout=1)
    await host.close()
    assert [p for p in psutil.Process().children(recursive=True) if p.name() == "sleep"] == []


async def test_a_call_that_is_cancelled_while_a_program_starts_ends_it(host: Place) -> None:
    task = asyncio.create_task(run(host, "echo on; sleep 337", pty=True))
    await host.seen.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [p for p in psutil.Process().children(recursive=True) if p.name() == "sleep"] == []


async def test_the_end_of_a_terminal_is_told_with_the_next_command(host: Place) -> None:
    await run(host, "mkfifo go; read x < go; exit 6", pty=True, timeout=1)
    told = str((await run(host, "echo > go")).system)
    await asyncio.wait({host.resources["shell"].jobs.get("t1")._reader}, timeout=10)
    told += str((await run(host, "true")).system)
    assert told.count("Job t1 (mkfifo go; read x < go; exit 6) has ended: exit code 6.") == 1
    with pytest.raises(ToolError, match="has ended"):
        await run(host, job="t1", input="x")


async def test_a_program_that_floods_its_terminal_is_bounded_and_stopped(host: Place) -> None:
    used = time.process_time()
    result = await run(host, "yes 0123456789", pty=True, timeout=2)
    assert time.process_time() - used < 1.0  # it is slowed down, and does not keep us busy
    assert "lines omitted" in result.output
    assert len(result.output) < 40_000
    assert "ended" in (await run(host, job="t1", stop=True)).output


async def test_there_are_only_so_many_terminals(host: Place) -> None:
    shell_calls = [run(host, "sleep 338", pty=True, timeout=1) for _ in range(8)]
    await asyncio.gather(*shell_calls)
    with pytest.raises(ToolError, match="8 terminals are open"):
        await run(host, "true", pty=True)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("ls\\n", b"ls\r"),
        ("ls\n", b"ls\r"),
        ("\\x03", b"\x03"),
        ("\\e[A", b"\x1b[A"),
        ("a\\\\b\\t", b"a\\b\t"),
        ("ü", "ü".encode()),
        ("", b""),
    ],
)
def test_keys_have_a_notation(text: str, keys: bytes) -> None:
    assert typed(text) == keys


@pytest.mark.parametrize("text", ["\\q", "\\x1", "\\"])
def test_an_unknown_key_is_a_clear_error(text: str) -> None:
    with pytest.raises(ToolError, match="unknown escape"):
        typed(text)


# ---- without a terminal


@pytest.mark.parametrize(
    "command",
    [
        "read x < /dev/tty",
        "python3 -c 'import getpass; getpass.getpass()'",
        "python3 -c 'input()'",
        "python3",
        "bash -c 'stty -echo'",
        "git init -q; git config user.name a; git config user.email a@b; touch f; git add f; git commit",
    ],
)
async def test_programs_that_want_a_terminal_end_quickly_with_a_hint(place: Place, command: str) -> None:
    async with asyncio.timeout(10):
        result = await run(place, command)
    assert "pty: true" in str(result.system)


@pytest.mark.skipif(not shutil.which("vim"), reason="there is no vim here")
async def test_vim_without_a_terminal_ends_unless_it_was_given_commands(host: Place) -> None:
    async with asyncio.timeout(10):
        assert "pty: true" in str((await run(host, "vim x")).system)
        await run(host, "echo aa > f; vim -c s/a/b/ -c wq f; vim -es +s/b/c/ +x f")
    assert (host.workspace / "f").read_text() == "ca\n"


@pytest.mark.parametrize(
    ("command", "output", "code", "wanted"),
    [
        ("top", "top: failed tty get\n", 1, True),
        ("sudo x", "sudo: a terminal is required to read the password\n", 1, True),
        ("git push", "fatal: could not read Username: terminal prompts disabled\n", 128, True),
        ("ssh-keygen", "Enter file in which to save the key (/home/agent/.ssh/id): ", 1, True),
        ("node", "", 0, True),
        (
            "ssh h",
            "Pseudo-terminal will not be allocated because stdin is not a terminal.\nssh: no route\n",
            255,
            False,
        ),
        ("ls", "ls: no such file\n", 2, False),
        ("grep tty f", "the words not a tty\n", 0, False),
        ("node app.js", "", 0, False),
        ("read -p 'Name? ' name", "", 1, True),
        ('read -rp "Name? " name; echo "Hello $name"', "Hello \n", 0, True),
        ("make && read -r -p ok", "made\n", 1, True),
        ("read -p ok x < answers", "", 0, False),
        ("echo y | read -p ok x", "", 0, False),
        ("read -r line", "", 1, False),
        ("cat read -p", "", 0, False),
    ],
)
def test_a_hint_is_given_where_a_terminal_was_wanted(command: str, output: str, code: int, wanted: bool) -> None:
    assert bool(hint_for(command, output, code)) is wanted
