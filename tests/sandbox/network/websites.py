"""Web servers for programs in a sandbox: files, git over HTTP as git itself serves it, and the same with TLS."""

from __future__ import annotations

import contextlib
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class _Site(SimpleHTTPRequestHandler):
    """Files of a folder; below /git/ the repositories in it, by git's own CGI program."""

    protocol_version = "HTTP/1.1"

    def __init__(self, said: list[str], *words: Any, **more: Any) -> None:
        self._said = said
        super().__init__(*words, **more)

    def log_message(self, format: str, *args: object) -> None:
        self._said.append(self.requestline)

    def do_GET(self) -> None:
        if self.path.startswith("/git/"):
            self._git()
        else:
            super().do_GET()

    def do_POST(self) -> None:
        self._git()

    def _git(self) -> None:
        path, _, query = self.path.removeprefix("/git").partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        environ = {
            "PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_PROJECT_ROOT": self.directory, "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_USER": "somebody",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "REMOTE_ADDR": "127.0.0.1", "CONTENT_LENGTH": str(len(body)),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        }  # fmt: skip
        done = subprocess.run(["git", "http-backend"], input=body, env=environ, capture_output=True, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = [line.partition(": ")[::2] for line in head.decode().split("\r\n")]
        self.send_response(int(dict(fields).get("Status", "200 OK")[:3]))
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, folder: Path) -> None:
        self.said: list[str] = []
        self.lost: list[str] = []
        super().__init__(("127.0.0.1", 0), partial(_Site, self.said, directory=str(folder)))

    def handle_error(self, request: object, client_address: object) -> None:
        self.lost.append(str(client_address))


class Website:
    """`port`, and the lines of the requests that came."""

    def __init__(self, server: _Server) -> None:
        self.port: int = server.server_address[1]
        self.said = server.said


@contextlib.contextmanager
def website(folder: Path, tls: tuple[Path, Path] | None = None) -> Iterator[Website]:
    """Serves a folder; `tls` are the files of a certificate and its key."""
    server = _Server(folder)
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Website(server)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def certificate(folder: Path, *names: str) -> tuple[Path, Path]:
    """A certificate of its own for these names, made by openssl: its file and that of its key."""
    crt, key = folder / "tls.crt", folder / "tls.key"
    subject = ",".join(f"DNS:{name}" for name in names)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", key, "-out", crt, "-subj", f"/CN={names[0]}", "-addext", f"subjectAltName={subject}"],
        check=True, capture_output=True,
    )  # fmt: skip
    return crt, key
