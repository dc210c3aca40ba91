"""Sync functions off the event loop: a small pool of daemon threads that is reused and never holds up the program's exit."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from handwork.errors import ToolError

T = TypeVar("T")
_FEW = 50_000
_Abandoned = Callable[[], None]


class _Job:
    """One call: `state` goes waiting → running → done, or to abandoned from either of the first two."""

    __slots__ = ("context", "function", "future", "loop", "state")

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.context = contextvars.copy_context()
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.state = "waiting"


class ThreadPool:
    """At most `limit` daemon threads that run jobs; a thread is started only when none is free.

    A job whose caller was cancelled cannot be stopped: its thread is left to end by itself and no longer counts, so hung
    tools never use the pool up.
    """

    def __init__(self, limit: int = 32) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._queue: SimpleQueue[_Job] = SimpleQueue()
        self._threads = 0
        self._free = 0  # waiting threads less the jobs meant for them; below zero: jobs that wait for a thread

    async def run(self, function: Callable[[], T], abandoned: _Abandoned | None = None) -> T:
        """Call the function in a thread, with the caller's context variables.

        When the caller is cancelled while the function runs, `abandoned` is called and the function goes on unheard; one
        that has not begun never does. SystemExit and the like become a ToolError: a tool must not end the program.
        """
        job = _Job(function)
        self._submit(job)
        try:
            result: T = await job.future
        except asyncio.CancelledError:
            if self._abandon(job) and abandoned is not None:
                abandoned()
            raise
        return result

    def _submit(self, job: _Job) -> None:
        with self._lock:
            if self._pid != os.getpid():  # after a fork the threads are gone
                self._forget()
            if self._free > 0 or not self._grow():
                self._free -= 1
            self._queue.put(job)

    def _grow(self) -> bool:
        """Start a thread that is meant for one job of the queue, if there may be one more."""
        if self._threads >= self.limit:
            return False
        thread = threading.Thread(target=self._work, args=(self._queue,), name="handwork-tool", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system has no thread left: wait for one of ours
            if not self._threads:
                raise
            return False
        self._threads += 1
        return True

    def _abandon(self, job: _Job) -> bool:
        """Whether the job was running, so that its thread is left behind."""
        with self._lock:
            before, job.state = job.state, "abandoned"
            if before != "running":
                return False
            self._threads -= 1
            if self._free < 0 and self._grow():
                self._free += 1
        return True

    def _work(self, queue: SimpleQueue[_Job]) -> None:
        while True:
            job = queue.get()
            with self._lock:
                begins = job.state == "waiting"
                if begins:
                    job.state = "running"
            result, error = _perform(job) if begins else (None, None)
            with self._lock:
                if begins and job.state == "abandoned":
                    return
                job.state = "done"
                self._free += 1  # before the caller hears of it, so that its next call finds this thread free
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                job.loop.call_soon_threadsafe(_settle, job.future, result, error)
            del job, result, error


def _perform(job: _Job) -> tuple[Any, Exception | None]:
    try:
        return job.context.run(job.function), None
    except StopIteration as raised:  # which a future cannot carry
        return None, RuntimeError(f"StopIteration: {raised}")
    except Exception as raised:
        return None, raised
    except BaseException as raised:  # SystemExit from exit(), CancelledError and their like must not reach the loop
        error = ToolError(f"the tool raised {type(raised).__name__}({raised})")
        error.__cause__ = raised
        return None, error


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


_pool = ThreadPool()


async def run_in_thread(function: Callable[..., T], *args: Any, abandoned: _Abandoned | None = None) -> T:
    """Call a sync function in the process's pool of tool threads.

    The pool is the one object that agents share: threads hold nothing of a call, a pool per agent would multiply idle
    threads, and a thread per call costs several times as much. It starts its first thread at the first call.

    Args:
        function: what to call; `args` are passed on.
        abandoned: called if the caller is cancelled while the function runs; the function cannot be stopped and goes on.
    """
    return await _pool.run(lambda: function(*args), abandoned)


async def off_loop(work: Callable[[], T], size: int) -> T:
    """Do work on so many bytes: right here if they are few, as a thread costs more then, else in a thread."""
    return work() if size < _FEW else await run_in_thread(work)
