"""A scripted OpenAI-compatible server on loopback, in a process of its own so that its CPU time is not counted.

The model's name is the script: `n50` asks for 50 calls of add and then answers, `x1000` streams the answer in 1,000
chunks, `a65536` makes the calls note(text=…) with that many bytes of arguments, 16 a chunk. `GET /stats` counts requests.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from typing import Any

_CHUNKS_A_WRITE = 8


class Server(asyncio.Protocol):
    count = 0
    first_ns = 0

    def connection_made(self, transport: Any) -> None:
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end]
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            total = end + 4 + (int(length[1]) if length else 0)
            if len(self.buffer) < total:
                return
            body, self.buffer = self.buffer[end + 4 : total], self.buffer[total:]
            self.answer(head.split(b" ", 2)[1], body)

    def answer(self, path: bytes, body: bytes) -> None:
        if path.endswith(b"/chat/completions"):
            Server.count += 1
            Server.first_ns = Server.first_ns or time.monotonic_ns()
            self.chat(json.loads(body))
            return
        if path.endswith(b"/reset"):
            Server.count = Server.first_ns = 0
        self.send_json({"count": Server.count, "first_ns": Server.first_ns})

    def send_json(self, value: object) -> None:
        body = json.dumps(value).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)

    def chat(self, request: dict[str, Any]) -> None:
        knobs = {key: int(value) for key, value in re.findall(r"([nxa])(\d+)", request["model"])}
        done = sum(message["role"] == "tool" for message in request["messages"])
        call = None
        if done < knobs.get("n", 0):
            size = knobs.get("a", 0)
            call = ("note", json.dumps({"text": "x" * size})) if size else ("add", json.dumps({"a": done, "b": 1}))
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        if not request.get("stream"):
            self.send_json({"id": "r", "object": "chat.completion", "choices": [_whole(call, done)], "usage": usage})
            return
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        events = [
            _event({"choices": [{"index": 0, "delta": d, "finish_reason": f}]}) for d, f in _deltas(call, done, knobs)
        ]
        events += [_event({"choices": [], "usage": usage}), b"data: [DONE]\n\n"]
        for start in range(0, len(events), _CHUNKS_A_WRITE):
            part = b"".join(events[start : start + _CHUNKS_A_WRITE])
            self.transport.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.transport.write(b"0\r\n\r\n")


def _event(value: dict[str, Any]) -> bytes:
    return (
        b"data: "
        + json.dumps({"id": "r", "object": "chat.completion.chunk", "model": "mock", **value}).encode()
        + b"\n\n"
    )


def _call(call: tuple[str, str], number: int, arguments: str) -> dict[str, Any]:
    function = {"name": call[0], "arguments": arguments}
    return {"index": 0, "id": f"call_{number}", "type": "function", "function": function}


def _whole(call: tuple[str, str] | None, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None if call else "done"}
    if call:
        message["tool_calls"] = [_call(call, number, call[1])]
    return {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}


def _deltas(
    call: tuple[str, str] | None, number: int, knobs: dict[str, int]
) -> Iterator[tuple[dict[str, Any], str | None]]:
    yield {"role": "assistant", "content": None if call else ""}, None
    if call:
        yield {"tool_calls": [_call(call, number, "")]}, None
        size = 16 if knobs.get("a") else len(call[1])
        for start in range(0, len(call[1]), size):
            yield {"tool_calls": [{"index": 0, "function": {"arguments": call[1][start : start + size]}}]}, None
        yield {}, "tool_calls"
        return
    chunks = knobs.get("x", 1)
    for index in range(chunks):
        yield {"content": "done" if chunks == 1 else f"tok{index} "}, None
    yield {}, "stop"


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
