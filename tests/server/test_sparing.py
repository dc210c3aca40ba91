"""What a server over standard input and output imports of the SDK, shown in processes of their own."""

from __future__ import annotations

import subprocess
import sys

BEGIN = """
import sys
from handwork.server.sparing import import_sparingly
import_sparingly()
from mcp.server.lowlevel.server import Server
"""


def says(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", BEGIN + code], check=True, capture_output=True, text=True, timeout=100
    ).stdout.strip()


def test_a_server_imports_no_client_and_no_http_client() -> None:
    assert (
        says("print([name for name in ('mcp.client', 'mcp.server.mcpserver', 'httpx2') if name in sys.modules])")
        == "[]"
    )


def test_whatever_is_asked_for_later_is_there_and_the_same() -> None:
    later = """
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp import ClientSession
import mcp, mcp.server
import_sparingly()
print(mcp.server.Server is Server, mcp.Client is Client, mcp.types.Tool.__name__, hasattr(mcp, "nothing"))
"""
    assert says(later) == "True True Tool False"
