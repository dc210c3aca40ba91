"""The built-in benchmark: needs nothing but the runtime; each figure comes from a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

HERE = Path(__file__).resolve().parent


@contextmanager
def model_server(python: str, script: Path, *arguments: str) -> Iterator[str]:
    """Start a scripted model server; yields its base URL. It prints its port as the last word of its first line."""
    server = subprocess.Popen([python, str(script), *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().split()[-1]}/v1"
    finally:
        server.terminate()
        server.wait()


def commands() -> dict[str, float]:
    """What a person waits for at the shell: the best of five of each, in milliseconds of wall time."""
    completing = {"_HANDWORK_COMPLETE": "zsh"}
    return {
        "version": _wall_ms("--version"),
        "help": _wall_ms("--help"),
        "completion": _wall_ms("run", "--session", "", **completing),
    }


def workshop() -> dict[str, float]:
    """What the sandbox, its tools and MCP servers cost, where one runs: milliseconds."""
    return {**_in_a_home_of_its_own("workshop.py"), **_in_a_home_of_its_own("mcp_servers.py")}


def _in_a_home_of_its_own(script: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="handwork-bench-") as home:
        environ = {**os.environ, "HANDWORK_HOME": home}
        ended = subprocess.run([sys.executable, str(HERE / script)], env=environ, stdout=subprocess.PIPE, check=False)
    found: dict[str, float] = json.loads(ended.stdout) if ended.returncode == 0 else {}
    return found


def _wall_ms(*arguments: str, **environ: str) -> float:
    def once() -> float:
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "handwork", *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, **environ},
        )
        return time.perf_counter() - began

    return min(once() for _ in range(5)) * 1000


def measure(base: str, *arguments: str) -> dict[str, float]:
    urlopen(f"{base.removesuffix('/v1')}/reset").close()
    environ = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environ |= {"BASE": base, "STARTED_NS": str(time.monotonic_ns())}
    script = str(HERE / "measure.py")
    ended = subprocess.run(
        [sys.executable, script, *arguments], env=environ, stdout=subprocess.PIPE, check=True, timeout=300
    )
    found: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return found


def run() -> dict[str, float]:
    """All figures, by the keys of aims.py."""
    with model_server(sys.executable, HERE / "model_server.py") as base:
        peer = "peers.handwork"
        begun = measure(base, peer, "start")
        step, floor = measure(base, peer, "steps", "50")["ms"], measure(base, "floor", "steps", "50")["ms"]
        crowd, throng = measure(base, peer, "agents", "200", "10"), measure(base, peer, "agents", "1000", "5")
        return {
            **begun,
            "step_50": step,
            "step_50_ratio": step / floor,
            "step_500": measure(base, peer, "steps", "500")["ms"],
            "throughput": crowd["per_cpu_second"],
            "agent_200": crowd["kb"],
            "agent_1000": throng["kb"],
            "chunks": measure(base, peer, "chunks", "1000")["ms"],
            "arguments": measure(base, peer, "arguments", str(256 * 1024))["ms"],
            **workshop(),
            **commands(),
        }
