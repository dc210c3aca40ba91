"""A task was typed and standard input holds something too: that is said, and nothing is waited for."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import sys
from pathlib import Path

import pytest
from tests.cli.command import handwork, start
from tests.cli.test_run import run
from tests.support.strict_server import StrictServer

from handwork.cli.stdin import input_waits

SAID = "Standard input is not read"


async def test_data_in_a_pipe_beside_a_typed_task_is_not_left_out_in_silence(workspace: Path) -> None:
    ended = await run(workspace, ["Done."], "run", "Sum it up", stdin="the text")
    assert ended.code == 0
    assert SAID in ended.err
    async with StrictServer(["Done."]) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        ended = await handwork("run", *model, stdin="the task", cwd=workspace)
    assert SAID not in ended.err


async def test_a_pipe_that_stays_open_and_empty_is_not_waited_for(workspace: Path) -> None:
    reading, writing = os.pipe()
    try:
        async with StrictServer(["Done."]) as server:
            model = ("--base-url", server.url, "--model", "openai:any")
            process = await start("run", "Do it.", *model, cwd=workspace, stdin=reading)
            _, err = await asyncio.wait_for(process.communicate(), 30)
    finally:
        os.close(reading)
        os.close(writing)
    assert process.returncode == 0
    assert SAID.encode() not in err


def test_only_what_is_still_to_be_read_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def waits(descriptor: int) -> bool:
        with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            return input_waits()

    reading, writing = os.pipe()
    assert not waits(reading)
    os.write(writing, b"x")
    assert waits(reading)
    os.read(reading, 1)
    os.close(writing)
    assert not waits(reading)  # at its end
    os.close(reading)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert not waits(ours.fileno())
        theirs.send(b"x")
        assert waits(ours.fileno())
    file = tmp_path / "file"
    file.write_text("x")
    with file.open("rb", buffering=0) as stream:
        assert waits(stream.fileno())
        stream.read()
        assert not waits(stream.fileno())
    with Path(os.devnull).open("rb") as nothing:
        assert not waits(nothing.fileno())
    monkeypatch.setattr(sys, "stdin", None)
    assert not input_waits()
    monkeypatch.setattr(sys, "stdin", io.StringIO("x"))
    assert not input_waits()
