"""Runs inside the sandbox: listens to what the kernel puts out, all the time, and gives it to the request that it belongs to."""

from __future__ import annotations

import asyncio
import contextlib
import queue
from typing import Any

from .relay import Relay

_POLL = 0.5
_STRAY = 20_000
"""Characters kept of what threads print between two requests."""


class Outputs:
    """See the module. `heard` counts messages; `ended` is set when the request's output is complete."""

    def __init__(self, client: Any) -> None:
        self.heard = 0
        self.ended = asyncio.Event()
        self._client = client
        self._request = ""
        self._relay: Relay | None = None
        self._stray = ""
        self._listening = asyncio.ensure_future(self._listen())

    def begin(self, request: str, relay: Relay) -> None:
        """A request was sent; what threads have printed since the one before comes first."""
        self.ended.clear()
        self._request, self._relay = request, relay
        stray, self._stray = self._stray, ""
        if stray:
            relay.text(f"[written since the last call by threads of earlier code]\n{stray.rstrip()}\n[this call]\n")

    def end(self) -> None:
        """What comes from now on belongs to no request."""
        self._request, self._relay = "", None

    async def stop(self) -> None:
        self._listening.cancel()
        await asyncio.wait({self._listening})

    async def _listen(self) -> None:
        while True:
            with contextlib.suppress(queue.Empty):
                self._take(await self._client.get_iopub_msg(timeout=_POLL))

    def _take(self, message: dict[str, Any]) -> None:
        kind, content = message["msg_type"], message["content"]
        self.heard += 1
        if self._relay and message["parent_header"].get("msg_id") == self._request:
            self._relay.message(kind, content)
            if kind == "status" and content["execution_state"] == "idle":
                self.ended.set()
        elif kind == "stream" and self._relay:  # from a thread that earlier code left running
            self._relay.message(kind, content)
        elif kind == "stream":
            self._stray = (self._stray + content["text"])[-_STRAY:]
