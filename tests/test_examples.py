"""Every example runs as its reader would run it, against a loopback model."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.strict_server import StrictServer, tool

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SCRIPTS: dict[str, list[Any]] = {
    "01_hello.py": ["42"],
    "02_own_tool.py": [[tool("stock", item="bolt"), tool("stock", item="nut")], "There are 200."],
    "03_own_agent.py": [tool("bash", command="ls"), tool("terminate", status="success")],
    "06_mcp_server.py": [
        tool("mcp_time_convert_time", source_timezone="Europe/London", time="12:00", target_timezone="Asia/Tokyo"),
        "In the evening.",
    ],
    "04_watch.py": [tool("python_execute", code="for n in range(1, 4): print(n)"), "Printed."],
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
async def test_the_example_runs(example: Path, home: Path, tmp_path: Path) -> None:
    async with StrictServer(SCRIPTS.get(example.name, [])) as server:
        environ = {
            **os.environ,
            "HANDWORK_HOME": str(home),
            "HANDWORK_LLM_MODEL": "openai:any",
            "HANDWORK_LLM_BASE_URL": server.url,
            "PYTHONWARNINGS": "error",
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(example), cwd=tmp_path, env=environ, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
    assert output.strip()
    assert server.refused == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_the_example_is_short(example: Path) -> None:
    assert len(example.read_text().splitlines()) < 30
