"""The first process of a container or a remote machine: holds the stream to us, starts the supervisor, and ends with either."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from _socket import AF_UNIX, SOCK_SEQPACKET, socket, socketpair
from collections.abc import Callable
from typing import Any

from . import jobs, supervisor
from .frames import Broken, Lines, Plain
from .relay import Relay

_READ = 1 << 18
_HIGH = 1 << 20
"""So much may wait for the stream before nothing more is read for it."""
_LARGEST, _MOST = 1 << 30, 4096
_GRACE = 5.0
"""Seconds in which a supervisor ends all that it started, before it is killed itself."""


class Loop:
    """The few functions of an event loop that the relay needs."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._wanted: dict[int, dict[int, Callable[[], object]]] = {}

    def add_reader(self, fd: int, callback: Callable[..., object], *args: object) -> None:
        self._add(fd, select.POLLIN, lambda: callback(*args))

    def add_writer(self, fd: int, callback: Callable[..., object], *args: object) -> None:
        self._add(fd, select.POLLOUT, lambda: callback(*args))

    def remove_reader(self, fd: int) -> None:
        self._remove(fd, select.POLLIN)

    def remove_writer(self, fd: int) -> None:
        self._remove(fd, select.POLLOUT)

    def turn(self, seconds: float) -> None:
        """Wait for what is watched, at most so long, and call whom it concerns."""
        for fd, events in self._poll.poll(seconds * 1000):
            for event in (select.POLLIN, select.POLLOUT):
                # An error or hang-up is news for both; one callback may have removed the other.
                if events & (event | select.POLLERR | select.POLLHUP | select.POLLNVAL) and (
                    callback := self._wanted.get(fd, {}).get(event)
                ):
                    callback()

    def _add(self, fd: int, event: int, callback: Callable[[], object]) -> None:
        self._wanted.setdefault(fd, {})[event] = callback
        self._poll.register(fd, sum(self._wanted[fd]))

    def _remove(self, fd: int, event: int) -> None:
        wanted = self._wanted.get(fd)
        if wanted is None or wanted.pop(event, None) is None:
            return
        if wanted:
            self._poll.register(fd, sum(wanted))
        else:
            del self._wanted[fd]
            self._poll.unregister(fd)


class Carrier:
    """Moves bytes between the stream's two descriptors and the relay, until one of them ends."""

    def __init__(self, source: int, sink: int, sock: socket, text: bool, silence: float) -> None:
        self._source, self._sink, self._silence = source, sink, silence
        self._code = Lines() if text else Plain()
        self._loop = Loop()
        self._waiting = bytearray()
        self._heard = time.monotonic()
        self.over = False
        self._relay = Relay(
            self._loop,
            sock,
            self._send,
            first=1,
            largest=_LARGEST,
            most=_MOST,
            ended=self.stop,
            crowded=lambda crowded: None,
        )
        os.set_blocking(source, False)
        os.set_blocking(sink, False)
        self._loop.add_reader(source, self._read)

    def run(self) -> None:
        while not self.over:
            self._loop.turn(1.0)
            if self._silence and time.monotonic() - self._heard > self._silence:
                break  # nobody is there any more who could close the stream
        self._relay.end()

    def stop(self) -> None:
        self.over = True

    def flush(self, seconds: float) -> None:
        """Send what still waits, but not for long."""
        end = time.monotonic() + seconds
        while self._waiting and time.monotonic() < end:
            self._loop.turn(0.1)

    def _read(self) -> None:
        try:
            data = os.read(self._source, _READ)
        except BlockingIOError:
            return
        except OSError:  # a terminal that was hung up
            data = b""
        self._heard = time.monotonic()
        if not data:
            self.stop()
            return
        try:
            self._relay.feed(self._code.decode(data))
        except Broken:
            self.stop()

    def _send(self, data: bytes) -> None:
        self._waiting += self._code.encode(data)
        self._write()

    def _write(self) -> None:
        while self._waiting:
            try:
                del self._waiting[: os.write(self._sink, self._waiting[:_READ])]
            except BlockingIOError:
                self._loop.add_writer(self._sink, self._write)
                break
            except OSError:
                self._waiting.clear()
                self.stop()
        else:
            self._loop.remove_writer(self._sink)
        self._relay.hold(len(self._waiting) > _HIGH)


def main(settings: dict[str, Any], *, text: bool, silence: float) -> None:
    """Run the supervisor with these settings until it ends or the stream (standard input and output) does; no process is left."""
    source, sink = _take_stream(text)
    os.makedirs(settings["workspace"], exist_ok=True)
    ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            os.close(source)
            os.close(sink)
            ours.close()
            supervisor.main(theirs.detach(), parent=parent, **settings)
        finally:
            os._exit(0)
    theirs.close()
    jobs.set_undumpable()
    carrier = Carrier(source, sink, ours, text, silence)
    signal.signal(signal.SIGTERM, lambda number, frame: carrier.stop())
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the stream's end says so, too
    carrier.run()
    _await(child)
    carrier.flush(1.0)


def _take_stream(terminal: bool) -> tuple[int, int]:
    """Standard input and output, out of the way of programs, which find nothing in their place."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open("/dev/null", os.O_RDWR)
    # On a terminal, what an error says would come between the lines of the stream.
    for fd in (0, 1, 2) if terminal else (0, 1):
        os.dup2(nothing, fd)
    os.close(nothing)
    return source, sink


def _await(child: int) -> None:
    """Until the supervisor has ended all that it started: its socket is closed by now."""
    end = time.monotonic() + _GRACE
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(child, os.WNOHANG)[0] != child:
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return
            time.sleep(0.005)
