"""A stand-in for Docker's engine on a unix socket: its HTTP interface, and real processes for containers."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import socketserver
import struct
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support import containers

IMAGE = "handwork-test:python"


class Container:
    """One container: its settings, its process, and whom its streams are joined to."""

    def __init__(self, name: str, config: dict[str, Any]) -> None:
        self.id, self.name, self.config = secrets.token_hex(32), name, config
        self.joined: socket.socket | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self.gone = threading.Event()


class EngineServer:
    """`containers` are those that exist, `made` all that ever did; `pulls` what pulling an image answers, by its name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.images = {IMAGE}
        self.pulls: dict[str, list[dict[str, Any]]] = {}
        self.refuse_start = ""
        self.about: dict[str, Any] = {"OSType": "linux", "SecurityOptions": ["name=seccomp,profile=default"]}
        self.made: list[Container] = []
        self.containers: dict[str, Container] = {}
        self.pulling = threading.Event()
        self.requests: list[str] = []

    @property
    def environ(self) -> dict[str, str]:
        return {"DOCKER_HOST": f"unix://{self.path}"}

    def find(self, name: str) -> Container | None:
        return next((each for each in self.containers.values() if name in (each.id, each.name)), None)

    def remove(self, container: Container) -> None:
        """Kill it and forget it, as AutoRemove does when it has ended."""
        if container.process is not None:
            containers.end(container.process)
        self.containers.pop(container.id, None)
        if container.joined is not None:
            with contextlib.suppress(OSError):
                container.joined.shutdown(socket.SHUT_RDWR)
        container.gone.set()

    @contextlib.contextmanager
    def running(self) -> Iterator[EngineServer]:
        with _Server(str(self.path), type("Handler", (_Handler,), {"engine": self})) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.02,))
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()
                for container in list(self.containers.values()):
                    self.remove(container)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def get_request(self) -> tuple[Any, Any]:
        request, _address = super().get_request()
        return request, ("", 0)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine: EngineServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def do_DELETE(self) -> None:
        self._serve("DELETE")

    def _serve(self, method: str) -> None:
        parts = urlsplit(self.path)
        words = [unquote(word) for word in parts.path.strip("/").split("/")]
        if words[0].startswith("v1."):
            del words[0]
        self.engine.requests.append(f"{method} {'/'.join(words)}")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._answer(method, words, query, json.loads(body) if body else {})

    def _answer(self, method: str, words: list[str], query: dict[str, str], body: dict[str, Any]) -> None:
        if words == ["version"]:
            self._say(200, {"ApiVersion": "1.47", "MinAPIVersion": "1.24", "Version": "27.0"})
        elif words == ["info"]:
            self._say(200, self.engine.about)
        elif words[0] == "images" and words[-1] == "json":
            name = "/".join(words[1:-1])
            known = name in self.engine.images
            self._say(200 if known else 404, {"Id": name} if known else {"message": f"No such image: {name}"})
        elif words == ["images", "create"]:
            self._pull(f"{query['fromImage']}:{query['tag']}")
        elif words == ["containers", "create"]:
            self._create(query["name"], body)
        elif words[0] == "containers":
            self._container(method, words, query)
        else:
            self._say(404, {"message": "page not found"})

    def _container(self, method: str, words: list[str], query: dict[str, str]) -> None:
        container = self.engine.find(words[1])
        if container is None:
            self._say(404, {"message": f"No such container: {words[1]}"})
        elif method == "DELETE":
            self.engine.remove(container)
            self._say(204)
        elif words[2] == "start" and self.engine.refuse_start:
            self._say(400, {"message": self.engine.refuse_start})
        elif words[2] == "start":
            self._start(container)
        elif words[2] == "attach":
            self._attach(container)
        else:
            self._say(404, {"message": "page not found"})

    def _pull(self, name: str) -> None:
        if name not in self.engine.pulls:
            self._say(404, {"message": f"pull access denied for {name}, repository does not exist"})
            return
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.engine.pulling.set()
        for line in self.engine.pulls[name]:
            data = json.dumps(line).encode() + b"\r\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        if self.engine.pulls[name] and "error" not in self.engine.pulls[name][-1]:
            self.engine.images.add(name)
        self.wfile.write(b"0\r\n\r\n")

    def _create(self, name: str, body: dict[str, Any]) -> None:
        missing = [each["Source"] for each in body["HostConfig"]["Mounts"] if not Path(each["Source"]).exists()]
        if body["Image"] not in self.engine.images:
            self._say(404, {"message": f"No such image: {body['Image']}"})
        elif missing:
            self._say(400, {"message": f"invalid mount config: bind source path does not exist: {missing[0]}"})
        elif self.engine.find(name):
            self._say(409, {"message": f"The container name /{name} is already in use"})
        else:
            container = Container(name, body)
            self.engine.made.append(container)
            self.engine.containers[container.id] = container
            self._say(201, {"Id": container.id, "Warnings": []})

    def _start(self, container: Container) -> None:
        pipe = subprocess.PIPE
        container.process = containers.start(container.config, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
        self._say(204)
        for carry in (_carry_in, _carry_output, _carry_errors):
            threading.Thread(target=carry, args=(container,), daemon=True).start()
        container.process.wait()
        self.engine.remove(container)

    def _attach(self, container: Container) -> None:
        container.joined = self.connection
        self.wfile.write(
            b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.multiplexed-stream\r\n"
            b"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
        )
        self.wfile.flush()
        container.gone.wait()
        self.close_connection = True

    def _say(self, status: int, body: object = None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()


def _carry_in(container: Container) -> None:
    assert container.process
    assert container.process.stdin
    assert container.joined
    with contextlib.suppress(OSError, ValueError):
        while data := container.joined.recv(65536):
            view = memoryview(data)
            while view:
                view = view[container.process.stdin.write(view) :]
    with contextlib.suppress(OSError):  # StdinOnce: whoever joined is gone
        container.process.stdin.close()


def _carry_output(container: Container) -> None:
    assert container.process
    _carry_out(container, 1, container.process.stdout)


def _carry_errors(container: Container) -> None:
    assert container.process
    _carry_out(container, 2, container.process.stderr)


_lock = threading.Lock()


def _carry_out(container: Container, kind: int, stream: Any) -> None:
    assert container.joined
    with contextlib.suppress(OSError, ValueError):
        while data := stream.read(32768):
            with _lock:
                container.joined.sendall(struct.pack(">BxxxI", kind, len(data)) + data)
    stream.close()
