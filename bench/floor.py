"""The floor: the same loop written by hand over aiohttp, without anything that an agent adds."""

from __future__ import annotations

import json
import os
from typing import Any

import aiohttp

_FUNCTION = {"name": "add", "description": "Add.", "parameters": {"type": "object", "properties": {}}}
_clients: list[aiohttp.ClientSession] = []


def model(name: str) -> str:
    return name


def agent(name: str, tool: str = "add", steps: int = 100) -> str:
    return name


async def run(name: str, prompt: str) -> str:
    if not _clients:
        _clients.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
    url, tools = os.environ["BASE"] + "/chat/completions", [{"type": "function", "function": _FUNCTION}]
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You help."}, {"role": "user", "content": prompt}]
    while True:
        async with _clients[0].post(url, json={"model": name, "messages": messages, "tools": tools}) as response:
            message = (await response.json())["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            return str(message["content"])
        for call in message["tool_calls"]:
            arguments = json.loads(call["function"]["arguments"])
            result = str(arguments["a"] + arguments["b"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
