"""A loopback HTTP server that misbehaves on purpose: it plays a provider whose every answer is scripted down to the byte.

    async with FaultServer([Answer(status=429, headers={"retry-after": "7"}), stream_of("Hello")]) as server:
        ... ask server.url + "/chat/completions" ...
        assert len(server.requests) == 2

A script is a list of answers, taken in order (one a request, over all connections), or a function Received -> Answer. When the
list is spent, the server answers 500 and says so. `server.requests` holds what came in, `server.connections` counts the
connections, `server.open` those still open, and `await server.hung_up()` returns once a client closed one.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self

NAMES = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests", 503: "Busy"}


class Fault(Enum):
    """What can stand in an answer's pieces, or before its head (`Answer.before`)."""

    SILENCE = "say nothing more until the client gives up"
    CUT = "close the connection in an orderly way, here"
    RESET = "reset the connection (RST), here"


@dataclass
class Received:
    """One request as it came in; header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    """One scripted answer.

    pieces: bytes, each written on its own (as one chunk unless `length` is set), or a Fault.
    before: a Fault in place of the whole answer.
    length: send content-length (of all bytes in pieces) instead of chunks.
    close: close the connection after the answer without having said so: the next use of a kept connection fails.
    raw: pieces are the whole answer, head included, byte for byte.
    """

    pieces: Sequence[bytes | Fault] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    before: Fault | None = None
    length: bool = False
    close: bool = False
    raw: bool = False


def json_answer(value: object, status: int = 200, **headers: str) -> Answer:
    """A plain JSON answer; underscores in header names become dashes."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answer([json.dumps(value).encode()], status, {"content-type": "application/json"} | named, length=True)


def error_answer(status: int, message: str = "no", code: str | None = None, **headers: str) -> Answer:
    """An error as OpenAI words it."""
    return json_answer({"error": {"message": message, "type": "error", "param": None, "code": code}}, status, **headers)


def event(value: object) -> bytes:
    """One server-sent event with a JSON value."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def delta(finish: str | None = None, **fields: object) -> bytes:
    """One chat completion chunk: `delta(content="Hi")`, `delta("stop")`."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]})


def call_delta(name: str, arguments: str, id: str = "call_1", index: int = 0) -> bytes:
    """A chunk that holds one whole tool call."""
    function = {"name": name, "arguments": arguments}
    return delta(tool_calls=[{"index": index, "id": id, "type": "function", "function": function}])


def usage_event(prompt: int = 10, completion: int = 5) -> bytes:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": usage})


def stream(*pieces: bytes | Fault, **options: Any) -> Answer:
    """A 200 answer of server-sent events."""
    return Answer(pieces, headers={"content-type": "text/event-stream"}, **options)


def stream_of(text: str, **options: Any) -> Answer:
    """A whole good stream that says one text."""
    return stream(delta(content=text), delta("stop"), usage_event(), DONE, **options)


Script = Sequence[Answer] | Callable[[Received], Answer]


class FaultServer:
    """See the module's docstring."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.requests: list[Received] = []
        self.connections = 0
        self.url = ""
        self.port = 0
        """The port to listen on; 0 takes any free one."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._left = asyncio.Event()
        self._came = asyncio.Event()

    @property
    def open(self) -> int:
        """How many connections are open now."""
        return len(self._tasks)

    async def asked(self) -> None:
        """Wait until a request has come in."""
        await self._came.wait()

    async def hung_up(self) -> None:
        """Wait until any connection has ended."""
        await self._left.wait()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while (received := await read_request(reader)) is not None:
                self.requests.append(received)
                self._came.set()
                if not await self._answer(self._next(received), reader, writer):
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            self._left.set()
            writer.close()

    def _next(self, received: Received) -> Answer:
        if callable(self._script):
            return self._script(received)
        at = len(self.requests) - 1
        return self._script[at] if at < len(self._script) else error_answer(500, "fault server: the script is spent")

    async def _answer(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if answer.before is not None:
            return await self._fault(answer.before, reader, writer)
        if not answer.raw:
            writer.write(head(answer))
        for piece in answer.pieces:
            if isinstance(piece, Fault):
                return await self._fault(piece, reader, writer)
            if piece:
                writer.write(piece if answer.raw or answer.length else b"%x\r\n%s\r\n" % (len(piece), piece))
                await writer.drain()
                await asyncio.sleep(0)
        if not answer.raw and not answer.length:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return not answer.close

    async def _fault(self, fault: Fault, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await writer.drain()
        if fault is Fault.SILENCE:
            await reader.read()  # until the client hangs up
        elif fault is Fault.RESET:
            peer: socket.socket = writer.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        return False


def head(answer: Answer) -> bytes:
    """Status line and headers of an answer."""
    lines = [f"HTTP/1.1 {answer.status} {NAMES.get(answer.status, 'Status')}"]
    lines += [f"{name}: {text}" for name, text in answer.headers.items()]
    if answer.length:
        lines.append(f"content-length: {sum(len(piece) for piece in answer.pieces if isinstance(piece, bytes))}")
    else:
        lines.append("transfer-encoding: chunked")
    return "\r\n".join([*lines, "", ""]).encode()


async def read_request(reader: asyncio.StreamReader) -> Received | None:
    """Read one request with a content-length or chunked body; None at the end of the connection, and for a TLS greeting."""
    try:
        start = await reader.readexactly(1)
        if start == b"\x16":
            return None
        text = (start + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = text.rstrip("\r\n").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = b""
        if "chunked" in headers.get("transfer-encoding", ""):
            while size := int(await reader.readline(), 16):
                body += await reader.readexactly(size)
                await reader.readline()
            await reader.readline()
        else:
            body = await reader.readexactly(int(headers.get("content-length", "0")))
    except asyncio.IncompleteReadError:
        return None
    return Received(method, path, headers, body)
