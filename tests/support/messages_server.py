"""A loopback server that speaks Anthropic's Messages API and refuses, with 400, what that API refuses.

    async with MessagesServer(["Hello"]) as server:                  # a list: one reply a request, in order
    async with MessagesServer(lambda request: "Hello") as server:    # a function of the request's JSON (may raise)
        server.url        # base URL, without /v1
        server.requests, server.bodies, server.refused               # as StrictServer has them

A reply is a text; a call `tool("bash", command="ls")`, or a list of calls and texts; {"content": [block…], "stop_reason": …} in
the API's own form; or an Answer of fault_server. Where thinking is on, a signed thought stands before texts and calls.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any, Self

from tests.support.fault_server import Answer, FaultServer, Received, json_answer, stream
from tests.support.messages_rules import Block, check_messages_request

Reply = str | dict[str, Any] | list[Any] | Answer
Script = Sequence[Reply] | Callable[[dict[str, Any]], Reply]
USAGE = {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2, "output_tokens": 1}


class MessagesServer:
    """See the module's docstring."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._numbers = itertools.count(1)
        self._served = 0
        self._issued: list[list[Block]] = []
        self.requests: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.refused: list[str] = []
        self.server = FaultServer(self._answer)

    @property
    def url(self) -> str:
        return self.server.url.removesuffix("/v1")

    async def __aenter__(self) -> Self:
        await self.server.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.server.__aexit__(*exc)

    def _answer(self, received: Received) -> Answer:
        if received.method != "POST" or received.path.split("?")[0] != "/v1/messages":
            return error(404, f"no such path: {received.path}", "not_found_error")
        if not {"x-api-key", "authorization"} & set(received.headers):
            return error(401, "x-api-key header is required", "authentication_error")
        if "anthropic-version" not in received.headers:
            return self._refuse("anthropic-version: header is required")
        request = received.json
        self.requests.append(request)
        self.bodies.append(received.body)
        if problem := check_messages_request(request, self._issued):
            return self._refuse(problem)
        return self._reply(request)

    def _refuse(self, problem: str) -> Answer:
        self.refused.append(problem)
        return error(400, problem)

    def _reply(self, request: dict[str, Any]) -> Answer:
        if callable(self._script):
            reply = self._script(request)
        elif self._served < len(self._script):
            reply = self._script[self._served]
        else:
            return error(400, "messages server: the script is spent")
        self._served += 1
        if isinstance(reply, Answer):
            return reply
        message = self._message(reply, thinks=bool(request.get("thinking")))
        self._issued.append(message["content"])
        return stream(*streamed(message)) if request.get("stream") else json_answer(message)

    def _message(self, reply: str | dict[str, Any] | list[Any], *, thinks: bool) -> dict[str, Any]:
        if isinstance(reply, dict) and "content" in reply:
            content = reply["content"]
        else:
            content = [self._block(part) for part in (reply if isinstance(reply, list) else [reply])]
            if thinks:
                content.insert(0, self._thought())
        stop = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
        return message_of(content, stop) | (reply if isinstance(reply, dict) and "content" in reply else {})

    def _block(self, part: str | dict[str, Any]) -> Block:
        if isinstance(part, str):
            return {"type": "text", "text": part}
        id = part.get("id", f"toolu_{next(self._numbers):03}")
        return {"type": "tool_use", "id": id, "name": part["name"], "input": part.get("arguments", {})}

    def _thought(self) -> Block:
        number = next(self._numbers)
        return {"type": "thinking", "thinking": f"I think, {number} ü\n", "signature": f"Sig/+{number}=="}


def error(status: int, message: str, kind: str = "invalid_request_error", **headers: str) -> Answer:
    """An error as Anthropic words it."""
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return json_answer(body, status, **headers)


def message_of(content: list[Block], stop: str = "end_turn", **fields: Any) -> dict[str, Any]:
    """A whole message as the API answers without streaming."""
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": content}
    return whole | {"stop_reason": stop, "stop_sequence": None, "usage": USAGE} | fields


def event(kind: str, **fields: Any) -> bytes:
    """One named event."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind} | fields)}\n\n".encode()


def streamed(message: dict[str, Any]) -> list[bytes]:
    """The events of a message, each block in two pieces where it can be cut."""
    start = message | {"content": [], "stop_reason": None}
    events = [event("message_start", message=start), event("ping")]
    for index, block in enumerate(message["content"]):
        opened, deltas = _cut(block)
        events.append(event("content_block_start", index=index, content_block=opened))
        events += [event("content_block_delta", index=index, delta=delta) for delta in deltas]
        events.append(event("content_block_stop", index=index))
    ending = {name: message.get(name) for name in ("stop_reason", "stop_details")}
    return [*events, event("message_delta", delta=ending, usage={"output_tokens": 20}), event("message_stop")]


def _cut(block: Block) -> tuple[Block, list[dict[str, Any]]]:
    kind = block["type"]
    if kind == "text":
        return block | {"text": ""}, _halves("text_delta", "text", block["text"])
    if kind == "thinking":
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return block | {"thinking": "", "signature": ""}, [
            *_halves("thinking_delta", "thinking", block["thinking"]),
            signed,
        ]
    if kind in ("tool_use", "server_tool_use"):
        return block | {"input": {}}, _halves("input_json_delta", "partial_json", json.dumps(block["input"]))
    return block, []


def _halves(kind: str, name: str, text: str) -> list[dict[str, Any]]:
    middle = len(text) // 2
    return [{"type": kind, name: part} for part in (text[:middle], text[middle:])]
