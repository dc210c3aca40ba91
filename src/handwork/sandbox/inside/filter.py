"""The filter of system calls that holds what runs inside, for good: written as the kernel's own small programs (BPF)."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from . import calls

_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_MODE_FILTER = 2
_JOIN_SESSION_KEYRING = 1

_KEYCTL = {"x86_64": (250, 288), "aarch64": (219, 311), "i686": (250, 288), "armv8l": (219, 311)}
"""keyctl's number for a 64-bit and for a 32-bit python, by the machine; the last two are a personality of the first."""

_LOAD, _JUMP, _EQUAL, _FROM, _ANY, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
"""BPF: ld [k] · ja k · jeq, jge and jset #k, jt, jf · ret #k."""
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_X32 = 0x40000000

_REFUSE = _ERROR | errno.EPERM
_UNKNOWN = _ERROR | errno.ENOSYS
_NO_FAMILY = _ERROR | errno.EAFNOSUPPORT


def seal(machine: str = "") -> str:
    """Join an empty session keyring, then hold this process and all that it starts to the filter.

    The kernel keeps tickets and passwords of the user in keyrings, and looks for them on behalf of whoever asks for a file.
    Returns '' or why nothing is held (unknown `machine`, a kernel without filters).
    """
    machine = machine or os.uname().machine
    if machine not in _KEYCTL:
        return f"the system calls of {machine} are not known"
    narrow = struct.calcsize("P") == 4
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(_KEYCTL[machine][narrow], _JOIN_SESSION_KEYRING, None)
    code = program(narrow)
    filter = ctypes.create_string_buffer(code, len(code))
    words = struct.pack("@HP", len(code) // 8, ctypes.addressof(filter))  # struct sock_fprog
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, words, 0, 0):
        return f"the kernel takes no filter ({os.strerror(ctypes.get_errno())})"
    return ""


def program(narrow: bool = False) -> bytes:
    """The filter. `narrow`: our own programs are of 32 bits, so i386's way to make sockets has to stay open.

    EPERM for what is refused; ENOSYS for clone3, whose flags lie in memory where no filter sees them: the C library then falls
    back to clone. Every call of an architecture that is in no table is refused.
    """
    code = _line(_LOAD, _ARCHITECTURE)
    for index, architecture in enumerate(calls.ARCHITECTURES):
        block = _line(_LOAD, _NUMBER) + _of(index, narrow) + _line(_RETURN, _ALLOW)
        code += _line(_EQUAL, architecture, 1, 0) + _line(_JUMP, len(block) // 8) + block
    return code + _line(_RETURN, _REFUSE)


def _of(index: int, narrow: bool) -> bytes:
    # x32 has numbers of its own, and no program here is of it.
    code = _line(_FROM, _X32, 0, 1) + _line(_RETURN, _UNKNOWN) if index == 0 else b""
    for numbers in calls.REFUSED.values():
        code += _when(numbers[index], _line(_RETURN, _REFUSE))
    code += _when(calls.CLONE3[index], _line(_RETURN, _UNKNOWN))
    code += _when(calls.CLONE[index], _no_bits(0, calls.NEW_NAMESPACES))
    code += _when(calls.UNSHARE[index], _no_bits(0, calls.NEW_NAMESPACES | calls.NEW_TIME))
    code += _when(calls.IOCTL[index], _none_of(1, calls.TYPING))
    code += _when(calls.PERSONALITY[index], _one_of(0, calls.PERSONALITIES) + _line(_RETURN, _REFUSE))
    code += _when(calls.SOCKET[index], _family()) + _when(calls.SOCKETPAIR[index], _family())
    if not narrow:
        # socketcall, whose arguments lie in memory: 1 makes a socket, 8 a pair.
        code += _when(calls.SOCKETCALL[index], _none_of(0, (1, 8)))
    return code


def _when(number: int | None, then: bytes) -> bytes:
    """`then`, which ends in a verdict, for the call of this number."""
    return b"" if number is None else _line(_EQUAL, number, 0, len(then) // 8) + then


def _argument(index: int) -> bytes:
    # The lower half: the kernel itself takes no more of each argument that is looked at here. A rule for all 64 bits would let
    # pass what has something in the upper half.
    return _line(_LOAD, _ARGUMENTS + 8 * index)


def _no_bits(argument: int, mask: int) -> bytes:
    return _argument(argument) + _line(_ANY, mask, 0, 1) + _line(_RETURN, _REFUSE) + _line(_RETURN, _ALLOW)


def _none_of(argument: int, values: tuple[int, ...]) -> bytes:
    tests = [_line(_EQUAL, value, 0, 1) + _line(_RETURN, _REFUSE) for value in values]
    return _argument(argument) + b"".join(tests) + _line(_RETURN, _ALLOW)


def _one_of(argument: int, values: tuple[int, ...]) -> bytes:
    tests = [_line(_EQUAL, value, 0, 1) + _line(_RETURN, _ALLOW) for value in values]
    return _argument(argument) + b"".join(tests)


def _family() -> bytes:
    routes = _one_of(2, (0,))
    netlink = _line(_EQUAL, calls.NETLINK, 0, len(routes) // 8) + routes
    return _one_of(0, calls.FAMILIES) + netlink + _line(_RETURN, _NO_FAMILY)


def _line(operation: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", operation, then, otherwise, value)
