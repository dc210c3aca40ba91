"""Runs inside the sandbox: the outputs of one request on their way to our side, as JSON lines, bounded."""

from __future__ import annotations

import json
import os
from collections import deque
from typing import Any

from .media import PICTURES, text_of

_KEPT = 400_000
"""Characters of one request's text that are relayed as they come; of what follows only the last are, at its end."""
_TAIL = 200_000
_MAX_IMAGE = 20_000_000
_MAX_IMAGES = 20
_MAX_TRACEBACK = 20_000


class Channel:
    """The way to our side: lines of JSON on the descriptor that was standard output, which nobody else holds now."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "wb", buffering=0)  # dup sets close-on-exec: no child inherits it

    def send(self, kind: str, **fields: Any) -> None:
        line = json.dumps({"kind": kind, **fields}, ensure_ascii=False)
        data = memoryview(line.encode("utf-8", "replace") + b"\n")  # code can send what we never would
        while data:
            data = data[self._out.write(data) or 0 :]


class Relay:
    """The outputs of one request, bounded."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._sent = 0
        self._line_open = False
        self._images = 0
        self._late: deque[str] = deque()
        self._late_size = 0
        self._omitted = 0
        self._error = False
        self.gap = False
        """Whether the end of the output never came, so that some of it may be missing."""

    def text(self, text: str) -> None:
        """Relay text, or keep it for the end once there was too much."""
        self._line_open = bool(text) and not text.endswith("\n")
        if self._sent < _KEPT:
            part, text = text[: _KEPT - self._sent], text[_KEPT - self._sent :]
            self._sent += len(part)
            self._channel.send("text", text=part)
        if text:
            self._late.append(text)
            self._late_size += len(text)
        while self._late_size > 2 * _TAIL and len(self._late) > 1:
            gone = self._late.popleft()
            self._late_size -= len(gone)
            self._omitted += len(gone)

    def message(self, kind: str, content: dict[str, Any]) -> None:
        """Relay one message of the kernel's output channel."""
        if kind == "stream":
            self.text(content["text"])
        elif kind in ("execute_result", "display_data", "update_display_data"):
            self._data(content["data"])
        elif kind == "error":
            self._failure(content)

    def failed(self, reply: dict[str, Any]) -> None:
        """Relay the error that the reply names, if none came with the output."""
        if not self._error:
            self._failure(reply)

    def _failure(self, content: dict[str, Any]) -> None:
        self._error = True
        name, value = content.get("ename", "Error"), content.get("evalue", f"the code was {content.get('status')}")
        trace = "\n".join(content.get("traceback", ())) or f"{name}: {value}"
        self._channel.send("error", name=name, traceback=_ends(trace))

    def _data(self, data: dict[str, Any]) -> None:
        for media_type in PICTURES:
            if picture := data.get(media_type):
                self._images += 1
                if self._images > _MAX_IMAGES:
                    break
                fits = len(picture) <= _MAX_IMAGE
                self._channel.send("image", media_type=media_type, data=picture if fits else "", size=len(picture))
                break
        if text := text_of(data):
            self.text(("\n" if self._line_open else "") + text + "\n")

    def finish(self) -> None:
        """Relay what was kept back."""
        late = "".join(self._late)
        omitted = self._omitted + max(len(late) - _TAIL, 0)
        images = max(self._images - _MAX_IMAGES, 0)
        self._channel.send("late", text=late[-_TAIL:], omitted=omitted, images_omitted=images)


def _ends(text: str) -> str:
    if len(text) <= _MAX_TRACEBACK:
        return text
    half = _MAX_TRACEBACK // 2
    return f"{text[:half]}\n[... {len(text) - _MAX_TRACEBACK} characters omitted ...]\n{text[-half:]}"
