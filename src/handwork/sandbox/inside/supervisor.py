"""The first process of a sandbox: starts programs, serves files and ends everything when we are gone."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import select
import signal
import time
from _socket import AF_UNIX, SOCK_SEQPACKET, socket

from . import files, filter, forward, jobs, processes, watch, wire

_WATCH = 0.1
"""Seconds between two looks at what the programs use."""
_SWEEP = 0.002


class Supervisor:
    """Serves one socket until it closes; `watch` says when a job uses too much."""

    def __init__(self, sock: socket, served: files.Files, watching: watch.Watch) -> None:
        self.sock, self.files, self.watching = sock, served, watching
        self.jobs: dict[int, jobs.Job] = {}
        self.by_report: dict[int, jobs.Job] = {}
        self.poll = select.poll()
        self.poll.register(sock.fileno(), select.POLLIN)
        self.strays = False
        self.watched = 0.0
        self.pause = _SWEEP
        self.stopping = False

    def run(self) -> None:
        """Until the other end closes or SIGTERM comes."""
        while not self.stopping:
            for fd, _events in self.poll.poll(self._patience()):
                if fd != self.sock.fileno():
                    self._hear(self.by_report[fd])
                elif not self._serve():
                    return
            self._sweep()
            if self.jobs:
                self._watch()

    def tell(self, fds: list[int] | None = None, **message: object) -> None:
        """Send a message; the descriptors are closed afterwards."""
        data, sent = wire.encode(message, fds or [])
        try:
            wire.send_packet(self.sock, data, sent)
        except OSError:
            self.stopping = True  # nobody listens any more
        finally:
            wire.close_all(sent)

    def _patience(self) -> float | None:
        if self.strays or any(job.killing or job.keep for job in self.jobs.values()):
            return self.pause * 1000
        return _WATCH * 1000 if self.jobs else None

    # ---- requests

    def _serve(self) -> bool:
        received = wire.receive(self.sock)
        if received is None:
            return False
        message, fds = received
        number = message.get("id")
        try:
            answer, given = self._answer(message, fds)
        except OSError as error:
            self.tell(id=number, errno=error.errno or 5, text=error.strerror or str(error))
        except (ValueError, LookupError, UnicodeError) as error:
            self.tell(id=number, errno=22, text=str(error))
        else:
            if number is not None and answer is not self:
                self.tell(given, id=number, ok=answer)
        finally:
            wire.close_all(fds)
        return True

    def _answer(self, message: dict[str, object], fds: list[int]) -> tuple[object, list[int]]:
        operation = message["op"]
        if operation in ("spawn", "signal", "kill", "tree", "spent"):
            return self._job_request(str(operation), message, fds)
        if operation == "listen":
            return None, [forward.listening(int(str(message["port"])))]
        path = str(message["path"])
        if operation == "open":
            return None, [self.files.open(path)]
        if operation == "piece":
            return self._piece(path, message)
        expected = str(message["expected"]) if message.get("expected") else ""
        if operation == "write":
            mode = message.get("mode")
            mode = mode if isinstance(mode, int) else None
            self.files.write(path, fds[0], mode, bool(message.get("exclusive")), expected)
            return None, []
        if operation == "remove":
            self.files.remove(path, expected)
            return None, []
        if operation == "list":
            depth, limit = message["depth"], message["limit"]
            assert isinstance(depth, int)
            assert isinstance(limit, int)
            return self.files.entries(path, depth, bool(message["hidden"]), limit), []
        if operation == "stat":
            return self.files.stat(path), []
        if operation == "resolve":
            return self.files.resolve(path), []
        raise ValueError(f"no such operation: {operation}")

    def _piece(self, path: str, message: dict[str, object]) -> tuple[object, list[int]]:
        offset, size = message["offset"], message["size"]
        assert isinstance(offset, int)
        assert isinstance(size, int)
        which, data = self.files.piece(path, offset, size)
        return which, [wire.memory_file(data)]

    def _job_request(self, operation: str, message: dict[str, object], fds: list[int]) -> tuple[object, list[int]]:
        number = message["job"]
        assert isinstance(number, int)
        if operation == "spawn":
            self._spawn(number, message, fds)
            return self, []
        job = self.jobs.get(number)
        if job is None:
            return [] if operation == "tree" else None, []
        if operation == "tree":
            rows = processes.table()
            return [pid for pid in processes.descendants(rows, job.leader) if pid != job.program], []
        if operation == "spent":
            return job.spent(), []
        if operation == "signal":
            wanted = message["number"]
            assert isinstance(wanted, int)
            if job.program and not job.exited:
                processes.send(job.program, wanted)
            return None, []
        keep, answer = message.get("keep"), message.get("id")
        if keep and isinstance(keep, list) and isinstance(answer, int):
            job.keep.append((answer, frozenset(keep)))
        else:
            job.killing = True
        self.pause = _SWEEP
        return self, []

    def _spawn(self, number: int, message: dict[str, object], fds: list[int]) -> None:
        given: list[int] = []
        try:
            if message.get("pty"):
                master, slave = os.openpty()
                given, fds[:] = [master], [slave]
            job = jobs.start(number, jobs.Order(message, fds))
        except (OSError, ValueError, UnicodeError) as error:
            wire.close_all(given)
            self.tell(job=number, errno=getattr(error, "errno", None) or 22, what="start")
            self.tell(job=number, gone=True)
            return
        self.jobs[number] = self.by_report[job.report] = job
        self.poll.register(job.report, select.POLLIN)
        if given:
            self.tell(given, job=number, pty=True)

    # ---- what leaders tell

    def _hear(self, job: jobs.Job) -> None:
        news = job.news()
        if news is not None:
            for message in news:
                self.tell(None, **message)
            return
        self.poll.unregister(job.report)
        del self.by_report[job.report], self.jobs[job.id]
        os.close(job.report)
        _pid, status = os.waitpid(job.leader, 0)
        if status:
            # Something in the job killed its leader: whom the leader held is now ours.
            self.strays = True
        for answer, _keep in job.keep:
            self.tell(id=answer, ok=None)
        self.tell(job=job.id, gone=True, spent=[job.cpu, job.peak])

    # ---- killing

    def _sweep(self) -> None:
        for job in list(self.jobs.values()):
            if job.killing:
                processes.send(job.leader, signal.SIGCONT)
                # When all is killed, to look again and again would only keep the dying from the processor.
                self.pause = min(self.pause * 2, _WATCH) if processes.sweep(job.leader, freeze=job.over) else _SWEEP
            elif job.keep and job.program:
                waiting, job.keep = job.keep, []
                for answer, keep in waiting:
                    if processes.sweep(job.leader, job.program, keep):
                        self.tell(id=answer, ok=None)
                    else:
                        job.keep.append((answer, keep))
        if self.strays:
            self._end_strays()

    def _end_strays(self) -> None:
        leaders = {job.leader for job in self.jobs.values()}
        me = os.getpid()
        mine = [pid for pid, row in processes.table().items() if row.parent == me and pid not in leaders]
        for pid in mine:
            processes.send(pid, signal.SIGSTOP)
            processes.sweep(pid)
            processes.send(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        self.strays = bool(mine)
        self.pause = _SWEEP

    def _watch(self) -> None:
        """Every now and then: keep the leaders awake, and end what uses too much."""
        now = time.monotonic()
        if now - self.watched < _WATCH:
            return
        self.watched = now
        for job in self.jobs.values():
            # A program may stop its own leader, which then would tell nothing any more.
            processes.send(job.leader, signal.SIGCONT)
        for verdict in self.watching.look([job for job in self.jobs.values() if not job.killing]):
            self._carry_out(verdict)

    def _carry_out(self, verdict: watch.Verdict) -> None:
        job = verdict.job
        for pid in verdict.processes:
            processes.send(pid, signal.SIGKILL)
        if not verdict.processes:
            job.killing = job.over = True
            self.pause = _SWEEP
        elif job.ended.issuperset(verdict.processes):
            return  # they take their time to die
        job.ended.update(verdict.processes)
        self.tell(job=job.id, over=verdict.kind, limit=verdict.limit)


def _harden(limits: dict[str, float]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    largest = int(limits["file"]) if hard == resource.RLIM_INFINITY else min(hard, int(limits["file"]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if limits["cpus"]:
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[: math.ceil(limits["cpus"])])
    jobs.adopt_orphans()
    jobs.hurry()
    jobs.bound_processes(int(limits["processes"]) * watch.BOUND)
    # No program inside may trace us or take our socket out of /proc.
    jobs.set_undumpable()


def main(
    descriptor: int,
    workspace: str,
    limits: dict[str, float],
    allowed: dict[str, list[str]],
    parent: int = 0,
    scratch: str = "",
    contained: bool = False,
) -> None:
    """Serve the socket `descriptor`; everything that was started here ends with this function, and `scratch` is removed."""
    os.set_inheritable(descriptor, False)
    sock = socket(AF_UNIX, SOCK_SEQPACKET, 0, descriptor)
    served = files.Files(workspace, allowed["readable"], allowed["writable"], allowed["hidden"])
    supervisor = Supervisor(sock, served, watch.Watch(limits, [workspace, scratch] if scratch else [workspace]))

    def stop(number: int, frame: object) -> None:
        supervisor.stopping = True
        raise InterruptedError

    signal.signal(signal.SIGTERM, stop)
    _harden(limits)
    try:
        if not parent or jobs.die_with(parent):
            supervisor.tell(ready=True, unfiltered=filter.seal() if contained else "")
            supervisor.run()
    except InterruptedError:
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end_all()
        if scratch:
            import shutil  # 10 ms that a start need not pay

            shutil.rmtree(scratch, ignore_errors=True)


def _end_all() -> None:
    if os.getpid() == 1:
        os._exit(0)  # the kernel kills the namespace with its first process
    me = os.getpid()
    while True:
        processes.sweep(me)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)
