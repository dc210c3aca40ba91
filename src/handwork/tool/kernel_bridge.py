"""Runs inside the sandbox: starts the Python kernel and relays requests and outputs as JSON lines (never imported by us)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import shutil
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any

_KEPT = 400_000
"""Characters of one request's text that are relayed as they come; of what follows only the last are, at its end."""
_TAIL = 200_000
_MAX_IMAGE = 20_000_000
_MAX_IMAGES = 20
_MAX_TRACEBACK = 100_000
_POLL = 0.5
"""Seconds between two looks at whether the kernel still lives, which no message ever says."""
_SILENT = 2
"""Looks without any output, after the reply, at which the output has ended without its mark."""
_DRAIN = 10.0
"""Seconds that output may still come after the reply."""
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


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
        for media_type in _PICTURES:
            if picture := data.get(media_type):
                self._images += 1
                if self._images > _MAX_IMAGES:
                    break
                fits = len(picture) <= _MAX_IMAGE
                self._channel.send("image", media_type=media_type, data=picture if fits else "", size=len(picture))
                break
        if text := data.get("text/plain"):
            self.text(("\n" if self._line_open else "") + str(text) + "\n")

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


class Log:
    """The last that the kernel's process wrote past its own channels: why it died, if anybody said."""

    def __init__(self) -> None:
        self._tail = b""
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        asyncio.get_running_loop().add_reader(self._read_end, self._read)

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._tail = (self._tail + os.read(self._read_end, 65536))[-4000:]

    def text(self) -> str:
        self._read()
        return self._tail.decode("utf-8", "replace")


class Kernel:
    """The kernel process and its client, connected by sockets in a private folder."""

    def __init__(self, folder: Path, log: Log) -> None:
        from jupyter_client.manager import AsyncKernelManager

        self._folder, self._log = folder, log
        self._manager = AsyncKernelManager(
            transport="ipc", ip=str(folder / "k"), connection_file=str(folder / "kernel.json"), shutdown_wait_time=0.5
        )

    async def start(self) -> None:
        import zmq

        # -P: a random.py or json.py in the workspace must not stand in for the library's while the kernel starts.
        command = [sys.executable, "-P", str(Path(__file__).with_name("kernel_app.py")), "-f", "{connection_file}"]
        spec = self._manager.kernel_spec
        assert spec is not None  # a name that is not installed raises instead
        spec.argv = command
        env = {**os.environ, "IPYTHONDIR": str(self._folder / "ipython")}
        streams = {"stdout": self._log.write_end, "stderr": self._log.write_end}
        await self._manager.start_kernel(stdin=asyncio.subprocess.DEVNULL, env=env, **streams)
        self.client = self._manager.client()
        self.client.context.setsockopt(zmq.RCVHWM, 100)  # see kernel_app: what waits here is late after an interrupt
        self.client.start_channels()
        for last in (False, False, True):
            try:
                await self.client.wait_for_ready(timeout=20)
                break
            except RuntimeError:  # also raised before the first heartbeat of a kernel that is well
                if last or not await self.alive():
                    raise

    async def stop(self) -> None:
        with contextlib.suppress(Exception):
            await self._manager.shutdown_kernel(now=True)

    async def alive(self) -> bool:
        return bool(await self._manager.is_alive())

    async def interrupt(self) -> None:
        if await self.alive():
            await self._manager.interrupt_kernel()

    async def exit_code(self) -> int | None:
        provisioner = self._manager.provisioner
        return await provisioner.poll() if provisioner else None

    async def execute(self, code: str, relay: Relay) -> dict[str, Any] | None:
        """Run code to its reply, which is returned; None when the kernel died meanwhile.

        No other request is sent before the reply is there: one that follows an interrupt too early is silently dropped.
        """
        request = self.client.execute(code, allow_stdin=False, stop_on_error=True)
        replying = asyncio.ensure_future(self._reply(request))
        try:
            if not await self._outputs(request, replying, relay):
                return None
            reply = await replying
        finally:
            replying.cancel()
        if reply and reply["status"] != "ok":
            relay.failed(reply)
        return reply

    async def _reply(self, request: str) -> dict[str, Any] | None:
        while True:
            try:
                message = await self.client.get_shell_msg(timeout=_POLL)
            except queue.Empty:
                if not await self.alive():
                    return None
            else:
                if message["parent_header"].get("msg_id") == request:
                    return dict(message["content"])

    async def _outputs(self, request: str, replying: asyncio.Future[Any], relay: Relay) -> bool:
        """Relay all that the request puts out, to its end; whether the kernel lived.

        The reply says for sure that the code has ended, and what was put out before it mostly comes after it: the mark of
        the end is waited for while anything comes, but not for ever, as code can suppress it.
        """
        silent, until = 0, float("inf")
        while silent < _SILENT and time.monotonic() < until:
            if replying.done() and until == float("inf"):
                until = time.monotonic() + _DRAIN
            try:
                message = await self.client.get_iopub_msg(timeout=_POLL)
            except queue.Empty:
                if not await self.alive():
                    return False
                silent = silent + 1 if replying.done() else 0
                continue
            kind, content = message["msg_type"], message["content"]
            if message["parent_header"].get("msg_id") == request:
                silent = 0
                relay.message(kind, content)
                if kind == "status" and content["execution_state"] == "idle":
                    return True
            elif kind == "stream":  # from a thread that earlier code left running
                relay.message(kind, content)
        relay.gap = True
        return True


class Bridge:
    """Takes requests from standard input, one execution at a time, and interrupts at any time."""

    def __init__(self, channel: Channel, kernel: Kernel, log: Log) -> None:
        self._channel, self._kernel, self._log = channel, kernel, log

    async def serve(self, requests: asyncio.StreamReader) -> None:
        """Until the requests end or the kernel does."""
        running: asyncio.Task[bool] | None = None
        reading = asyncio.ensure_future(requests.readline())
        while True:
            await asyncio.wait({reading, running} if running else {reading}, return_when=asyncio.FIRST_COMPLETED)
            if running and running.done():
                if not running.result():
                    return
                running = None
            if reading.done():
                line = reading.result()
                if not line:
                    return
                request = json.loads(line)
                if request["op"] == "interrupt":
                    await self._kernel.interrupt()
                else:
                    running = asyncio.ensure_future(self._execute(request["code"]))
                reading = asyncio.ensure_future(requests.readline())

    async def _execute(self, code: str) -> bool:
        """Whether the kernel lives on."""
        if not await self._kernel.alive():
            self._channel.send("gone", code=await self._kernel.exit_code(), log=self._log.text())
            return False
        relay = Relay(self._channel)
        reply = await self._kernel.execute(code, relay)
        relay.finish()
        if reply is None:
            self._channel.send("died", code=await self._kernel.exit_code(), log=self._log.text())
            return False
        leaving = any(part.get("source") == "ask_exit" for part in reply.get("payload", ()))
        self._channel.send("done", leaving=leaving, gap=relay.gap)
        return not leaving


async def _main(channel: Channel, folder: Path) -> None:
    log, kernel = Log(), None
    try:
        kernel = Kernel(folder, log)
        await kernel.start()
    except Exception as error:  # also that jupyter_client cannot be imported in here
        channel.send("failed", error=f"{type(error).__name__}: {error}", log=log.text())
        if kernel is not None:
            await kernel.stop()
        return
    reader = asyncio.StreamReader(limit=2**30)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    channel.send("ready")
    await Bridge(channel, kernel, log).serve(reader)
    await kernel.stop()


def main() -> None:
    channel = Channel()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    folder = Path(tempfile.mkdtemp(prefix="hw-"))
    try:
        asyncio.run(_main(channel, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
