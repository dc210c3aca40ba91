"""Recorded traffic of providers, read the plainest way: what was asked, and what the answer says.

Recordings are lists of `interactions`, in YAML (the shared cassettes) or JSON (tests/llm/fixtures, written for this project).
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from handwork.llm.chat.thinking import ThinkingParts
from handwork.llm.llm import to_message
from handwork.schema import Function, Image, Message, Request, Role, ToolCall, ToolChoice

SHARED = Path(__file__).parents[3] / "shared" / "cassettes" / "data"
OWN = Path(__file__).parents[1] / "llm" / "fixtures"
FINISH = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "end_turn": "stop",
    "max_tokens": "length",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
}


@dataclass
class Exchange:
    """One recorded request and its answer."""

    uri: str
    asked: dict[str, Any]
    status: int
    body: bytes

    @property
    def events(self) -> list[dict[str, Any]]:
        """The JSON of the answer: its one value, or those of all its events."""
        if not self.body.lstrip().startswith((b"event:", b"data:", b":")):
            return [json.loads(self.body)]
        lines = (line[5:].strip() for line in self.body.decode().splitlines() if line.startswith("data:"))
        return [json.loads(line) for line in lines if line.startswith("{")]


@dataclass
class Said:
    """What an answer says: calls are (name, arguments as JSON)."""

    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    finish: str = ""
    input: int = 0
    output: int = 0
    cached: int = 0


def recordings(*wires: str) -> list[Path]:
    """The files of these wires, ours and the shared ones."""
    return sorted(path for wire in wires for folder in (OWN, SHARED) for path in (folder / wire).glob("*.*"))


def exchanges(path: Path) -> list[Exchange]:
    if path.suffix == ".json":
        recorded = json.loads(path.read_bytes())
    else:
        yaml = importlib.import_module("yaml")
        recorded = yaml.load(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return [_exchange(interaction) for interaction in recorded["interactions"]]


def _exchange(recorded: dict[str, Any]) -> Exchange:
    request, response = recorded["request"], recorded["response"]
    whole = response.get("parsed_body")
    body = response["body"]["string"] if whole is None else json.dumps(whole, ensure_ascii=False)
    return Exchange(request["uri"], request["parsed_body"], response["status"]["code"], body.encode())


# ---- chat completions


def chat_said(events: list[dict[str, Any]]) -> Said:
    said = Said()
    calls: dict[int, list[str]] = {}
    for event in events:
        usage = event.get("usage") or (event.get("x_groq") or {}).get("usage")
        if usage:
            said.input = usage["prompt_tokens"]
            said.output = usage["total_tokens"] - said.input  # some leave reasoning out of completion_tokens
            said.cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        for choice in event.get("choices") or ():
            said.finish = choice.get("finish_reason") or said.finish
            _chat_piece(said, choice.get("delta") or choice.get("message") or {}, calls)
    said.calls = [(name, json.loads(arguments)) for name, arguments in calls.values()]
    said.finish = "tool_calls" if calls and said.finish == "stop" else FINISH[said.finish]
    return said


def _chat_piece(said: Said, message: dict[str, Any], calls: dict[int, list[str]]) -> None:
    content: Any = message.get("content") or ""
    for part in content if isinstance(content, list) else [{"text": content}]:
        said.text += part.get("text", "")
        said.thinking += "".join(inner["text"] for inner in part.get("thinking", ()))
    said.thinking += message.get("reasoning_content") or message.get("reasoning") or ""
    for place, call in enumerate(message.get("tool_calls") or ()):
        slot = calls.setdefault(call.get("index", place), ["", ""])
        slot[0] += call["function"].get("name") or ""
        slot[1] += call["function"].get("arguments") or ""


def chat_request(asked: dict[str, Any], replies: list[Message]) -> Request:
    """The recorded request as ours; what the model said in it is what we read before, if we did."""
    messages = [_read_before(_chat_message(each), replies) for each in asked["messages"]]
    return Request(messages, None, tuple(asked.get("tools", ())), None, ToolChoice(asked.get("tool_choice", "auto")))


def _read_before(recorded: Message, replies: list[Message]) -> Message:
    """The reply that is the recorded message, with its ids where the provider gave none (an agent gives some, too)."""
    found = next((reply for reply in replies if _what(reply) == _what(recorded)), None)
    if found is None or recorded.role is not Role.ASSISTANT:
        return recorded
    return found if all(call.id for call in found.tool_calls) else replace(found, tool_calls=recorded.tool_calls)


def _what(message: Message) -> tuple[str, list[tuple[str, Any]]]:
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls]
    return message.content or "", calls


def _chat_message(recorded: dict[str, Any]) -> Message:
    content = recorded.get("content")
    if isinstance(content, list):
        content = [part for part in content if part["type"] == "text" or "base64" in str(part)]
    thinking = ThinkingParts()
    thinking.add(recorded)
    return replace(to_message(recorded | {"content": content}), thinking=thinking.finish())


# ---- Anthropic's messages


def messages_said(events: list[dict[str, Any]]) -> Said:
    said = Said()
    usage: dict[str, int] = {}
    blocks: list[dict[str, Any]] = []
    for event in events:
        kind, delta = event["type"], event.get("delta") or {}
        if kind == "message":
            blocks = event["content"]
        elif kind == "content_block_start":
            blocks.append(dict(event["content_block"]))
        elif kind == "content_block_delta":
            name = delta["type"].removesuffix("_delta").replace("input_json", "partial_json")
            blocks[event["index"]][name] = blocks[event["index"]].get(name, "") + delta[name]
        usage |= event.get("usage") or (event.get("message") or {}).get("usage") or {}
        said.finish = event.get("stop_reason") or delta.get("stop_reason") or said.finish
    for block in blocks:
        said.text += block["text"] if block["type"] == "text" else ""
        said.thinking += block["thinking"] if block["type"] == "thinking" else ""
        if block["type"] == "tool_use":
            said.calls.append((block["name"], json.loads(block.get("partial_json") or "null") or block["input"]))
    said.cached, said.output = usage["cache_read_input_tokens"], usage["output_tokens"]
    said.input = usage["input_tokens"] + said.cached + usage["cache_creation_input_tokens"]
    said.finish = FINISH[said.finish]
    return said


def messages_request(asked: dict[str, Any], replies: list[Message]) -> Request:
    """The same of Anthropic's wire."""
    messages: list[Message] = []
    for each in asked["messages"]:
        if each["role"] == "user":
            messages += _user_messages(each["content"])
        else:
            messages.append(_read_before(_assistant_message(each["content"]), replies))
    tools = tuple(
        {"function": {"name": tool["name"], "description": tool.get("description"), "parameters": tool["input_schema"]}}
        for tool in asked.get("tools", ())
        if "input_schema" in tool
    )
    choice = {"any": "required"}.get((kind := (asked.get("tool_choice") or {}).get("type", "auto")), kind)
    system = asked.get("system")
    if isinstance(system, list):
        system = "".join(block["text"] for block in system)
    return Request(messages, system, tools, None, ToolChoice(choice))


def _user_messages(content: list[dict[str, Any]]) -> Iterator[Message]:
    for block in content:
        if block["type"] == "text":
            yield Message.user_message(block["text"])
        elif block["type"] == "tool_result":
            yield _result(block)
        elif block["source"]["type"] == "base64":
            yield Message(role=Role.USER, images=(_image(block),))


def _result(block: dict[str, Any]) -> Message:
    content = block["content"]
    parts: list[dict[str, Any]] = content if isinstance(content, list) else [{"type": "text", "text": content}]
    text = "".join(part["text"] for part in parts if part["type"] == "text")
    result = Message.tool_message(text, "", block["tool_use_id"], is_error=bool(block.get("is_error")))
    return replace(result, images=tuple(_image(part) for part in parts if part["type"] == "image"))


def _image(block: dict[str, Any]) -> Image:
    return Image.from_base64(block["source"]["data"], block["source"]["media_type"])


def _assistant_message(content: list[dict[str, Any]]) -> Message:
    text = "".join(block["text"] for block in content if block["type"] == "text")
    calls = [
        ToolCall(id=block["id"], function=Function(name=block["name"], arguments=json.dumps(block["input"])))
        for block in content
        if block["type"] == "tool_use"
    ]
    return Message.from_tool_calls(calls, text or None)


# ---- what is the same in two requests


_APART = (
    "stream stream_options n temperature top_p max_tokens max_completion_tokens prompt_cache_key prompt_cache_options"
)


def structure(asked: dict[str, Any]) -> dict[str, Any]:
    """A request without what is apart (marks for the cache, streaming, sampling), and with one spelling for what means the same."""
    plain: dict[str, Any] = _plain({name: value for name, value in asked.items() if name not in _APART.split()})
    for message in plain["messages"]:
        message["role"] = {"developer": "system"}.get(message["role"], message["role"])
    if "tools" in plain:
        plain["tools"].sort(key=lambda tool: str(tool.get("function", tool)["name"]))
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    meaningless: tuple[Any, ...] = (None, "", False, [])
    marks = ("cache_control", "prompt_cache_breakpoint")
    plain = {name: _plain(item) for name, item in value.items() if name not in marks and item not in meaningless}
    for name in ("content", "system"):
        part = plain.get(name)
        if isinstance(part, list) and len(part) == 1 and set(part[0]) == {"type", "text"}:
            plain[name] = part[0]["text"]
    if isinstance(arguments := plain.get("arguments"), str):
        plain["arguments"] = json.loads(arguments)
    return plain


def differences(want: Any, got: Any, path: str = "") -> Iterator[str]:
    """The paths at which two structures differ."""
    if isinstance(want, dict) and isinstance(got, dict):
        for name in sorted(want.keys() | got.keys()):
            yield from differences(want.get(name), got.get(name), f"{path}.{name}".lstrip("."))
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for place, (one, two) in enumerate(zip(want, got, strict=True)):
            yield from differences(one, two, f"{path}.{place}")
    elif want != got:
        yield path
