"""The kernel's keyrings hold the user's tickets and passwords and know no namespace: what runs inside is kept from them."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_MODE_FILTER = 2
_JOIN_SESSION_KEYRING = 1

_CALLS = {
    0xC000003E: (248, 249, 250),  # x86_64, and x32 with a bit more
    0x40000003: (286, 287, 288),  # i386
    0xC00000B7: (217, 218, 219),  # aarch64
    0x40000028: (309, 310, 311),  # arm
}
"""The numbers of add_key, request_key and keyctl by the kernel's word for an architecture: one kernel serves two of them."""
_FAMILIES = {"x86_64": (250, 288), "aarch64": (219, 311), "i686": (250, 288), "armv8l": (219, 311)}
"""keyctl's number for a 64-bit and for a 32-bit python, by the machine; the last two are a personality of the first."""

_LOAD, _AND, _EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06  # BPF: ld [k] · and #k · jeq #k, jt, jf · ret #k
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_WITHOUT_X32 = 0xFFFFFFFF & ~0x40000000


def leave(machine: str = "") -> str:
    """Join an empty session keyring, then refuse every use of keys to this process and all that it starts, for good.

    Returns '' or why keys stay within reach of what knows their numbers (unknown `machine`, a kernel without filters).
    """
    machine = machine or os.uname().machine
    if machine not in _FAMILIES:
        return f"the system calls of {machine} are not known"
    libc = ctypes.CDLL(None, use_errno=True)
    # The filter alone would do for programs; the kernel itself also looks for keys, on behalf of whoever asks for a file.
    libc.syscall(_FAMILIES[machine][struct.calcsize("P") == 4], _JOIN_SESSION_KEYRING, None)
    code = program()
    filter = ctypes.create_string_buffer(code, len(code))
    words = struct.pack("@HP", len(code) // 8, ctypes.addressof(filter))  # struct sock_fprog
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, words, 0, 0):
        return f"the kernel takes no filter ({os.strerror(ctypes.get_errno())})"
    return ""


def program() -> bytes:
    """The filter: EPERM for the three calls by every architecture's numbers, everything else goes through."""
    code = [_line(_LOAD, _ARCHITECTURE)]
    for architecture, calls in _CALLS.items():
        block = [_line(_LOAD, _NUMBER), _line(_AND, _WITHOUT_X32)]
        block += [_line(_EQUAL, number, len(calls) - index) for index, number in enumerate(calls)]
        block += [_line(_RETURN, _ALLOW), _line(_RETURN, _REFUSE)]
        code += [_line(_EQUAL, architecture, 0, len(block)), *block]
    return b"".join([*code, _line(_RETURN, _REFUSE)])


def _line(operation: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", operation, then, otherwise, value)
