"""A job: one program and all that it starts, held together by a leader that adopts its orphans."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import signal
import time

from . import processes, wire

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_HASTE = 5
_ordinary = os.getpriority(os.PRIO_PROCESS, 0)
_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Orphans below this process become its children instead of those of the first process of all."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def set_undumpable() -> None:
    """No other process of the same user may trace this one or read its memory, environment or descriptors."""
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def hurry() -> None:
    """Go before the programs where that is allowed (to root): among thousands of equals nobody could end a fork bomb."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _ordinary - _HASTE)
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def bound_processes(limit: int) -> None:
    """A last bound that the kernel holds for all but root, far above our own: it counts threads, and the user's others, too."""
    with open("/proc/loadavg", "rb", buffering=0) as load:
        now = int(load.read(200).split()[3].split(b"/")[1])
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    bound = now + limit
    if hard == resource.RLIM_INFINITY or bound < hard:
        resource.setrlimit(resource.RLIMIT_NPROC, (bound, bound))


def die_with(parent: int) -> bool:
    """Have SIGTERM sent when the parent dies; False if it is dead already."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    return os.getppid() == parent


class Job:
    """What the supervisor knows of a job; `report` is the pipe on which the leader tells of it."""

    __slots__ = (
        "cpu",
        "ended",
        "exited",
        "id",
        "keep",
        "killing",
        "leader",
        "over",
        "peak",
        "program",
        "report",
        "rest",
    )

    def __init__(self, number: int, leader: int, report: int) -> None:
        self.id, self.leader, self.report = number, leader, report
        self.program = 0
        self.exited = False
        self.killing = self.over = False
        self.keep: list[tuple[int, frozenset[int]]] = []
        self.ended: set[int] = set()
        """Processes that had to end for what they used; the job itself goes on."""
        self.cpu, self.peak = 0.0, 0
        """The processor time of its dead in seconds, and the largest memory of one of its processes in bytes."""
        self.rest = b""

    def spent(self) -> list[float]:
        """Processor time and peak memory until now, with the living."""
        waited = processes.times(self.leader)[1]
        for pid in processes.below(self.leader):
            waited += sum(processes.times(pid))
            self.peak = max(self.peak, processes.status(pid).get(b"VmHWM", 0))
        # What the leader told of the dead is exact, what /proc tells is rounded to its ticks.
        return [max(waited, self.cpu), self.peak]

    def news(self) -> list[dict[str, object]] | None:
        """What the leader reported since the last time, as messages; None when the leader has ended."""
        data = os.read(self.report, 4096)
        if not data:
            return None
        *lines, self.rest = (self.rest + data).split(b"\n")
        news = (self._read(line[:1], line[1:].split(b" ")) for line in lines)
        return [message for message in news if message]

    def _read(self, kind: bytes, words: list[bytes]) -> dict[str, object]:
        if kind in (b"x", b"s"):
            self.cpu, self.peak = int(words[-2]) / 1e6, max(self.peak, int(words[-1]) << 10)
        if kind == b"p":
            self.program = int(words[0])
            return {"job": self.id, "pid": self.program}
        if kind == b"f":
            return {"job": self.id, "errno": int(words[0]), "what": words[1].decode()}
        if kind == b"s":
            return {}
        self.exited = True
        gone = words[1] == b"1"
        return {"job": self.id, "exit": int(words[0]), "gone": gone, "spent": [self.cpu, self.peak]}


class Order:
    """What to start, with the descriptors that become its standard streams; `errors` None merges it into the output."""

    __slots__ = ("argv", "cwd", "env", "errors", "output", "stdin", "terminal")

    def __init__(self, request: dict[str, object], fds: list[int]) -> None:
        argv, env = request["argv"], request["env"]
        assert isinstance(argv, list)
        assert isinstance(env, dict)
        self.argv = [os.fsencode(word) for word in argv]
        self.env = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
        self.cwd = str(request["cwd"])
        self.terminal = bool(request.get("pty"))
        self.stdin: int | None = fds[0] if request.get("stdin") or self.terminal else None
        self.output = fds[0] if self.terminal else fds[1 if request.get("stdin") else 0]
        self.errors = fds[-1] if request.get("stderr") else self.output


def start(number: int, order: Order) -> Job:
    """Fork the leader, which forks the program."""
    report, theirs = os.pipe()
    supervisor = os.getpid()
    try:
        leader = os.fork()
    except OSError:
        wire.close_all([report, theirs])
        raise
    if leader == 0:
        try:
            _lead(supervisor, theirs, order)
        finally:
            os._exit(70)
    os.close(theirs)
    return Job(number, leader, report)


def _lead(supervisor: int, report: int, order: Order) -> None:
    signal.signal(signal.SIGTERM, _end)
    adopt_orphans()
    if not die_with(supervisor):
        os._exit(1)
    _step_back()
    try:
        program = _start_program(order)
    except _Failed as failure:
        os.write(report, b"f%d %s\n" % (failure.number, failure.what))
        os._exit(0)
    # Its ends of the pipes must close with the program, so this process may not hold them.
    os.closerange(0, report)
    os.closerange(report + 1, 1 << 20)
    hurry()  # the dead of a fork bomb wait for this process
    os.chdir("/")
    os.write(report, b"p%d\n" % program)
    tally = _Tally()
    while True:
        try:
            pid, status = tally.wait(0)
        except ChildProcessError:
            os.write(report, b"s%d %d\n" % tally.so_far())
            os._exit(0)
        if pid == program:
            code = os.waitstatus_to_exitcode(status)
            gone = tally.reap()
            os.write(report, b"x%d %d %d %d\n" % (code, gone, *tally.so_far()))


class _Tally:
    """Collects the dead of a leader and what they used, each with all that it waited for itself."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self.peak = 0

    def wait(self, options: int) -> tuple[int, int]:
        pid, status, used = os.wait4(-1, options)
        self.cpu += used.ru_utime + used.ru_stime
        self.peak = max(self.peak, used.ru_maxrss)
        return pid, status

    def reap(self) -> bool:
        """Collect all the dead; True if no child is left."""
        try:
            while self.wait(os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        return False

    def so_far(self) -> tuple[int, int]:
        """Microseconds of processor time, and the largest resident memory in kB."""
        return int(self.cpu * 1e6), self.peak


def _end(number: int, frame: object) -> None:
    # The supervisor died: nothing of this job may survive it.
    tally = _Tally()
    while not tally.reap():
        processes.sweep(os.getpid())
        time.sleep(0.001)
    os._exit(0)


class _Failed(Exception):
    """The program did not start: the error's number, and whether the folder or the program is to blame."""

    def __init__(self, error: Exception, what: bytes) -> None:
        self.number = error.errno if isinstance(error, OSError) and error.errno else errno.EINVAL
        self.what = what


def _start_program(order: Order) -> int:
    # posix_spawn, because it does not copy our memory: that is half of the time of an exec.
    try:
        os.chdir(order.cwd)
    except (OSError, ValueError) as error:
        raise _Failed(error, b"cwd") from error
    try:
        return os.posix_spawn(
            _find(order.argv[0], order.env.get(b"PATH", b"/usr/bin:/bin")),
            order.argv,
            order.env,
            file_actions=_streams(order),
            setsid=True,
            setsigmask=[],
            # Whoever started us in the background, or with nohup, had some of them ignored.
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP],
        )
    except (OSError, ValueError) as error:
        raise _Failed(error, b"argv") from error


def _find(name: bytes, path: bytes) -> bytes:
    if b"/" in name:
        return name
    refused = False
    for folder in path.split(b":"):
        full = os.path.join(folder or b".", name)
        if os.path.isfile(full):
            if os.access(full, os.X_OK):
                return full
            refused = True
    raise OSError(errno.EACCES if refused else errno.ENOENT, "")


def _streams(order: Order) -> list[tuple[int, int, int] | tuple[int, int, bytes | str, int, int]]:
    if order.terminal:
        # The first terminal that a new session opens becomes its controlling one.
        name = os.ttyname(order.output)
        return [(os.POSIX_SPAWN_OPEN, 0, name, os.O_RDWR, 0), *((os.POSIX_SPAWN_DUP2, 0, fd) for fd in (1, 2))]
    # Out of the way of 0, 1, 2 first, so that nothing overwrites a source.
    output, errors = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (order.output, order.errors))
    streams: list[tuple[int, int, int] | tuple[int, int, bytes | str, int, int]]
    if order.stdin is None:
        streams = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
    else:
        streams = [(os.POSIX_SPAWN_DUP2, fcntl.fcntl(order.stdin, fcntl.F_DUPFD_CLOEXEC, 10), 0)]
    return [*streams, (os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, errors, 2)]


def _step_back() -> None:
    # When memory runs out, the kernel should take the model's program, not us; nor may it have our priority.
    with contextlib.suppress(OSError):
        os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC), b"500")
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _ordinary)
