"""A server's tools beside the agent's own: the MCP server runs in the same sandbox and ends with the agent."""

import asyncio
import sys
from pathlib import Path

from handwork import Manus

TIME = {"command": str(Path(sys.executable).with_name("mcp-server-time")), "args": ["--local-timezone", "UTC"]}


async def main() -> None:
    agent = await Manus.create(mcp_servers={"time": TIME})
    try:
        print("connected:", ", ".join(agent.connected_servers))
        result = await agent.run("What time is it in Tokyo when it is noon in London?")
        print(result.raise_for_status().output)
    finally:
        await agent.cleanup()


asyncio.run(main())
