"""The way to a server: what is said where its entry cannot be followed here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handwork.config import MCPServerSettings
from handwork.config.mcp_variables import with_values
from handwork.errors import MCPUnavailable
from handwork.mcp.connection import Connection
from handwork.mcp.surroundings import Surroundings
from handwork.sandbox.base import Process


async def _spawn(*args: object, **kwargs: object) -> Process:
    raise AssertionError("a program was started")


@pytest.mark.parametrize(
    ("env", "said", "hint"),
    [
        ({"A": "${ONE}"}, "needs ONE in your environment, and it is not set", "export ONE=…"),
        ({"A": "env:ONE", "B": "${TWO}"}, "needs ONE, TWO in your environment, and they are not set", "export ONE=…"),
        ({"A": "${input:key}"}, "needs ${input:key}, which another program would fill in", "${NAME}"),
        ({"A": "${input:key}", "B": "${ONE}"}, "needs ONE in your environment", "export ONE=…"),
    ],
)
async def test_a_server_that_lacks_a_variable_is_not_started_and_says_which(
    tmp_path: Path, env: dict[str, str], said: str, hint: str
) -> None:
    settings = with_values(MCPServerSettings(command="server", env=env), {"HOME": os.devnull}, "/")
    surroundings = Surroundings(spawn=_spawn, workspace="/", home=tmp_path, notify=lambda level, text: None)
    connection = Connection("it", settings, surroundings)
    with pytest.raises(MCPUnavailable) as caught:
        await connection.ready()
    await connection.close()
    assert caught.value.lasting
    assert said in caught.value.what
    assert hint in caught.value.hint
    assert connection.state in ("gone", "closed")
