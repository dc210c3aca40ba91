"""Agents with stub servers (tests/mcp/stub.py) for the tests of agents: entries, doors, and what was said."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handwork.config import MCPServerSettings, MCPSettings, Settings
from handwork.events import Event, Notice
from handwork.schema import Approval, ApprovalChoice, ApprovalRequest

STUB = Path(__file__).parent.parent / "mcp" / "stub.py"


def stub(workspace: Path, *options: str, also: str = "", **fields: Any) -> MCPServerSettings:
    """A stub server in the sandbox; `also` stands in its environment, so that it is the same server with other options."""
    shutil.copy(STUB, workspace / "stub.py")
    return MCPServerSettings(
        command=sys.executable, args=("stub.py", *options), env={"STUB": also}, **{"timeout": 20, **fields}
    )


def configured(**servers: MCPServerSettings) -> Settings:
    """Settings as if mcp.json named these."""
    return Settings(mcp=MCPSettings(servers=servers))


def notices(seen: list[Event]) -> list[str]:
    """What a person was told of servers."""
    return [event.text for event in seen if isinstance(event, Notice) and ("MCP" in event.text or "mcp" in event.text)]


def tools_of(request: Any) -> list[str]:
    """The names of the servers' tools that a request shows."""
    names = [tool["function"]["name"] for tool in request.tools]
    return [name for name in names if name.startswith("mcp_")]


def described(request: Any) -> Mapping[str, str]:
    """The descriptions of all tools that a request shows."""
    return {tool["function"]["name"]: tool["function"]["description"] for tool in request.tools}


class Door:
    """A person at the door for approvals, who decides always the same."""

    def __init__(self, decision: ApprovalChoice = "allow", reason: str = "") -> None:
        self.asked: list[ApprovalRequest] = []
        self._approval = Approval(decision=decision, reason=reason)

    async def __call__(self, request: ApprovalRequest) -> Approval:
        self.asked.append(request)
        await asyncio.sleep(0)
        return self._approval
