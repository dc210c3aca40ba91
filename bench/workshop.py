"""What the agent's hands cost: a sandbox's start, and calls of bash and python_execute in a session that is warm.

As a program it prints one JSON object: milliseconds of wall time, the median of many, for `sandbox`, `bash` and `python`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from handwork import Manus, ScriptedModel, Session
from handwork.config import load_settings
from handwork.llm.scripted import call
from handwork.schema import ToolCall

_CALLS, _STARTS = 100, 10
_numbers = itertools.count()


async def _median_ms(work: Callable[[], Awaitable[object]], times: int) -> float:
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        await work()
        spent.append(time.perf_counter() - began)
    return statistics.median(spent) * 1000


async def _ready_ms(folder: Path) -> float:
    """From nothing to a sandbox that answers."""
    async with Session.open(load_settings(workspace=folder), folder) as session:
        began = time.perf_counter()
        await session.sandbox.stat(".")
        return (time.perf_counter() - began) * 1000


async def _warm(agent: Manus, made: ToolCall) -> float:
    """One kind of call, after a first one that starts what it needs."""

    async def once() -> None:
        text = await agent.execute_tool(replace(made, id=f"call-{next(_numbers)}"))
        assert not text.startswith("Error"), text

    await once()
    return await _median_ms(once, _CALLS)


async def measure() -> dict[str, float]:
    """The figures; tools are called as an agent's run calls them: policy, journal and result, without a model."""
    with tempfile.TemporaryDirectory(prefix="handwork-bench-") as place:
        folder = Path(place) / "workspace"
        folder.mkdir()
        ready = statistics.median([await _ready_ms(folder) for _ in range(_STARTS)])
        async with Manus(llm=ScriptedModel([]), workspace=folder) as agent:
            bash = await _warm(agent, call("bash", command="true"))
            python = await _warm(agent, call("python_execute", code="6 * 7"))
        return {"sandbox": ready, "bash": bash, "python": python}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure())))
