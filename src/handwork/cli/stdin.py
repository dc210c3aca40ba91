"""Standard input beside a task: whether something waits there that nobody will read."""

from __future__ import annotations

import array
import fcntl
import os
import stat
import sys
import termios


def input_waits() -> bool:
    """Whether a pipe, a socket or a file on standard input holds data that is still to be read. Never waits for any."""
    try:
        descriptor = sys.stdin.fileno()
        state = os.fstat(descriptor)
        if stat.S_ISREG(state.st_mode):
            return os.lseek(descriptor, 0, os.SEEK_CUR) < state.st_size
        if not (stat.S_ISFIFO(state.st_mode) or stat.S_ISSOCK(state.st_mode)):
            return False
        ready = array.array("i", [0])
        fcntl.ioctl(descriptor, termios.FIONREAD, ready)
    except (AttributeError, OSError, ValueError):  # there is no standard input, or none that could be asked
        return False
    return ready[0] > 0
