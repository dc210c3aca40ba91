"""Runs inside the sandbox: starts the Python kernel and passes requests to it and its outputs to us."""

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
from pathlib import Path
from typing import Any

from .media import text_of
from .outputs import Outputs
from .relay import Channel, Relay
from .tables import ENVIRONMENT

_POLL = 0.5
"""Seconds between two looks at whether the kernel still lives, which no message ever says."""
_SILENT = 2
"""Looks without any output, after the reply, at which the output has ended without its mark."""
_DRAIN = 10.0
"""Seconds that output may still come after the reply."""
# -P: a random.py or json.py in the workspace must not stand in for the library's while the kernel starts.
_APP = "import sys; sys.path.append(sys.argv.pop(1)); from kernel_inside.app import main; sys.path.pop(); main()"


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
        self._outputs: Outputs | None = None
        self._manager = AsyncKernelManager(
            transport="ipc", ip=str(folder / "k"), connection_file=str(folder / "kernel.json"), shutdown_wait_time=0.5
        )

    async def start(self) -> None:
        import zmq

        command = [sys.executable, "-P", "-c", _APP, str(Path(__file__).parents[1]), "-f", "{connection_file}"]
        spec = self._manager.kernel_spec
        assert spec is not None  # a name that is not installed raises instead
        spec.argv = command
        env = {**os.environ, **ENVIRONMENT, "IPYTHONDIR": str(self._folder / "ipython")}
        streams = {"stdout": self._log.write_end, "stderr": self._log.write_end}
        await self._manager.start_kernel(stdin=asyncio.subprocess.DEVNULL, env=env, **streams)
        self.client = self._manager.client()
        self.client.context.setsockopt(zmq.RCVHWM, 100)  # see app.py: what waits here is late after an interrupt
        self.client.start_channels()
        for last in (False, False, True):
            try:
                await self.client.wait_for_ready(timeout=20)
                break
            except RuntimeError:  # also raised before the first heartbeat of a kernel that is well
                if last or not await self.alive():
                    raise
        self._outputs = Outputs(self.client)

    async def stop(self) -> None:
        if self._outputs:
            await self._outputs.stop()
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
        outputs = self._outputs
        assert outputs is not None  # it was started
        request = self.client.execute(code, allow_stdin=False, stop_on_error=True)
        outputs.begin(request, relay)
        replying = asyncio.ensure_future(self._reply(request))
        try:
            if not await self._to_end(outputs, replying, relay):
                return None
            reply = await replying
        finally:
            replying.cancel()
            outputs.end()
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

    async def _to_end(self, outputs: Outputs, replying: asyncio.Future[Any], relay: Relay) -> bool:
        """Wait until all that the request puts out was relayed; whether the kernel lived.

        The reply says for sure that the code has ended, and what was put out before it mostly comes after it: the mark of
        the end is waited for while anything comes, but not for ever, as code can suppress it.
        """
        silent, until = 0, float("inf")
        while silent < _SILENT and time.monotonic() < until:
            if replying.done() and until == float("inf"):
                until = time.monotonic() + _DRAIN
            heard = outputs.heard
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL):
                    await outputs.ended.wait()
                    return True
            if outputs.heard != heard:
                silent = 0
            elif not await self.alive():
                return False
            else:
                silent = silent + 1 if replying.done() else 0
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
        if reply is None:
            relay.finish()
            self._channel.send("died", code=await self._kernel.exit_code(), log=self._log.text())
            return False
        for part in reply.get("payload", ()):
            if part.get("source") == "page":  # help? and the like
                relay.text(f"{text_of(part['data']).rstrip()}\n")
        relay.finish()
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
