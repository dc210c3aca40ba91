"""The shared harness beside the repository: our driver, the aiohttp floor and any other peer, against its model server."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from builtin import HERE, commands, model_server, workshop

HARNESS = HERE.parent.parent / "shared" / "bench"
RESULTS = HERE.parent / "build" / "bench"
OURS, FLOOR = "handwork", "floor_aiohttp"


def run(peers: Iterable[str]) -> dict[str, float]:
    """Measure; prints the harness's own tables and returns the figures by the keys of aims.py."""
    home = Path(os.environ.setdefault("BENCH_HOME", str(RESULTS / "home")))
    for name, value in {"REPS": "3", "CONC_REPS": "2", "BIG": "1", "BENCH_EXTRA_PEERS": str(HERE / "peers")}.items():
        os.environ.setdefault(name, value)
    others = [peer for peer in peers if peer not in {OURS, FLOOR}]
    RESULTS.mkdir(parents=True, exist_ok=True)
    subprocess.run(["bash", str(HARNESS / "install.sh"), "mock", "floor", *others], check=True, stdout=sys.stderr)
    rows = RESULTS / "results.jsonl"
    with rows.open("w") as out:
        command = [sys.executable, str(HARNESS / "run_all.py"), FLOOR, OURS, *others]
        subprocess.run(command, check=True, stdout=out, cwd=HERE.parent)
    subprocess.run([sys.executable, str(HARNESS / "summarize.py"), str(rows)], check=True)
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    for row in found:
        if "error" in row:
            print(f"{row['peer']} {row['mode']}: {row['error']}", file=sys.stderr)
    return {**_figures(found), "step_500": _long_run(home), **workshop(), **commands()}


def _figures(rows: list[dict[str, Any]]) -> dict[str, float]:
    def median(peer: str, *path: str, load: list[int] | None = None) -> float:
        values = []
        for row in rows:
            if row["peer"] == peer and "error" not in row and (row["args"] == load if load else row["mode"] == "suite"):
                value: Any = row
                for part in path:
                    value = value.get(part) if isinstance(value, dict) else None
                if value is not None:
                    values.append(float(value))
        return statistics.median(values) if values else float("nan")

    def per_agent(load: list[int]) -> float:
        return (median(OURS, "hwm_mb", load=load) - median(OURS, "rss_before", load=load)) * 1024 / load[0]

    step = median(OURS, "seq", "cpu_ms_req")
    return {
        "step_50": step,
        "step_50_ratio": step / median(FLOOR, "seq", "cpu_ms_req"),
        "throughput": 2000 / median(OURS, "cpu_s", load=[200, 10]),
        "agent_200": per_agent([200, 10]),
        "agent_1000": per_agent([1000, 5]),
        "chunks": median(OURS, "stream", "cpu_ms_per_1000"),
        "arguments": median(OURS, "args256", "cpu_ms"),
        "first_request": median(OURS, "first_req_ms"),
        "rss_import": median(OURS, "rss_import_mb"),
        "rss_run": median(OURS, "rss_end_mb"),
    }


def _long_run(home: Path) -> float:
    with model_server(str(home / "venvs/mock/bin/python"), HARNESS / "mock_openai.py", "0") as base:
        environ = {
            **os.environ,
            "BASE": base,
            "BENCH_PEER_DIRS": os.pathsep.join([str(HARNESS), str(HERE)]),
            "T0_NS": "0",
        }
        command = [sys.executable, str(HARNESS / "driver.py"), OURS, "seq", "500", "1"]
        ended = subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=True, timeout=300, cwd=HERE.parent)
    return float(json.loads(ended.stdout.splitlines()[-1])["cpu_ms_req"])
