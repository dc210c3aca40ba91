"""Processes: those of others, those that will not end, and those that want more than there is."""

from __future__ import annotations

from .row import Row, python, shell

_CALL = "python3 -I -c 'import ctypes, os; l = ctypes.CDLL(None, use_errno=True); {} and print(\"LEAK\")'"
_NUMBERS = 'x = {{"x86_64": {x86}, "aarch64": {arm}}}.get(os.uname().machine, 0)'


def _refused(name: str, x86: int, arm: int, arguments: str) -> Row:
    """A system call that must be refused as such (EPERM, or ENOSYS for a call the kernel does not know)."""
    numbers = _NUMBERS.format(x86=x86, arm=arm)
    code = (
        f"import ctypes, os; {numbers}; l = ctypes.CDLL(None, use_errno=True); "
        f'r = l.syscall(x, {arguments}); e = ctypes.get_errno(); x and (r >= 0 or e not in (1, 38)) and print("LEAK", r, e)'
    )
    return shell(f"the system call {name}", f"python3 -I -c '{code}'")


PROCESSES: list[Row] = [
    shell("end a process outside", "kill -9 @VICTIM@ @PID@; kill -TERM -- -@VICTIM@"),
    shell("end a process outside by its number", "kill -9 @VICTIM@"),
    shell("stop a process outside", "kill -STOP @VICTIM@ @PID@; pkill -9 -f @TOKEN@"),
    python("end it by a descriptor", "import os, signal; fd = os.pidfd_open(@VICTIM@); signal.pidfd_send_signal(fd, 9); print('LEAK')"),
    shell("see processes outside", "ls -d /proc/@PID@; grep -qs survivor /proc/@VICTIM@/cmdline && echo LEAK; true"),
    shell("trace a process outside", "gdb -p @VICTIM@ -batch; strace -p @VICTIM@ -o trace & sleep 0.1; kill %1"),
    shell("memory of the first process", "head -c 99 /proc/1/mem && echo LEAK"),
    shell("descriptors of the first process", "ls -l /proc/1/fd | grep -q socket && echo LEAK"),
    shell("the terminal of the user", "(echo LEAK-TTY > /dev/tty) && echo LEAK; read -t 1 x < /dev/tty && echo LEAK; true"),
    _refused("unshare", 272, 97, "0x10000000"),
    _refused("unshare of mounts", 272, 97, "0x00020000"),
    _refused("setns", 308, 268, "0, 0"),
    _refused("clone with a user namespace", 56, 220, "0x10000011, None, None, None, None"),
    _refused("clone3", 435, 435, "None, 0"),
    _refused("ptrace", 101, 117, "0, 0, 0, 0"),
    _refused("process_vm_readv", 310, 270, "1, None, 0, None, 0, 0"),
    _refused("keyctl", 250, 219, "0, -3, 0"),
    _refused("add_key", 248, 217, "None, None, None, 0, -4"),
    _refused("request_key", 249, 218, "None, None, None, 0"),
    _refused("bpf", 321, 280, "0, None, 0"),
    _refused("io_uring_setup", 425, 425, "1, None"),
    _refused("perf_event_open", 298, 241, "None, 0, -1, -1, 0"),
    _refused("userfaultfd", 323, 282, "1"),
    _refused("mount", 165, 40, "None, None, None, 0, None"),
    _refused("fsopen", 430, 430, "None, 0"),
    _refused("open_tree", 428, 428, "-100, None, 1"),
    _refused("pivot_root", 155, 41, "None, None"),
    _refused("open_by_handle_at", 304, 265, "-100, None, 0"),
    _refused("kexec_load", 246, 104, "0, 0, None, 0"),
    _refused("init_module", 175, 105, "None, 0, None"),
    _refused("pidfd_getfd", 438, 438, "0, 0, 0"),
    shell("type into the terminal (TIOCSTI)",
        "python3 -I -c 'import fcntl, pty, os; m, s = pty.openpty(); fcntl.ioctl(s, 0x5412, b\"x\"); print(\"LEAK\")'"),
    shell("a child that left its session", "setsid sh -c 'sleep 300' & disown; echo gone"),
    shell("a double fork that holds the pipe", "(sleep 300 &) ; echo gone"),
    shell("a process that ignores signals",
        "python3 -c 'import signal, time\nfor n in range(1, 65):\n  try: signal.signal(n, signal.SIG_IGN)\n  except OSError: "
        "pass\ntime.sleep(300)' & echo gone"),
    shell("a stopped process", "sleep 300 & kill -STOP $!; echo gone"),
]  # fmt: skip
