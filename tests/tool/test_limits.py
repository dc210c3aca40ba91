"""A tool that uses too much is ended, the model is told why, and the next call works: memory, processes and output."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from handwork.sandbox.bwrap import BwrapSandbox
from handwork.sandbox.limits import Limits
from handwork.schema import ToolResult
from handwork.tool.bash import Bash
from handwork.tool.python_execute import PythonExecute
from handwork.tool.terminal_text import plain
from tests.tool.conftest import Place

_LIMITS = Limits(processes=60, memory=500 << 20)
_HOG = "x = [bytearray(b'x') * (1 << 20) for _ in range(1500)]"


@pytest.fixture
async def small(tmp_path: Path) -> AsyncIterator[Place]:
    """A session's place whose sandbox has small limits."""
    workspace, artifacts = tmp_path / "workspace", tmp_path / "artifacts"
    sandbox = BwrapSandbox(workspace, artifacts, lambda level, text: None, limits=_LIMITS)
    place = Place(sandbox, workspace, artifacts)
    yield place
    await place.close()


async def _call(place: Place, tool: Bash | PythonExecute, **arguments: Any) -> tuple[ToolResult, list[str]]:
    """The result, and the sentences that the turn adds for the model."""
    result = await tool.execute(context=place.context(), **arguments)
    return result, list(await place.sandbox.after_call())


async def test_a_memory_hog_in_the_kernel_costs_the_kernel_and_says_so(small: Place) -> None:
    python = PythonExecute()
    result, told = await _call(small, python, code=_HOG)
    assert result.error
    assert "memory limit of 500 MiB" in told[0]
    result, told = await _call(small, python, code="6 * 7")
    assert "42" in result.output
    assert told == []


async def test_a_memory_hog_in_the_shell_leaves_the_shell_as_it_was(small: Place) -> None:
    bash = Bash()
    await _call(small, bash, command="mine=kept")
    result, told = await _call(small, bash, command=f"python3 -S -c '{_HOG.replace(chr(39), chr(34))}'")
    assert "137" in str(result)
    assert "memory limit of 500 MiB" in told[0]
    result, told = await _call(small, bash, command="echo $mine")
    assert "kept" in result.output
    assert told == []


async def test_a_fork_bomb_in_the_shell_is_ended_and_the_next_call_has_a_new_shell(small: Place) -> None:
    bash = Bash()
    bomb = "bomb() { if [ $1 = 0 ]; then sleep 100; else bomb $(($1 - 1)) & bomb $(($1 - 1)) & wait; fi; }; bomb 9"
    _result, told = await _call(small, bash, command=bomb)
    assert any("more than 60 processes" in sentence for sentence in told)
    result, told = await _call(small, bash, command="echo fine")
    assert "fine" in result.output
    assert told == []


async def test_a_million_lines_and_any_bytes_leave_both_working(small: Place) -> None:
    result, _told = await _call(
        small, Bash(), command="seq 1000000; head -c 300000 /dev/urandom; head -c 100000 /dev/zero"
    )
    assert len(result.output) < 2_000_000
    assert "\0" not in result.output
    result, _told = await _call(small, PythonExecute(), code="print('\\n'.join(map(str, range(1000000))))")
    assert len(result.output) < 2_000_000
    assert "fine" in (await _call(small, Bash(), command="echo fine"))[0].output
    assert "42" in (await _call(small, PythonExecute(), code="6 * 7"))[0].output


@pytest.mark.parametrize(
    "start", ["\0" * 400_000 + "\r", "x\r" * 200_000, "\x1b[" * 200_000, "\x1b]" * 200_000, "a\x08" * 200_000]
)
def test_text_is_cleaned_in_a_time_that_grows_with_its_length(start: str) -> None:
    began = time.process_time()
    plain(start)
    assert time.process_time() - began < 5  # it took minutes
