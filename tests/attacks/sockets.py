"""Sockets outside of the sandbox: those that count who reaches them, and a server that a list of hosts may name."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Counter:
    """A socket that counts who reaches it."""

    def __init__(self, name: str, sock: socket.socket) -> None:
        self.name, self._sock = name, sock
        sock.setblocking(False)
        if sock.type == socket.SOCK_STREAM:
            sock.listen(64)

    @classmethod
    def tcp(cls, family: int, address: str) -> Counter:
        sock = socket.socket(family)
        sock.bind((address, 0))
        return cls(f"TCP to {address}", sock)

    @classmethod
    def udp(cls) -> Counter:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind(("127.0.0.1", 0))
        return cls("UDP to 127.0.0.1", sock)

    @classmethod
    def unix(cls, address: str) -> Counter:
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(address)
        return cls(f"unix socket {address!r}", sock)

    @property
    def port(self) -> int:
        name = self._sock.getsockname()
        return int(name[1]) if isinstance(name, tuple) else 0

    def take(self) -> int:
        """How many came since the last time."""
        count = 0
        while True:
            try:
                if self._sock.type == socket.SOCK_DGRAM:
                    self._sock.recv(9)
                else:
                    self._sock.accept()[0].close()
            except BlockingIOError:
                return count
            count += 1

    def close(self) -> None:
        self._sock.close()


class Listed:
    """A web server on 127.0.0.1: keeps what it was told; /away leads to `leads_to`."""

    def __init__(self) -> None:
        self.told = b""
        self.leads_to = ""
        listed = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                listed.told += f"{self.requestline}\n{self.headers}\n".encode() + body
                self.send_response(302 if self.path.startswith("/away") else 200)
                self.send_header("Location", listed.leads_to)
                self.send_header("Content-Length", "18")
                self.end_headers()
                self.wfile.write(b"the listed server\n")

            do_POST = do_PUT = do_GET

            def log_message(self, format: str, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
