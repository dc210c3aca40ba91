"""One blocking GET: its time limit holds for the whole exchange, any status is an answer, and nothing is followed."""

from __future__ import annotations

import base64
import io
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from handwork.config.user_proxy import proxy_for
from handwork.llm.transport import trusting

_LARGEST = 4 << 20


def get(url: str, headers: Mapping[str, str], deadline: float, environ: Mapping[str, str]) -> tuple[int, bytes]:
    """Status and body, of which no more is read than any list of models has.

    Raises:
        OSError: no answer came, or none that is HTTP; TimeoutError (one, too) at the deadline.
        ConfigError: a proxy or certificate file that cannot be used.
    """
    from http.client import HTTPException
    from urllib.request import ProxyHandler, Request, build_opener

    try:
        proxy = proxy_for(url, environ)
        handlers = [*_handlers(url, deadline, environ), ProxyHandler({urlsplit(url).scheme: proxy} if proxy else {})]
        asked, own = _without_user(url)
        request = Request(asked, headers={"User-Agent": "handwork", "Accept": "application/json", **own, **headers})
        with build_opener(*handlers).open(request, timeout=_left(deadline)) as response:
            return response.status, _read(response)
    except HTTPException as error:
        raise OSError(f"what came is no HTTP answer ({type(error).__name__})") from None
    except ValueError:
        raise OSError("this is no address, nor one that a request can be sent to") from None


def _without_user(url: str) -> tuple[str, dict[str, str]]:
    """The address without the user and password in it, and the header in which they are sent."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    written = base64.b64encode(unquote(user if ":" in user else f"{user}:").encode()).decode()
    return parts._replace(netloc=host).geturl(), {"Authorization": f"Basic {written}"}


def _handlers(url: str, deadline: float, environ: Mapping[str, str]) -> list[Any]:
    from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
    from urllib.request import HTTPErrorProcessor, HTTPHandler, HTTPSHandler

    class Answered(HTTPErrorProcessor):
        """Passes every answer on: a redirect that is followed would carry the key to whom nobody named."""

        def http_response(self, _: Any, response: Any) -> Any:
            return response

        def https_response(self, _: Any, response: Any) -> Any:
            return response

    class InTime(HTTPResponse):
        def __init__(self, sock: Any, *args: Any, **options: Any) -> None:
            timed: Any = _Timed(sock, deadline)
            super().__init__(timed, *args, **options)

    class Plain(HTTPConnection):
        response_class = InTime

    class Secure(HTTPSConnection):
        response_class = InTime

    class PlainHandler(HTTPHandler):
        def http_open(self, request: Any) -> Any:
            return self.do_open(Plain, request)

    if not url.startswith("https:"):
        return [Answered, PlainHandler]
    context = trusting(environ.get("SSL_CERT_FILE"))

    class SecureHandler(HTTPSHandler):
        def https_open(self, request: Any) -> Any:
            return self.do_open(Secure, request, context=context)

    return [Answered, PlainHandler, SecureHandler]


class _Timed(io.RawIOBase):
    """What a socket receives, each time within what is left: its own time limit begins anew with every byte."""

    def __init__(self, sock: Any, deadline: float) -> None:
        self._sock, self._deadline = sock, deadline
        self._file = sock.makefile("rb", buffering=0)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left(self._deadline))
        count: int | None = self._file.readinto(buffer)
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def _read(response: Any) -> bytes:
    body = b""
    while len(body) < _LARGEST and (piece := response.read1(65536)):
        body += piece
    return body


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
