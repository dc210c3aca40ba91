"""A server (standard library only) whose tools answer with the content that the call's argument `answer` says, and `tell` with its
arguments."""

from __future__ import annotations

import json
import sys
from typing import Any

TOOLS = [
    {"name": "tell", "inputSchema": {"type": "object"}},
    {"name": "answer", "inputSchema": {"type": "object"}},
    {"name": "die", "inputSchema": {"type": "object"}},
]
RESOURCES = [
    {"uri": "doc://guide", "name": "guide", "description": "How to\nbegin", "mimeType": "text/plain"},
    {"uri": "doc://logo", "name": "logo"},
]


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            capabilities = {"tools": {}, "resources": {}}
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "serverInfo": {"name": "a", "version": "1"},
            }
        case "tools/list":
            return {"tools": TOOLS}
        case "resources/list":
            return {"resources": RESOURCES}
        case "resources/templates/list":
            return {"resourceTemplates": [{"uriTemplate": "doc://page/{number}", "name": "page"}]}
        case "resources/read" if params["uri"].startswith("doc://page/") or params["uri"] == "doc://guide":
            return {"contents": [{"uri": params["uri"], "text": f"content of {params['uri']}"}]}
        case "tools/call":
            return called(params["name"], params.get("arguments") or {})
    return None


def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if name == "die":
        sys.exit(3)
    if name == "answer":
        return dict(arguments["answer"])
    return {"content": [{"type": "text", "text": json.dumps(arguments, sort_keys=True)}]}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = result_of(message.get("method", ""), message.get("params") or {})
        error = {"code": -32601, "message": f"no {message.get('method')}"}
        answer = {"error": error} if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
