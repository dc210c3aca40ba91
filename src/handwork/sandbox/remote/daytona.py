"""The daytona backend: our supervisor on a machine that Daytona gives, over a terminal there; deleted when the session ends."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import math
import os
import shlex
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from handwork.config import DaytonaSettings, SandboxSettings
from handwork.config.extras import missing_extra
from handwork.config.sizes import bytes_of
from handwork.errors import SandboxError, SandboxUnavailable
from handwork.sandbox.closed import Rules
from handwork.sandbox.connection import Connection
from handwork.sandbox.guard import Guard
from handwork.sandbox.limits import Limits
from handwork.sandbox.remote.boot import Boot
from handwork.sandbox.remote.carried import Carried
from handwork.sandbox.remote.engine import CREATED, SESSION
from handwork.sandbox.remote.sandbox import Place, RelayedSandbox
from handwork.sandbox.remote.stream import Stream
from handwork.schema import Notify

BASE = "/tmp/.handwork"
_CREATE_SECONDS, _ANSWER_SECONDS = 600.0, 60.0
_SILENCE = 120.0
"""After so long without us, what runs there ends; the machine is stopped, and so deleted, _STOP_MINUTES later."""
_STOP_MINUTES, _ACTIVE_SECONDS = 15, 300.0
_CPUS, _GIB, _DISK_GIB = 2, 4, 5
_HIGH = 1 << 20
_MESSAGE = 1 << 15
"""Bytes of one message of the web socket: servers refuse large ones."""
_KEY = "daytona_api_key in [daytona], or DAYTONA_API_KEY"


class DaytonaSandbox(RelayedSandbox):
    """A machine of its own: nothing of this one is there but what is sent. No network unless `network`."""

    name = "daytona"
    text = True
    home = ""
    start_limit = 300.0
    """The workspace is sent meanwhile."""
    silence = _SILENCE

    def __init__(
        self, settings: SandboxSettings, daytona: DaytonaSettings, workspace: Path, artifacts: Path, notify: Notify, *,
        limits: Limits, environ: Mapping[str, str], hide: Sequence[Path] = (), carry: bool = True,
        rules: Rules | None = None,
    ) -> None:  # fmt: skip
        """`carry`: whether the workspace is sent there and brought back; else files are there alone."""
        super().__init__(
            workspace, artifacts, notify, inside=settings.work_dir.rstrip("/"), base=BASE,
            where=f"the image {daytona.sandbox_image_name} at Daytona", limits=limits,
        )  # fmt: skip
        self._settings, self._daytona, self._environ = settings, daytona, environ
        self._hide, self._rules = tuple(hide), rules or Rules()
        self._carry, self._unsent = carry, ""
        self._carried: Carried | None = None
        self._key = _key(daytona, environ)

    async def _open(self, boot: Boot) -> Place:
        client = self._client()
        if self._carry:
            self._take_up()
        machine = _Machine(client, f"handwork-{os.urandom(6).hex()}", keep=self._daytona.keep, said=self._said)
        try:
            self._notify("info", f"Making a machine at Daytona from the image {self._daytona.sandbox_image_name}")
            await machine.create(self._wishes())
            return Place(await machine.run(boot), machine.free)
        except BaseException as error:
            await asyncio.shield(machine.free())
            if isinstance(error, Exception) and not isinstance(error, SandboxUnavailable):
                raise SandboxUnavailable(
                    f"Daytona gives no sandbox: {self._said(error)}", hint=self._remedy(error)
                ) from None
            raise

    # ---- the workspace

    async def _connected(self, connection: Connection) -> None:
        await super()._connected(connection)
        if self._carried is not None:
            try:
                await self._carried.send(self)
            except SandboxError as error:
                self._unsent = error.what
                raise

    async def after_call(self) -> Sequence[str]:
        told = await super().after_call()
        return [*told, *await self._bring_back()]

    async def read(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """The session's artifacts are read where they are: here."""
        name = path.removeprefix(f"{self.artifacts}/")
        if name != path and "/" not in name and (data := _part(self._artifacts / name, offset, limit)) is not None:
            return data
        return await super().read(path, offset=offset, limit=limit)

    async def _close(self) -> None:
        for sentence in await self._bring_back():
            self._notify("warning", sentence)
        await super()._close()
        self._put_down()

    async def _bring_back(self) -> list[str]:
        alive = self._connection is not None and self._connection.alive
        if self._carried is None or not alive:
            return []
        try:
            return await self._carried.bring_back(self)
        except SandboxError as error:
            return [f"What was changed in the sandbox could not be brought to the user's folder: {error.what}"]

    def _take_up(self) -> None:
        self._put_down()
        guard = Guard(
            self._workspace, self._artifacts, self._notify, writable=self._settings.writable, holds=False,
            rules=self._rules,
        )  # fmt: skip
        unsent = [self._workspace / path for path in guard.ruled.found.read]  # what may not be read stays here
        self._carried = Carried(self._workspace, guard, [*self._hide, *unsent])
        self._carried.check()

    def _let_be(self) -> None:
        self._put_down()

    def _put_down(self) -> None:
        if self._carried is not None:
            carried, self._carried = self._carried, None
            carried.close()

    # ---- the machine

    def _client(self) -> Any:
        check_daytona(self._daytona, self._environ)
        from daytona import AsyncDaytona, DaytonaConfig

        class Quiet(AsyncDaytona):
            def _init_otel(self, sdk_version: str) -> None:
                """No telemetry, whatever the environment, or a .env file in the folder that we are in, asks for."""

        config = DaytonaConfig(
            api_key=self._key,
            api_url=self._daytona.daytona_server_url.rstrip("/"),
            target=self._daytona.daytona_target or "us",
            use_deprecated_polling=True,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of polling; the other way holds one more connection open for nothing
            return Quiet(config)

    def _wishes(self) -> Any:
        from daytona import CreateSandboxFromImageParams, Resources

        settings, keep = self._settings, self._daytona.keep
        memory = bytes_of(settings.memory_limit) / (1 << 30) if settings.memory_limit else _GIB
        return CreateSandboxFromImageParams(
            image=self._daytona.sandbox_image_name,
            public=False,
            labels={SESSION: self._artifacts.name, CREATED: datetime.now(UTC).isoformat(timespec="seconds")},
            env_vars={"VNC_PASSWORD": self._daytona.VNC_password or base64.b32encode(os.urandom(10)).decode()},
            resources=Resources(cpu=math.ceil(settings.cpu_limit or _CPUS), memory=math.ceil(memory), disk=_DISK_GIB),
            network_block_all=not (settings.network or settings.network_enabled),
            auto_stop_interval=_STOP_MINUTES,
            # If we cannot delete it ourselves, that it stops does.
            auto_delete_interval=-1 if keep else 0,
        )

    def _explain(self, errors: str) -> SandboxError:
        if self._unsent:
            return SandboxUnavailable(self._unsent, hint="try again, or work in a smaller folder")
        # What the shell there says as it leaves is no reason.
        return super()._explain("\n".join(line for line in errors.splitlines() if line.strip() not in ("", "exit")))

    def _said(self, error: BaseException) -> str:
        """The error's words, without the key, wherever it may stand."""
        text = str(error).strip() or type(error).__name__
        return text.replace(self._key, "***") if self._key else text

    def _remedy(self, error: Exception) -> str:
        status = getattr(error, "status_code", None)
        if status in (401, 403):
            return f"is the key right? It is {_KEY}"
        if isinstance(error, TimeoutError) or "timeout" in type(error).__name__.lower():
            return "try again, or name a smaller image with [daytona] sandbox_image_name"
        return f"look at [daytona]: daytona_server_url is {self._daytona.daytona_server_url}"


def check_daytona(daytona: DaytonaSettings, environ: Mapping[str, str]) -> None:
    """Raises ConfigError without the SDK, SandboxUnavailable without a key; nobody is asked whether it is right."""
    if find_spec("daytona") is None:
        raise missing_extra("daytona", "The daytona backend needs the package daytona, which is not installed")
    if not _key(daytona, environ):
        raise SandboxUnavailable("The daytona backend needs a key of Daytona, and none is set", hint=f"set {_KEY}")


def _key(daytona: DaytonaSettings, environ: Mapping[str, str]) -> str:
    return daytona.daytona_api_key or environ.get("DAYTONA_API_KEY", "")


def _failures() -> tuple[type[Exception], ...]:
    """What the SDK, and the network below it, raises."""
    from aiohttp import ClientError
    from daytona import DaytonaError

    return DaytonaError, ClientError, OSError


def _part(file: Path, offset: int, limit: int | None) -> bytes | None:
    """What a file of ours holds there; None if there is none."""
    try:
        data = file.read_bytes()
    except OSError:
        return None
    return data[offset : None if limit is None else offset + limit]


class _Machine:
    """One machine at Daytona, by its name, from before it is asked for until nothing of it is left."""

    def __init__(self, client: Any, name: str, *, keep: bool, said: Any) -> None:
        self._client, self._name, self._keep, self._said = client, name, keep, said
        self._sandbox: Any = None
        self._asked = False
        self._active: asyncio.Task[None] | None = None

    async def create(self, wishes: Any) -> None:
        self._asked = True
        wishes.name = self._name
        self._sandbox = await self._client.create(wishes, timeout=_CREATE_SECONDS)

    async def run(self, boot: Boot) -> TerminalStream:
        """A terminal there, in which the command runs in place of its shell."""
        *python, line, mark = boot.command
        code = f"import base64;exec(base64.b64decode('{base64.b64encode(line.encode()).decode()}'))"
        stream = TerminalStream()
        await stream.connect(self._sandbox.process, self._name)
        stream.write(f"exec {shlex.join([*python, code, mark])}; exit 127\n".encode())
        self._active = asyncio.get_running_loop().create_task(self._stay_active(), name="daytona activity")
        return stream

    async def free(self) -> None:
        """Delete it (a start that broke off may have made it all the same), and end all that we have open."""
        if self._active is not None:
            self._active.cancel()
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                if self._asked:
                    await self._delete()
        except _failures():
            pass  # what cannot be deleted now is deleted when it stops
        finally:
            with contextlib.suppress(*_failures()):
                await self._client.close()

    async def _delete(self) -> None:
        if self._sandbox is None:
            self._sandbox = await self._client.get(self._name)
        if self._keep:
            await self._sandbox.stop()
        else:
            await self._sandbox.delete()

    async def _stay_active(self) -> None:
        # Daytona counts no bytes on a terminal as use, and a program may compute for an hour.
        while True:
            await asyncio.sleep(_ACTIVE_SECONDS)
            with contextlib.suppress(*_failures()):
                await self._sandbox.refresh_activity()


class TerminalStream(Stream):
    """A terminal over Daytona's web socket."""

    def __init__(self) -> None:
        super().__init__()
        self._handle: Any = None
        self._queue: deque[bytes] = deque()
        self._size = 0
        self._more, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._tasks: list[asyncio.Task[None]] = []

    async def connect(self, process: Any, name: str) -> None:
        self._handle = await process.create_pty_session(id=name, on_data=self._data, cwd="/")
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._write()), loop.create_task(self._watch())]

    async def _data(self, data: bytes) -> None:
        await self._room.wait()
        if not self.over:
            self.hear(data)

    async def _watch(self) -> None:
        await self._handle.wait()
        if self._handle.error:
            self._note(str(self._handle.error).encode())
        self._lose()

    async def _write(self) -> None:
        while True:
            await self._more.wait()
            data = b"".join(self._queue)
            self._queue.clear()
            self._more.clear()
            try:
                for start in range(0, len(data), _MESSAGE):
                    await self._handle.send_input(data[start : start + _MESSAGE])
            except _failures():  # what was there to say comes the other way
                self._lose()
                return
            self._size -= len(data)
            self.held(self._size > _HIGH)

    def write(self, data: bytes) -> None:
        if not self.over:
            self._queue.append(data)
            self._size += len(data)
            self._more.set()
            if self._size > _HIGH:
                self.held(True)

    def pause(self, paused: bool) -> None:
        if paused:
            self._room.clear()
        else:
            self._room.set()

    def close(self) -> None:
        self.over = True
        self._room.set()
        for task in self._tasks:
            task.cancel()
        if self._handle is not None:
            self._tasks.append(asyncio.get_running_loop().create_task(self._handle.disconnect()))
