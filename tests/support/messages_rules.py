"""What Anthropic's Messages API refuses with 400, as far as it is documented or was reported with its very words."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

ID = re.compile(r"[a-zA-Z0-9_-]+")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
MEDIA_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
THOUGHTS = ("thinking", "redacted_thinking")
MAX_MARKS = 4
Block = dict[str, Any]


def check_messages_request(request: dict[str, Any], issued: list[list[Block]] | None = None) -> str | None:
    """Why the API would refuse this request, or None.

    issued: the contents of the answers that this server gave so far; thinking that comes back must be in one of them, and what
    stands before calls must be what was said there.
    """
    checks = (_check_settings, _check_tools, _check_turns, _check_marks, _check_thinking)
    found = (problem for check in checks if (problem := check(request)))
    return next(found, None) or _check_unchanged(request["messages"], issued or [])


def _check_settings(request: dict[str, Any]) -> str | None:
    limit, thinking = request.get("max_tokens"), request.get("thinking") or {}
    if not isinstance(limit, int) or limit < 1:
        return "max_tokens: Field required"
    if not request.get("model"):
        return "model: Field required"
    temperature = request.get("temperature")
    if temperature is not None and not 0 <= temperature <= 1:
        return "temperature: range: 0..1"
    if thinking:
        if temperature not in (None, 1):
            return "`temperature` may only be set to 1 when thinking is enabled"
        if (request.get("tool_choice") or {}).get("type") in ("any", "tool"):
            return "Thinking may not be enabled when tool_choice forces tool use."
    if thinking.get("type") == "enabled":
        if thinking["budget_tokens"] < 1024:
            return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
        if thinking["budget_tokens"] >= limit:
            return "`max_tokens` must be greater than `thinking.budget_tokens`."
    system = request.get("system")
    for block in system if isinstance(system, list) else ():
        if not block["text"].strip():
            return "system: text content blocks must contain non-whitespace text"
    return None


def _check_tools(request: dict[str, Any]) -> str | None:
    tools = request.get("tools")
    if "tool_choice" in request and not tools:
        return "tool_choice: may only be specified while providing tools"
    names = [tool.get("name") for tool in tools or ()]
    if len(set(names)) != len(names) or not all(NAME.fullmatch(name or "") for name in names):
        return f"tools: names must be unique and match {NAME.pattern}"
    for tool in tools or ():
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            return "tools.0.custom.input_schema.type: Field required"
        if {"oneOf", "anyOf", "allOf"} & set(schema):
            return "input_schema does not support oneOf, allOf, or anyOf at the top level"
    used = any(block["type"] == "tool_use" for block in _all_blocks(request))
    return (
        "Requests which include `tool_use` or `tool_result` blocks must define tools." if used and not tools else None
    )


def _all_blocks(request: dict[str, Any]) -> list[Block]:
    return [block for message in request.get("messages") or () for block in message["content"]]


# ---- turns


def _check_turns(request: dict[str, Any]) -> str | None:
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages: at least one message is required"
    seen: set[str] = set()
    waiting: list[str] = []
    for at, message in enumerate(messages):
        if set(message) != {"role", "content"}:
            return f"messages.{at}: Extra inputs are not permitted"
        wanted = "assistant" if at % 2 else "user"
        if message["role"] != wanted:
            return f'messages.{at}: roles must alternate between "user" and "assistant"; expected {wanted}'
        problem = _check_user(message["content"], waiting) if wanted == "user" else None
        problem = problem or _check_blocks(message["content"], wanted, seen)
        if problem:
            return f"messages.{at}.{problem}"
        waiting = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
    if messages[-1]["role"] == "assistant":
        return "This model does not support assistant message prefill. The conversation must end with a user message."
    return None


def _check_user(content: list[Block], waiting: list[str]) -> str | None:
    answered = []
    for block in content:
        if block["type"] != "tool_result":
            break
        answered.append(block["tool_use_id"])
    later = [block for block in content[len(answered) :] if block["type"] == "tool_result"]
    if later or sorted(answered) != sorted(waiting):
        return (
            f"content: `tool_use` ids {sorted(waiting)} must be answered by `tool_result` blocks at the beginning of the "
            f"next message, each once; found {answered}, and {len(later)} later"
        )
    return None


def _check_blocks(content: list[Block], role: str, seen: set[str]) -> str | None:
    if not content:
        return "content: must not be empty"
    for at, block in enumerate(content):
        if problem := _check_block(block, role, seen):
            return f"content.{at}: {problem}"
    return None


def _check_block(block: Block, role: str, seen: set[str]) -> str | None:
    kind = block.get("type")
    allowed = ("text", "tool_use", *THOUGHTS) if role == "assistant" else ("text", "image", "tool_result")
    if kind not in allowed and not (role == "assistant" and str(kind).startswith(("server_", "tool_search_"))):
        return f"a block of kind {kind!r} in a message of the {role}"
    if kind == "text":
        return None if block["text"].strip() else "text content blocks must contain non-whitespace text"
    if kind == "image":
        return _check_image(block)
    if kind == "tool_use":
        return _check_call(block, seen)
    if kind == "thinking":
        return None if block.get("signature") else "thinking.signature: Field required"
    if kind == "tool_result":
        parts = [_check_block(part, "user", seen) for part in block.get("content") or ()]
        return next(filter(None, parts), None)
    return None


def _check_image(block: Block) -> str | None:
    source = block["source"]
    if source["type"] != "base64" or source["media_type"] not in MEDIA_TYPES:
        return f"source.media_type: Input should be one of {MEDIA_TYPES}"
    try:
        base64.b64decode(source["data"], validate=True)
    except binascii.Error:
        return "source.base64: invalid base64 data"
    return None


def _check_call(block: Block, seen: set[str]) -> str | None:
    if not ID.fullmatch(block["id"]):
        return f"tool_use.id: String should match pattern '{ID.pattern}'"
    if block["id"] in seen:
        return "`tool_use` ids must be unique"
    seen.add(block["id"])
    if not NAME.fullmatch(block["name"]):
        return f"tool_use.name: String should match pattern '{NAME.pattern}'"
    return None if isinstance(block["input"], dict) else "tool_use.input: Input should be a valid dictionary"


# ---- marks for the cache


def _check_marks(request: dict[str, Any]) -> str | None:
    blocks = _all_blocks(request)
    system = request.get("system")
    beside = [*(request.get("tools") or ()), *(system if isinstance(system, list) else ())]
    marked = [block for block in (*beside, *blocks) if "cache_control" in block]
    if len(marked) > MAX_MARKS:
        return f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}."
    if any(block.get("type") in THOUGHTS for block in marked):
        return "thinking.cache_control: Extra inputs are not permitted"
    nested = (part for block in blocks if block["type"] == "tool_result" for part in block.get("content") or ())
    if any("cache_control" in part for part in nested):
        return "invalid_cache: cache_control is not supported at messages.N.content.M.content.K.cache_control"
    return None


# ---- thinking


def _check_thinking(request: dict[str, Any]) -> str | None:
    messages = request["messages"]
    for at, message in enumerate(messages[1::2]):
        kinds = [block["type"] for block in message["content"]]
        if kinds[-1] in THOUGHTS:
            return f"messages.{2 * at + 1}: The final block in an assistant message cannot be `thinking`."
    if (request.get("thinking") or {}).get("type") != "enabled":
        return None
    first = _first_of_loop(messages)
    if first is not None and first["content"][0]["type"] not in THOUGHTS:
        return (
            "Expected `thinking` or `redacted_thinking`, but found another block. When `thinking` is enabled, a final "
            "`assistant` message must start with a thinking block"
        )
    return None


def _first_of_loop(messages: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The assistant message that began the calls and results at the end; None if a user's words stand there."""
    first = None
    for user, assistant in zip(messages[::-2], messages[-2::-2], strict=False):
        if any(block["type"] != "tool_result" for block in user["content"]):
            break
        first = assistant
    return first


def _check_unchanged(messages: list[dict[str, Any]], issued: list[list[Block]]) -> str | None:
    by_call = {block["id"]: content for content in issued for block in content if block["type"] == "tool_use"}
    thoughts = [block for content in issued for block in content if block["type"] in THOUGHTS]
    for at, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        content = [
            {name: value for name, value in block.items() if name != "cache_control"} for block in message["content"]
        ]
        for block in content:
            if block["type"] in THOUGHTS and issued and block not in thoughts:
                return f"messages.{at}: Invalid `signature` in `thinking` block"
        calls = [block["id"] for block in content if block["type"] == "tool_use"]
        if calls and calls[0] in by_call and content != by_call[calls[0]]:
            return f"messages.{at}: thinking blocks in the latest assistant message cannot be modified"
    return None
