"""A line as a message of JSON-RPC, and the answer to one that is none."""

from __future__ import annotations

import json
from typing import Any

from handwork.schema import scrub


def message_of(line: bytes) -> Any:
    """The message of a line; raises ValueError or RecursionError for one that is none. Half a surrogate pair, which some programs
    write and no text can hold, becomes a mark."""
    import mcp_types as types

    read: Any = types.jsonrpc_message_adapter
    try:
        message = read.validate_json(line, by_name=False)
    except ValueError:
        text = json.dumps(json.loads(line), ensure_ascii=False)
        if text == (scrubbed := scrub(text)):
            raise
        message = read.validate_json(scrubbed, by_name=False)
    if isinstance(message, types.JSONRPCNotification) and "id" in json.loads(line):
        raise ValueError("an id that is neither a text nor a whole number")  # whoever sent it waits for an answer
    return message


def refusal_of(line: bytes) -> Any:
    """What a line that is no message is answered with: to its id, where it is a request that has one."""
    import mcp_types as types

    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        error = types.ErrorData(code=types.PARSE_ERROR, message="This line is no JSON")
        return types.JSONRPCError(jsonrpc="2.0", id=None, error=error)
    id = found.get("id") if isinstance(found, dict) and "method" in found else None
    if isinstance(id, bool) or not isinstance(id, int | str):
        id = None
    error = types.ErrorData(code=types.INVALID_REQUEST, message="This line is no JSON-RPC message")
    return types.JSONRPCError(jsonrpc="2.0", id=scrub(id) if isinstance(id, str) else id, error=error)
