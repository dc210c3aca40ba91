"""A terminal that breaks its lines anew when its width changes: the chat in a real one."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.cli.tmux import Tmux
from tests.support.fault_server import Fault, delta, stream
from tests.support.strict_server import StrictServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux (apt install tmux)"),
]
ANSWER = "A first line that is done.\nAnd a second one, long enough to fill most of a row of eighty, that goes"


@pytest_asyncio.fixture
async def window(tmp_path: Path, workspace: Path, home: Path) -> AsyncIterator[Tmux]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HANDWORK_HOME": str(home), "LANG": "C.UTF-8"}
    tmux = await Tmux(tmp_path, 80, 24).open(workspace, environ | {"TERM": "screen-256color"})
    yield tmux
    await tmux.close()


@pytest.mark.parametrize("widths", [(40,), (120,), (50, 30, 100), (79, 80, 33)])
async def test_no_line_is_left_twice_and_none_lost(window: Tmux, widths: tuple[int, ...]) -> None:
    async with StrictServer([stream(delta(content=ANSWER), Fault.SILENCE)]) as server:
        command = f"{sys.executable} -m handwork --base-url {server.url} --model openai:any"
        window.type(command)
        await window.shows("auto/bwrap")
        window.type("Say it")
        await window.shows("that goes")
        window.key("a", "d", "r", "a", "f", "t")
        await window.shows("> adraft")
        for number, width in enumerate(widths):
            window.resize(width, 24)
            window.key(f"{number}")
            await window.shows(f"> adraft{''.join(map(str, range(number + 1)))}")
        whole = "".join("\n".join(window.scrollback).split())
        window.key("Escape")
        await window.shows("cancelled")
        window.key("C-c", "C-d")
        await window.shows("To go on")
    assert whole.count("Afirstlinethatisdone.") == 1
    assert whole.count("Andasecondone,") == whole.count("thatgoes") == 1
    assert whole.count(">adraft") == 1
    assert whole.count(">Sayit") == 1
    assert whole.count("openai:any·") <= 1
