"""What `handwork mcp --help` and `mcp list` do not load: what connects, draws or reaches the network."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ["mcp", "anyio", "httpx2", "aiohttp", "asyncio", "ssl", "sqlite3", "prompt_toolkit", "rich", "PIL", "keyring"]
_CODE = """
import sys
from handwork.cli.app import run_command_line
code = run_command_line(sys.argv[2:])
print([name for name in sys.argv[1].split(",") if name in sys.modules], file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize("command", [["--help"], ["list"], ["list", "--json"]])
def test_what_starts_no_server_loads_nothing_that_would(home: Path, workspace: Path, command: list[str]) -> None:
    servers = {"it": {"command": "cat"}, "fetched": {"command": "npx", "args": ["-y", "a"]}}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    arguments = [sys.executable, "-c", _CODE, ",".join(HEAVY), "mcp", *command]
    ended = subprocess.run(arguments, cwd=workspace, capture_output=True, text=True, check=True)
    assert ended.stderr == "[]\n"
