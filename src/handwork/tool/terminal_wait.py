"""Does a program wait for what is typed into its terminal? Seen from what it sleeps in, not guessed from silence."""

from __future__ import annotations

from handwork.errors import SandboxError
from handwork.sandbox.base import Sandbox

_READING = ("wait_woken", "n_tty_read", "read_chan")
_POLLING = (
    "poll_schedule_timeout",
    "do_poll",
    "do_select",
    "do_sys_poll",
    "do_epoll_wait",
    "ep_poll",
    "core_sys_select",
)
_LIMIT = 5.0
# For each process in the terminal's foreground: its state, the kernel's function it sleeps in, whether the descriptor that
# it is at is the terminal, and whether the terminal is in line mode (else it hands over each key).
_LOOK = r"""
stat_of() { local line; read -r line < "/proc/$1/stat" || return; printf -v stat %s "${line##*) }"; }
stat_of "$1" || exit
set -- "$1" $stat
tty=$6 front=$7 mode=lines
[[ $(stty -a < "/proc/$1/fd/0") == *-icanon* ]] && mode=keys
for folder in /proc/[0-9]*; do
  stat_of "${folder#/proc/}" && set -- "$1" $stat && [[ $4 == "$front" && $6 == "$tty" ]] || continue
  sleeps= call=
  read -r sleeps < "$folder/wchan"
  read -r number call rest < "$folder/syscall"
  terminal=other
  [[ -z $call ]] && terminal=unknown
  at=$folder/fd/$((call))
  [[ $call == 0x* && -e $at ]] && [[ $at -ef /dev/tty || $at -ef "/proc/$1/fd/0" ]] && terminal=terminal
  printf '%s %s %s %s\n' "$2" "${sleeps:-0}" "$terminal" "$mode"
done
"""


async def waits_for_input(sandbox: Sandbox, pid: int) -> bool:
    """Whether a program in the foreground of the terminal of `pid` is asleep until something is typed.

    False also where the system does not tell (/proc/PID/wchan may be closed).
    """
    try:
        found = await sandbox.exec(["bash", "-c", _LOOK, "bash", str(pid)], timeout=_LIMIT, max_output=65_536)
    except (OSError, SandboxError):
        return False
    return any(_waits(line.split()) for line in found.output.decode("ascii", "replace").splitlines())


def _waits(words: list[str]) -> bool:
    if len(words) != 4 or words[0] != "S":
        return False
    _state, sleeps, descriptor, mode = words
    if sleeps.startswith(_READING):
        return descriptor in ("terminal", "unknown")
    # Whoever takes single keys from a terminal and sleeps in a poll has it among what is polled.
    return mode == "keys" and sleeps.startswith(_POLLING)
