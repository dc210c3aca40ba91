"""Our end of the socket to a supervisor: requests with answers, news of jobs, and what happens when the other end dies."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping
from socket import socket
from typing import Any, Protocol, TypeAlias

from handwork.errors import SandboxError
from handwork.sandbox import cgroup, limits
from handwork.sandbox.inside import wire
from handwork.sandbox.sentences import MOST
from handwork.schema import Notify

_UNFILTERED = (
    "The sandbox does not filter system calls here. What runs in it can look for keys in your kernel keyrings (`keyctl show`), "
    "and reaches more of the kernel than it needs"
)

News: TypeAlias = Callable[[dict[str, Any], list[int]], None]
"""What a job does with news of it; the descriptors become its own."""


class Child(Protocol):
    """What the supervisor runs in: a process of ours, or a container elsewhere."""

    def kill(self) -> object: ...

    def wait(self) -> object: ...


class Connection:
    """One running supervisor; `failure` says why it is gone, whoever ended it. `exit_fd` becomes readable when its child has ended."""

    def __init__(self, sock: socket, child: Child, exit_fd: int, errors: int, notify: Notify) -> None:
        self._loop = asyncio.get_running_loop()
        self._sock, self._child, self._exit_fd, self._stderr = sock, child, exit_fd, errors
        self._notify = notify
        self.tell: Callable[[str], None] = lambda text: None
        """Told, in a sentence for the model, when a program was ended at a limit."""
        self.errors = ""
        """What the supervisor, or what should have started it, wrote on its standard error; known when it has ended."""
        self._group: asyncio.Future[cgroup.Group | None] | None = None
        self._ended_for_memory = 0
        self._memory = self._warnings = 0
        self._answers: dict[int, asyncio.Future[tuple[Any, list[int]]]] = {}
        self._jobs: dict[int, tuple[News, Callable[[SandboxError], None]]] = {}
        self._number = 0
        self._unsent: deque[tuple[bytes, list[int]]] = deque()
        self.ready: asyncio.Future[None] = self._loop.create_future()
        self._gone = asyncio.Event()
        self.failure: SandboxError | None = None
        sock.setblocking(False)
        self._loop.add_reader(sock.fileno(), self._readable)

    @property
    def alive(self) -> bool:
        return self.failure is None

    def hold(self, limits: Mapping[str, float], pid: int) -> None:
        """Have the kernel itself hold the process `pid` and all that it starts to these limits, where it does that for us.

        Beside the start, which takes longer: to move the first process, the kernel waits for all its processors.
        """
        self._memory = int(limits["memory"])
        self._group = self._loop.run_in_executor(None, cgroup.make, limits, pid)

    def look(self) -> None:
        """Tell if the kernel ended something since the last look."""
        group = self._group.result() if self._group is not None and self._group.done() else None
        ended = group.ended_for_memory() if group is not None and self.alive else 0
        if ended > self._ended_for_memory:
            self._ended_for_memory = ended
            self._say(limits.told("memory", self._memory))

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def watch_job(self, number: int, news: News, lost: Callable[[SandboxError], None]) -> None:
        """Have news of the job `number` delivered until `forget_job`."""
        self._jobs[number] = (news, lost)

    def forget_job(self, number: int) -> None:
        self._jobs.pop(number, None)

    def send(self, fds: list[int] | None = None, **message: object) -> None:
        """Send a message; the descriptors are ours to close from now on, whatever happens."""
        owned = fds or []
        if self.failure is not None:
            wire.close_all(owned)
            raise self.failure
        try:
            packet = wire.encode(message, owned)
        except BaseException:
            wire.close_all(owned)
            raise
        if packet[1] is not owned:
            owned.clear()  # they went into a longer list: nobody may close them twice
        self._unsent.append(packet)
        if len(self._unsent) == 1:
            self._flush()

    async def request(self, fds: list[int] | None = None, **message: object) -> tuple[Any, list[int]]:
        """Send a request and wait for its answer: a value and descriptors, which the caller owns.

        Raises the OSError that happened inside, or SandboxError when the supervisor dies.
        """
        number = self.next_number()
        answer: asyncio.Future[tuple[Any, list[int]]] = self._loop.create_future()
        self._answers[number] = answer
        try:
            self.send(fds, id=number, **message)
            return await answer
        except asyncio.CancelledError:
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                wire.close_all(answer.result()[1])
            raise
        finally:
            self._answers.pop(number, None)

    async def end(self) -> None:
        """Kill the supervisor with all that it started, and wait until it is gone. Never raises for a dead one."""
        self._lose("it was closed")
        await self._gone.wait()

    # ---- the socket

    def _flush(self) -> None:
        while self._unsent:
            data, fds = self._unsent[0]
            try:
                wire.send_packet(self._sock, data, fds)
            except BlockingIOError:
                self._loop.add_writer(self._sock.fileno(), self._flush)
                return
            except OSError:
                self._lose("its socket broke")
                return
            self._unsent.popleft()
            wire.close_all(fds)
        self._loop.remove_writer(self._sock.fileno())

    def _readable(self) -> None:
        for _ in range(64):
            try:
                received = wire.receive(self._sock)
            except BlockingIOError:
                return
            except (OSError, wire.WireError) as error:
                self._lose(f"its socket broke ({error})")
                return
            if received is None:
                self._lose("its first process ended")
                return
            self._deliver(*received)

    def _deliver(self, message: dict[str, Any], fds: list[int]) -> None:
        # What runs inside may speak in the supervisor's place: nothing here trusts the shape of a message.
        number, job = message.get("id"), message.get("job")
        if message.get("ready") and not self.ready.done():
            self._be_ready()
            if why := message.get("unfiltered"):
                self._notify("warning", f"{_UNFILTERED}: {why}")
        elif isinstance(job, int) and job in self._jobs:
            if text := limits.said(message):
                self._say(text)
            elif message.get("exit") == -signal.SIGKILL:
                self.look()
            self._jobs[job][0](message, fds)
            return
        elif isinstance(number, int) and number in self._answers and not self._answers[number].done():
            answer = self._answers[number]
            if "errno" in message:
                code = message["errno"]
                answer.set_exception(OSError(code if isinstance(code, int) else 5, str(message.get("text"))))
            else:
                answer.set_result((message.get("ok"), fds))
                return
        wire.close_all(fds)

    def _be_ready(self) -> None:
        def ready(group: object = None) -> None:
            if not self.ready.done():
                self.ready.set_result(None)

        if self._group is None:
            ready()
        else:  # so that nothing is started outside of the group
            self._group.add_done_callback(ready)

    def _say(self, text: str) -> None:
        self.tell(text)
        self._warnings += 1
        if self._warnings <= MOST:
            self._notify("warning", text)
        elif self._warnings == MOST + 1:
            self._notify("warning", "More and more programs are ended at a limit; no more of them are told here.")

    # ---- the end

    def _lose(self, why: str) -> None:
        if self.failure is not None:
            return
        self._loop.remove_reader(self._sock.fileno())
        self._loop.remove_writer(self._sock.fileno())
        self._sock.close()  # the sign for the supervisor to end everything
        self.failure = SandboxError(
            f"The sandbox is gone: {why}. What ran in it has ended; the next use starts a new one."
        )
        for _data, fds in self._unsent:
            wire.close_all(fds)
        self._unsent.clear()
        if not self.ready.done():
            self.ready.set_exception(self.failure)
            self.ready.exception()  # asked here, so that nobody has to
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(self.failure)
        for _news, lost in list(self._jobs.values()):
            lost(self.failure)
        self._jobs.clear()
        self._await_end()

    def _await_end(self) -> None:
        def ended() -> None:
            kill.cancel()
            self._loop.remove_reader(self._exit_fd)
            os.close(self._exit_fd)
            self._child.wait()
            self.errors = os.pread(self._stderr, 8192, 0).decode(errors="replace").strip()
            os.close(self._stderr)
            if self._group is None:
                self._gone.set()
            else:
                self._group.add_done_callback(self._leave)

        # The supervisor ends by itself when its socket closes; a stuck one does not get long.
        kill = self._loop.call_later(5.0, self._child.kill)
        self._loop.add_reader(self._exit_fd, ended)

    def _leave(self, made: asyncio.Future[cgroup.Group | None]) -> None:
        """Take the group away with all that is left in it, in a thread: the kernel may need a moment to let go of the dead."""
        group = None if made.cancelled() or made.exception() else made.result()
        if group is None:
            self._gone.set()
        else:
            self._loop.run_in_executor(None, group.end).add_done_callback(lambda _done: self._gone.set())
