"""A loopback chat-completions server that refuses, with 400, every history that a strict provider refuses.

    async with StrictServer(["Hello"]) as server:                    # a list: one reply a request, in order
    async with StrictServer(lambda request: "Hello") as server:      # a function of the request's JSON (may raise)
        server.url        # base URL, ends with /v1
        server.requests   # the JSON bodies that came in, in order
        server.bodies     # the same as raw bytes
        server.refused    # why requests were refused, in order; [] means that every history was valid

A reply is a text; a call `tool("bash", command="ls")`, or a list of calls; a message dict {"content": …, "tool_calls": [call…],
"finish_reason": …}; or an Answer of fault_server, sent as it is. Streams when the request says so.

As a program it serves until it is ended and prints its base URL first:

    python -m tests.support.strict_server [--port 0] [--script FILE] [--log FILE]

FILE holds a JSON list of replies: "text", {"tool_calls": [{"name": "bash", "arguments": {"command": "ls"}}]} … Without it every
answer is the text `done`. --log gets one request's JSON a line.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from tests.support.fault_server import (
    DONE,
    Answer,
    FaultServer,
    Received,
    delta,
    error_answer,
    json_answer,
    stream,
    usage_event,
)

Reply = str | dict[str, Any] | list[Any] | Answer
Script = Sequence[Reply] | Callable[[dict[str, Any]], Reply]
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    """A call for a script; its id is made unique by the server."""
    return {"name": name, "arguments": arguments}


class StrictServer:
    """See the module's docstring."""

    def __init__(self, script: Script, *, user_after_tool: bool = True) -> None:
        self._script = script
        self._user_after_tool = user_after_tool
        self._ids = itertools.count(1)
        self._served = 0
        self.requests: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.refused: list[str] = []
        self.server = FaultServer(self._answer)

    @property
    def url(self) -> str:
        return self.server.url

    async def __aenter__(self) -> Self:
        await self.server.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.server.__aexit__(*exc)

    def _answer(self, received: Received) -> Answer:
        if received.method == "GET" and received.path.endswith("/models"):
            return json_answer({"object": "list", "data": [{"id": "strict", "object": "model"}]})
        if received.method != "POST" or not received.path.split("?")[0].endswith("/chat/completions"):
            return error_answer(404, f"no such path: {received.path}")
        try:
            request = received.json
        except ValueError as error:
            return self._refuse(f"the body is not JSON: {error}")
        self.requests.append(request)
        self.bodies.append(received.body)
        problem = check_request(request, user_after_tool=self._user_after_tool)
        if problem:
            return self._refuse(problem)
        return self._reply(request)

    def _refuse(self, problem: str) -> Answer:
        self.refused.append(problem)
        return error_answer(400, problem, "invalid_request_error")

    def _reply(self, request: dict[str, Any]) -> Answer:
        if callable(self._script):
            reply = self._script(request)
        elif self._served < len(self._script):
            reply = self._script[self._served]
        else:
            return error_answer(400, "strict server: the script is spent", "script_spent")
        self._served += 1
        if isinstance(reply, Answer):
            return reply
        message = self._message(reply)
        finish = message.pop("finish_reason", None) or ("tool_calls" if message.get("tool_calls") else "stop")
        return _streamed(message, finish) if request.get("stream") else _whole(message, finish)

    def _message(self, reply: str | dict[str, Any] | list[Any]) -> dict[str, Any]:
        if isinstance(reply, str):
            return {"content": reply}
        if isinstance(reply, list):
            reply = {"tool_calls": reply}
        elif "name" in reply and "tool_calls" not in reply:
            reply = {"tool_calls": [reply]}
        return reply | {"tool_calls": [self._call(call) for call in reply.get("tool_calls", ())]}

    def _call(self, call: dict[str, Any]) -> dict[str, Any]:
        arguments = call.get("arguments", {})
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        id = call.get("id", f"call_strict_{next(self._ids)}")
        return {"id": id, "type": "function", "function": {"name": call["name"], "arguments": text}}


def _streamed(message: dict[str, Any], finish: str) -> Answer:
    pieces = [delta(role="assistant", content=message.get("content"))] if message.get("content") else []
    for index, call in enumerate(message.get("tool_calls") or ()):
        pieces.append(delta(tool_calls=[{"index": index} | call]))
    return stream(*pieces, delta(finish), usage_event(), DONE)


def _whole(message: dict[str, Any], finish: str) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": None} | message, "finish_reason": finish}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return json_answer(
        {"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    )


def check_request(request: dict[str, Any], *, user_after_tool: bool = True) -> str | None:
    """Why a strict provider would refuse this request, or None."""
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages: expected a non-empty list"
    if request.get("tool_choice") and not request.get("tools"):
        return "tool_choice is only allowed when tools are given"
    offered = [tool["function"]["name"] for tool in request.get("tools", ())]
    if len(set(offered)) != len(offered) or not all(NAME.fullmatch(name) for name in offered):
        return f"tools: names must be unique and match {NAME.pattern}"
    if "tools" in request and not offered:
        return "tools: expected at least one"
    return check_messages(messages, user_after_tool=user_after_tool)


def check_messages(messages: list[dict[str, Any]], *, user_after_tool: bool = True) -> str | None:
    """Each call has exactly one result, right after its message; ids are unique in the whole history."""
    seen: set[str] = set()
    waiting: set[str] = set()
    before = ""
    for at, message in enumerate(messages):
        role, where = message.get("role"), f"messages[{at}]"
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                return f"{where}: a message with role 'tool' must follow the message with its tool_call"
            waiting.discard(message["tool_call_id"])
        elif waiting:
            return f"{where}: an assistant message with 'tool_calls' must be followed by a result for each: {sorted(waiting)}"
        if role == "user" and before == "tool" and not user_after_tool:
            return f"{where}: Unexpected role 'user' after role 'tool'"
        if problem := _check_message(message, seen):
            return f"{where}: {problem}"
        waiting |= {call["id"] for call in message.get("tool_calls") or ()}
        before = str(role)
    return f"tool_calls without a result: {sorted(waiting)}" if waiting else None


def _check_message(message: dict[str, Any], seen: set[str]) -> str | None:
    role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
    if role not in ("system", "developer", "user", "assistant", "tool"):
        return f"unknown role {role!r}"
    if content is None and not (role == "assistant" and calls):
        return "content must not be null"
    if not isinstance(content, str | list | None):
        return "content must be a string or a list of parts"
    if role in ("user", "tool") and content == []:
        return "content must not be empty"
    if calls is not None and (role != "assistant" or not calls):
        return "tool_calls must be a non-empty list in an assistant message"
    for call in calls or ():
        if problem := _check_call(call, seen):
            return problem
        seen.add(call["id"])
    return None


def _check_call(call: dict[str, Any], seen: set[str]) -> str | None:
    id, function = call.get("id"), call.get("function") or {}
    if not id or not isinstance(id, str) or len(id) > 40:
        return f"tool call id must be a string of 1 to 40 characters, got {id!r}"
    if id in seen:
        return f"duplicate tool call id {id!r}"
    if not NAME.fullmatch(function.get("name") or ""):
        return f"function name must match {NAME.pattern}, got {function.get('name')!r}"
    try:
        arguments = json.loads(function["arguments"], parse_constant=_no_constant)
    except (KeyError, TypeError, ValueError, RecursionError):
        return "arguments must be JSON"
    return None if isinstance(arguments, dict) else "arguments must be a JSON object"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


async def _main() -> None:
    parser = argparse.ArgumentParser(description="A strict chat-completions server on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path)
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    replies = itertools.chain(
        json.loads(options.script.read_text()) if options.script else (), itertools.repeat("done")
    )

    def script(request: dict[str, Any]) -> Reply:
        if options.log:
            with options.log.open("a") as log:
                log.write(json.dumps(request) + "\n")
        reply: Reply = next(replies)
        return reply

    server = StrictServer(script)
    server.server.port = options.port
    async with server:
        print(server.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    import contextlib

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main())
