"""The docker backend: our supervisor is the first process of a container that sees the workspace and nothing else of ours."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from handwork.config import SandboxSettings
from handwork.sandbox.closed import Rules
from handwork.sandbox.connection import Connection
from handwork.sandbox.guard import Guard
from handwork.sandbox.guarded import GuardedSandbox
from handwork.sandbox.limits import Limits
from handwork.sandbox.remote import mounts
from handwork.sandbox.remote.boot import Boot
from handwork.sandbox.remote.engine import CREATED, SESSION, Engine
from handwork.sandbox.remote.sandbox import HOME, Place, RelayedSandbox
from handwork.sandbox.remote.stream import Stream
from handwork.schema import Notify

BASE = "/run/handwork"
_OUTPUT, _ERRORS = 1, 2
_HEAD = struct.Struct(">BxxxI")
_Result = TypeVar("_Result")


class DockerSandbox(RelayedSandbox, GuardedSandbox):
    """Contained by a container: read-only image, no capability, no network unless `network`. `hide` as for bwrap."""

    name = "docker"

    def __init__(
        self, settings: SandboxSettings, workspace: Path, artifacts: Path, notify: Notify, *, limits: Limits,
        environ: Mapping[str, str], hide: Sequence[Path] = (), rules: Rules | None = None,
        readable: Sequence[Path] = (),
    ) -> None:  # fmt: skip
        image = settings.image
        super().__init__(
            workspace, artifacts, notify, inside=settings.work_dir.rstrip("/"), base=BASE,
            where=f"a container of {image}", limits=limits,
        )  # fmt: skip
        self._image, self._hide, self._environ = image, tuple(hide), environ
        self._readable = tuple(readable)
        self._network = settings.network or settings.network_enabled
        self._writable, self._rules = tuple(settings.writable), rules or Rules()
        self._stop = threading.Event()

    def _give_up(self) -> None:
        self._stop.set()
        super()._give_up()

    async def _open(self, boot: Boot) -> Place:
        engine = await _in_thread(lambda: Engine(self._environ), undo=Engine.close)
        name = f"handwork-{os.urandom(6).hex()}"

        async def free() -> None:
            await _in_thread(lambda: engine.remove(name))
            engine.close()

        try:
            notify = self._from_thread()
            await _in_thread(lambda: engine.have_image(self._image, notify, self._stop))
            settings = self._settings(engine, boot)
            sock = await _in_thread(lambda: engine.run(name, settings), undo=socket.socket.close)
            return Place(await DockerStream.joined(sock), free)
        except BaseException:
            await asyncio.shield(free())
            raise

    def _launch_in(self, guard: Guard) -> Connection:
        return RelayedSandbox._launch(self)

    def _let_be(self) -> None:
        self._let_go()

    def _outside(self, place: Path) -> Path:
        inside = Path(self.workspace)
        return self._workspace / place.relative_to(inside) if place.is_relative_to(inside) else Path("/")

    def _from_thread(self) -> Notify:
        loop = asyncio.get_running_loop()

        def notify(level: str, text: str) -> None:
            loop.call_soon_threadsafe(self._notify, level, text)

        return notify

    def _settings(self, engine: Engine, boot: Boot) -> Mapping[str, object]:
        engine.check_local()
        # Files in the workspace shall belong to the user: in a rootless engine, that is root.
        uid, gid = (0, 0) if engine.rootless else (os.getuid(), os.getgid())
        seen = mounts.Mounts(memory=dict(mounts.private(uid, gid, self._limits.room, HOME, BASE)))
        guard = self._look()
        held = [*([""] if guard.ruled.sealed else []), *guard.held]
        kept = mounts.Kept(held, guard.pinned, guard.sockets, list(guard.ruled.masked))
        mounts.show_workspace(seen, self._workspace, self.workspace, self._hide, kept)
        seen.bind(self._artifacts, self.artifacts, read_only=True)
        for path in self._readable:
            seen.bind(os.path.realpath(path), str(path), read_only=True)
        return {
            "Image": self._image,
            "Entrypoint": list(boot.command),
            "Cmd": [],
            "User": f"{uid}:{gid}",
            "WorkingDir": "/",
            "Hostname": "sandbox",
            "Env": ["PYTHONDONTWRITEBYTECODE=1"],
            "Labels": {SESSION: self._artifacts.name, CREATED: datetime.now(UTC).isoformat(timespec="seconds")},
            # Its standard input ends with our connection, however we end, and then it ends itself.
            "OpenStdin": True, "StdinOnce": True, "AttachStdin": True, "AttachStdout": True, "AttachStderr": True,
            "Tty": False,
            "NetworkDisabled": not self._network,
            "Healthcheck": {"Test": ["NONE"]},
            "HostConfig": self._host(seen),
        }  # fmt: skip

    def _host(self, seen: mounts.Mounts) -> Mapping[str, object]:
        limits = self._limits
        return {
            "Mounts": seen.binds,
            "Tmpfs": seen.memory,
            "ReadonlyRootfs": True,
            "AutoRemove": True,
            "NetworkMode": "default" if self._network else "none",
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges:true"],
            "Memory": limits.memory,
            "MemorySwap": limits.memory,
            "NanoCpus": int(limits.cpus * 1e9) if limits.cpus else 0,
            # Ours (relay, supervisor, a leader for each job) count there, too.
            "PidsLimit": limits.processes + 64,
            "ShmSize": limits.room,
            "IpcMode": "private",
            # What passes between us and the supervisor is no log, and would fill the engine's disk.
            "LogConfig": {"Type": "none"},
            "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
        }


class DockerStream(Stream, asyncio.Protocol):
    """The standard streams of a container, over the connection that the engine gave for it."""

    def __init__(self) -> None:
        super().__init__()
        self._transport: asyncio.Transport | None = None
        self._rest = bytearray()

    @classmethod
    async def joined(cls, sock: socket.socket) -> DockerStream:
        """Take over a connected socket."""
        try:
            return (await asyncio.get_running_loop().create_connection(cls, sock=sock))[1]
        except BaseException:
            sock.close()
            raise

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._rest += data
        start = 0
        while len(self._rest) - start >= _HEAD.size and not self.over:
            kind, size = _HEAD.unpack_from(self._rest, start)
            end = start + _HEAD.size + size
            if len(self._rest) < end:
                break
            piece = bytes(self._rest[start + _HEAD.size : end])
            start = end
            if kind == _OUTPUT:
                self.hear(piece)
            elif kind == _ERRORS:
                self._note(piece)
        del self._rest[:start]

    def pause_writing(self) -> None:
        self.held(True)

    def resume_writing(self) -> None:
        self.held(False)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose()

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self.over:
            self._transport.write(data)

    def pause(self, paused: bool) -> None:
        if self._transport is None or self.over:
            return
        if paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def close(self) -> None:
        self.over = True
        if self._transport is not None:
            self._transport.abort()


async def _in_thread(work: Callable[[], _Result], undo: Callable[[_Result], object] = lambda result: None) -> _Result:
    """Run it to its end also if we are cancelled, and undo it then: what an engine was asked for, it does."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if not running.cancelled() and running.exception() is None:
            undo(running.result())
        raise
