"""A stand-in for Daytona on loopback: its HTTP and web socket interfaces as its SDK speaks them, and real processes for machines."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from aiohttp import WSMsgType, web

from tests.support import containers

KEY = "dtn_stand_in_0123456789abcdef"


class Machine:
    """One machine: what was asked for, its state, and the processes of its terminals."""

    def __init__(self, wishes: dict[str, Any], state: str) -> None:
        self.id, self.wishes, self.state = str(uuid.uuid4()), wishes, state
        self.programs: list[subprocess.Popen[bytes]] = []
        self.sockets: list[web.WebSocketResponse] = []
        self._ending = asyncio.Lock()

    @property
    def name(self) -> str:
        return str(self.wishes["name"])

    async def end(self) -> None:
        async with self._ending:  # whoever comes second waits for the end as well
            for program in self.programs:
                await asyncio.to_thread(containers.end, program)
        for socket in self.sockets:
            await socket.close()


class DaytonaServer:
    """`machines` are those that exist, `made` all that ever did. `states` are told one after another before `started`;
    `refuse` answers the making of a machine with a status; `shared` folders are the same in a machine as out here."""

    def __init__(self) -> None:
        self.made: list[Machine] = []
        self.machines: dict[str, Machine] = {}
        self.states: list[str] = []
        self.refuse = 0
        self.mute = asyncio.Event()
        self.mute.set()
        self.making = asyncio.Event()
        self.no_terminal = False
        self.shell = ["bash", "--norc", "-i"]
        self.shared: list[Path] = []
        self.asked: list[str] = []
        self.url = ""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[DaytonaServer]:
        app = web.Application(middlewares=[self._note])
        app.router.add_post("/api/sandbox", self._make)
        app.router.add_get("/api/sandbox/{name}", self._look)
        app.router.add_delete("/api/sandbox/{name}", self._delete)
        app.router.add_post("/api/sandbox/{name}/stop", self._stop)
        app.router.add_post("/api/sandbox/{name}/last-activity", self._touch)
        app.router.add_get("/toolbox/{name}/process/pty/create-connect", self._terminal)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        assert site._server is not None
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            self.mute.set()
            for machine in list(self.machines.values()):
                await machine.end()
            await runner.cleanup()

    @web.middleware
    async def _note(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path}")
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return web.json_response({"message": "Invalid credentials", "statusCode": 401}, status=401)
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _make(self, request: web.Request) -> web.Response:
        wishes = await request.json()
        if self.refuse:
            return web.json_response({"message": f"refused for {KEY}", "statusCode": self.refuse}, status=self.refuse)
        machine = Machine(wishes, self.states[0] if self.states else "started")
        self.made.append(machine)
        self.machines[machine.id] = machine
        self.making.set()
        await self.mute.wait()
        return web.json_response(self._said(machine))

    def _found(self, request: web.Request) -> Machine:
        name = request.match_info["name"]
        found = next((each for each in self.machines.values() if name in (each.id, each.name)), None)
        if found is None:
            raise web.HTTPNotFound(text=json.dumps({"message": "Sandbox not found"}), content_type="application/json")
        return found

    async def _look(self, request: web.Request) -> web.Response:
        machine = self._found(request)
        if self.states:
            machine.state = self.states.pop(0)
        elif machine.state != "error":
            machine.state = "started"
        return web.json_response(self._said(machine))

    async def _delete(self, request: web.Request) -> web.Response:
        machine = self._found(request)
        del self.machines[machine.id]
        machine.state = "destroyed"
        await machine.end()
        return web.json_response(self._said(machine))

    async def _stop(self, request: web.Request) -> web.Response:
        machine = self._found(request)
        machine.state = "stopped"
        self.states = ["stopped"]
        await machine.end()
        return web.json_response(self._said(machine))

    async def _touch(self, request: web.Request) -> web.Response:
        self._found(request)
        return web.Response()

    async def _terminal(self, request: web.Request) -> web.StreamResponse:
        machine = self._found(request)
        if self.no_terminal:
            return web.json_response({"message": "no terminal"}, status=500)
        socket = web.WebSocketResponse(protocols=["X-Daytona-Pty-Exit-Control"])
        await socket.prepare(request)
        machine.sockets.append(socket)
        ours, theirs = os.openpty()
        machine.programs.append(self._start(machine, theirs))
        os.close(theirs)
        await socket.send_str(json.dumps({"type": "control", "status": "connected"}))
        with os.fdopen(ours, "rb+", buffering=0) as master:
            reading = asyncio.create_task(_carry_out(master.fileno(), socket))
            async for message in socket:
                if message.type in (WSMsgType.BINARY, WSMsgType.TEXT):
                    data = message.data if isinstance(message.data, bytes) else message.data.encode()
                    await asyncio.to_thread(_write, master.fileno(), data)
            await machine.end()
            await reading
        return socket

    def _start(self, machine: Machine, terminal: int) -> subprocess.Popen[bytes]:
        memory = dict.fromkeys(("/tmp", "/root", "/workspace"), "rw,mode=1777")
        mounts = [{"Source": str(path), "Target": str(path), "ReadOnly": False} for path in self.shared]
        config = {
            "Entrypoint": self.shell,
            "Cmd": [],
            "WorkingDir": "/",
            "Hostname": "machine",
            "Env": [
                "HOME=/root",
                "PS1=machine$ ",
                *(f"{name}={value}" for name, value in machine.wishes["env"].items()),
            ],
            "HostConfig": {"NetworkMode": "none", "Tmpfs": memory, "Mounts": mounts},
        }
        return containers.start(config, stdin=terminal, stdout=terminal, stderr=terminal)

    def _said(self, machine: Machine) -> dict[str, Any]:
        wishes = machine.wishes
        return {
            "id": machine.id, "organizationId": "org", "name": machine.name, "user": "root", "env": wishes["env"],
            "labels": wishes["labels"], "public": wishes["public"], "networkBlockAll": wishes["networkBlockAll"],
            "kvm": False, "target": "us", "cpu": wishes["cpu"], "gpu": 0, "memory": wishes["memory"], "disk": wishes["disk"],
            "state": machine.state, "errorReason": "out of machines" if machine.state == "error" else None,
            "toolboxProxyUrl": f"{self.url}/toolbox",
        }  # fmt: skip


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    with contextlib.suppress(OSError):
        while view:
            view = view[os.write(fd, view) :]


async def _carry_out(fd: int, socket: web.WebSocketResponse) -> None:
    with contextlib.suppress(OSError, ConnectionError):
        while data := await asyncio.to_thread(os.read, fd, 4096):
            await socket.send_bytes(data)
    await socket.close(message=b'{"exitCode": 0}')
