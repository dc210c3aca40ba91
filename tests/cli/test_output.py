"""What cannot be written: a reader that has gone is no error, a full disk is one and never a bug of ours."""

from __future__ import annotations

import asyncio
import os
import shlex
from pathlib import Path

import pytest
from tests.cli.command import COMMAND, start
from tests.support.strict_server import StrictServer, tool

FULL = Path("/dev/full")
COMPLAINT = b"standard output cannot be written: No space left on device\n"


async def shell(line: str, cwd: Path) -> tuple[int, bytes]:
    """(exit code, standard error) of a shell line in which HANDWORK is the command."""
    process = await asyncio.create_subprocess_shell(
        line.replace("HANDWORK", shlex.join(COMMAND)),
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode is not None
    return process.returncode, err


@pytest.mark.parametrize("command", ["--version", "--help", "run --help", "model list"])
async def test_a_full_disk_behind_standard_output_is_said_and_no_bug(workspace: Path, command: str) -> None:
    assert await shell(f"HANDWORK {command} > {FULL}", workspace) == (1, b"handwork: " + COMPLAINT)


@pytest.mark.parametrize("option", [(), ("--quiet",), ("--json",)])
async def test_an_answer_that_cannot_be_written_ends_with_exit_code_1(workspace: Path, option: tuple[str, ...]) -> None:
    full = os.open(FULL, os.O_WRONLY)
    try:
        async with StrictServer([tool("bash", command="echo a"), "Done."]) as server:
            model = ("--base-url", server.url, "--model", "openai:any")
            process = await start("run", "Go.", *option, *model, cwd=workspace, stdout=full)
            _, err = await asyncio.wait_for(process.communicate(), 30)
    finally:
        os.close(full)
    assert process.returncode == 1
    assert err.endswith(COMPLAINT)
    assert b"bug" not in err
    assert b"Traceback" not in err
    assert (b"finished \xc2\xb7 2 steps" in err) is (option == ())


async def test_a_reader_of_the_answer_that_has_gone_is_no_error(workspace: Path) -> None:
    reading, writing = os.pipe()
    async with StrictServer(["Done."]) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        process = await start("run", "Go.", "--quiet", *model, cwd=workspace, stdout=writing)
        os.close(writing)
        os.close(reading)
        _, err = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, err) == (0, b"")


async def test_a_reader_of_a_list_that_has_gone_is_told_nothing(workspace: Path) -> None:
    code, err = await shell("(HANDWORK model list; echo $? >&2) | true", workspace)
    assert (code, err.strip()) in [(0, b"0"), (0, b"1")]


async def test_progress_that_nobody_can_read_changes_nothing(workspace: Path) -> None:
    async with StrictServer(["Done."]) as server:
        model = f"--base-url {server.url} --model openai:any"
        assert await shell(f"test $(HANDWORK run Go. {model} 2> {FULL}) = Done.", workspace) == (0, b"")
    code, _ = await shell(f"HANDWORK run Go. --model groq:some 2> {FULL}", workspace)
    assert code == 2
