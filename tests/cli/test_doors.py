"""The two doors to the human at a terminal, when what was asked is withdrawn."""

from __future__ import annotations

import asyncio
import io
import os
import pty

import pytest

from handwork.cli.doors import TerminalDoors
from handwork.cli.lines import Screen
from handwork.schema import Action, ApprovalRequest, Function, ToolCall


async def test_what_follows_a_question_that_is_withdrawn_begins_a_line_of_its_own() -> None:
    master, slave = pty.openpty()
    shown = io.StringIO()
    screen = Screen(shown)
    with os.fdopen(slave, "r") as source:
        doors = TerminalDoors(screen, source)
        call = ToolCall(id="c", function=Function(name="network", arguments="{}"))
        request = ApprovalRequest(id="c", call=call, actions=(Action(kind="network", resource="a.test:1"),), why="so")
        asking = asyncio.ensure_future(doors.approve(request))
        await asyncio.sleep(0)
        screen.line("what happens meanwhile")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    os.close(master)
    assert ": \nwhat happens meanwhile\n" in shown.getvalue()
