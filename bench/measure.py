"""One measurement in a fresh process: `measure.py PEER MODE [NUMBER…]` prints one JSON object.

PEER is a module with model, agent, run (and run_stream). CPU time is the process's own, so other load does not count.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

PROMPT = "Add the numbers until told to stop."


def memory(key: str = "VmRSS") -> float:
    """Megabytes of this process, now (VmRSS) or at its peak (VmHWM)."""
    with Path("/proc/self/status").open() as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(key))


def stats(path: str = "stats") -> dict[str, int]:
    from urllib.request import urlopen  # here, so that the time to the first request is not ours

    with urlopen(f"{os.environ['BASE'].removesuffix('/v1')}/{path}") as answer:
        found: dict[str, int] = json.load(answer)
        return found


async def _cpu(work: Callable[[], Awaitable[object]], times: int = 3) -> float:
    """Median CPU milliseconds of one `work`."""
    spent = []
    for _ in range(times):
        began = time.process_time()
        await work()
        spent.append(time.process_time() - began)
    return sorted(spent)[len(spent) // 2] * 1000


async def steps(peer: Any, count: int) -> dict[str, float]:
    await peer.run(peer.agent(peer.model("n2"), "add", 10), PROMPT)
    model = peer.model(f"n{count}")
    stats("reset")
    spent = await _cpu(lambda: peer.run(peer.agent(model, "add", count + 10), PROMPT), 1 if count > 100 else 3)
    asked, expected = stats()["count"], (count + 1) * (1 if count > 100 else 3)
    if asked != expected:
        raise SystemExit(f"{asked} requests instead of {expected}")
    return {"ms": spent / (count + 1)}


async def agents(peer: Any, many: int, count: int) -> dict[str, float]:
    await peer.run(peer.agent(peer.model("n2"), "add", 10), PROMPT)
    model, before, began = peer.model(f"n{count}"), memory(), time.process_time()
    answers = await asyncio.gather(*(peer.run(peer.agent(model, "add", count + 10), PROMPT) for _ in range(many)))
    spent = time.process_time() - began
    if set(answers) != {"done"}:
        raise SystemExit(f"wrong answers: {set(answers)}")
    return {"per_cpu_second": many * count / spent, "kb": (memory("VmHWM") - before) * 1024 / many}


async def chunks(peer: Any, count: int) -> dict[str, float]:
    """CPU of `count` text chunks, over that of an answer in one."""
    return {"ms": await _beyond(peer, "x1", f"x{count}", "add")}


async def arguments(peer: Any, size: int) -> dict[str, float]:
    return {"ms": await _beyond(peer, "n1a64", f"n1a{size}", "note")}


async def _beyond(peer: Any, small: str, large: str, tool: str) -> float:
    def once(name: str) -> Callable[[], Awaitable[object]]:
        return lambda: peer.run_stream(peer.agent(peer.model(name), tool, 10), PROMPT)

    await once(small)()
    base = await _cpu(once(small), 5)
    return await _cpu(once(large)) - base


async def start(peer: Any) -> dict[str, float]:
    imported = memory()
    await peer.run(peer.agent(peer.model("n0"), "add", 5), PROMPT)
    first = (stats()["first_ns"] - int(os.environ["STARTED_NS"])) / 1e6
    return {"first_request": first, "rss_import": imported, "rss_run": memory()}


MODES = {"steps": steps, "agents": agents, "chunks": chunks, "arguments": arguments, "start": start}

if __name__ == "__main__":
    name, mode, *numbers = sys.argv[1:]
    found = asyncio.run(MODES[mode](importlib.import_module(name), *map(int, numbers)))
    print(json.dumps(found), flush=True)
    os._exit(0)
