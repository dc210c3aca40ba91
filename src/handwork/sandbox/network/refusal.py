"""An answer that the proxy gives in a server's place, in words that a model understands when it reads them."""

from __future__ import annotations


class Refusal(Exception):
    """The request is not forwarded: an HTTP status and why, in one sentence."""

    def __init__(self, status: int, why: str) -> None:
        self.status, self.why = status, why
        super().__init__(why)

    def answer(self, *, body: bool = True) -> bytes:
        """The whole response, which closes the connection. The reason stands in its first line, too: of an answer to CONNECT
        most programs (pip, Python) show nothing else."""
        text = f"Sandbox network: {self.why}\n".encode()
        line = " ".join(self.why.encode("ascii", "replace").decode().split())[:400]
        head = (
            f"HTTP/1.1 {self.status} {line}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + (text if body else b"")
