"""Role names and where their classes are."""

from __future__ import annotations

ROLES = {
    "toolcall": "handwork.agent.toolcall:ToolCallAgent",
    "manus": "handwork.agent.manus:Manus",
    "swe": "handwork.agent.swe:SWEAgent",
    "mcp": "handwork.agent.mcp:MCPAgent",
}
