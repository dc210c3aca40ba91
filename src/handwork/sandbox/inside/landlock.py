"""Confine this process, and all that it starts, by Landlock: files by an allow-list, no network, no signals to others."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys

from . import calls

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446  # on every architecture
_ASK_VERSION = 1
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 38, 22, 24
_CAPABILITIES_VERSION = 0x20080522

# linux/landlock.h; each word is what one more version of the interface knows
_EXECUTE, _WRITE, _READ, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_CHAR, _MAKE_DIR, _MAKE_FILE, _MAKE_SOCKET, _MAKE_PIPE, _MAKE_BLOCK, _MAKE_LINK = (
    1 << bit for bit in range(6, 13)
)
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1

_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL_DEVICE
"""Rights that a rule for a single file may give."""
_SEEN = _EXECUTE | _READ | _READ_DIR
_USED = _READ | _WRITE | _TRUNCATE | _IOCTL_DEVICE
_CHANGED = (
    _SEEN
    | _WRITE
    | _TRUNCATE
    | _REMOVE_DIR
    | _REMOVE_FILE
    | _MAKE_DIR
    | _MAKE_FILE
    | _MAKE_SOCKET
    | _MAKE_PIPE
    | _MAKE_LINK
    | _REFER
)

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06  # BPF: ld [k] · jeq #k, jt, jf · ret #k
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _THIRD_ARGUMENT = 0, 4, 16, 32
_X32 = 0x40000000
_AF_UNIX = 1
_ROUTES = 0


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)  # not when this is imported: other systems import it, too


class Refused(Exception):
    """The kernel does not confine us."""


def version() -> int:
    """The version of Landlock's interface that this kernel has; 0 without it, or where it is switched off."""
    if sys.platform != "linux":
        return 0
    return max(0, int(_libc().syscall(_CREATE, None, 0, _ASK_VERSION)))


def confine(seen: list[str], used: list[str], changed: list[str], given: list[int], network: bool) -> None:
    """Confine this process for good. Raises Refused, and then must not go on.

    `seen` may be read and executed, `used` (devices) read and written, `changed` and the folders of the descriptors `given` (which
    are closed) changed in every way. What is not there is passed over.
    """
    known = version()
    if not known:
        raise Refused("this kernel has no Landlock")
    handled = _MAKE_LINK * 2 - 1
    handled |= (_REFER if known >= 2 else 0) | (_TRUNCATE if known >= 3 else 0) | (_IOCTL_DEVICE if known >= 5 else 0)
    tcp = 0 if network else _BIND_TCP | _CONNECT_TCP
    attributes = struct.pack("=QQQ", handled, tcp, _ABSTRACT_SOCKETS | _SIGNALS)
    size = 24 if known >= 6 else 16 if known >= 4 else 8
    ruleset = _libc().syscall(_CREATE, attributes, size, 0)
    _check(ruleset, "make rules")
    for paths, rights in ((seen, _SEEN), (used, _USED), (changed, _CHANGED)):
        for path in paths:
            _allow_path(ruleset, path, rights & handled)
    for fd in given:
        _allow(ruleset, fd, _CHANGED & handled)
        os.close(fd)
    _drop_capabilities()
    _check(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "renounce privileges")
    _check(_libc().syscall(_RESTRICT, ruleset, 0), "apply the rules")
    os.close(ruleset)
    if not network:
        _filter(program())


def _allow_path(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        _allow(ruleset, fd, rights)
    finally:
        os.close(fd)


def _allow(ruleset: int, fd: int, rights: int) -> None:
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        rights &= _OF_FILES
    rule = struct.pack("=Qi", rights, fd)
    _check(_libc().syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0), "add a rule")


def _drop_capabilities() -> None:
    # Root's own files are open to it without them, as an ordinary user's are; the kernel's memory and others' files are not.
    capability = 0
    while _libc().prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    header, nothing = struct.pack("=Ii", _CAPABILITIES_VERSION, 0), bytes(24)
    _check(_libc().capset(header, nothing), "drop capabilities")


def program() -> bytes:
    """A filter of system calls: sockets of the family AF_UNIX, and AF_NETLINK for routes, by every architecture's numbers.

    Libraries end the program (libzmq, and with it the Python kernel) when they may not even ask for the interfaces.
    """
    no_family = _line(_RETURN, _ERROR | errno.EAFNOSUPPORT)
    code = [_line(_LOAD, _ARCHITECTURE)]
    for index, architecture in enumerate(calls.ARCHITECTURES):
        numbers = [number for number in (calls.SOCKET[index], calls.SOCKETPAIR[index]) if number is not None]
        numbers += [number | _X32 for number in numbers] if index == 0 else []
        block = [_line(_LOAD, _NUMBER)]
        if (whole := calls.SOCKETCALL[index]) is not None:
            block += [_line(_EQUAL, whole, 0, 1), no_family]  # its arguments lie in memory, where no filter sees them
        block += [_line(_EQUAL, number, len(numbers) - at) for at, number in enumerate(numbers)]
        block += [_line(_RETURN, _ALLOW), _line(_LOAD, _FIRST_ARGUMENT)]
        block += [_line(_EQUAL, _AF_UNIX, 0, 1), _line(_RETURN, _ALLOW), _line(_EQUAL, calls.NETLINK, 1, 0), no_family]
        block += [_line(_LOAD, _THIRD_ARGUMENT), _line(_EQUAL, _ROUTES, 0, 1), _line(_RETURN, _ALLOW), no_family]
        code += [_line(_EQUAL, architecture, 0, len(block)), *block]
    return b"".join([*code, _line(_RETURN, _ERROR | errno.EPERM)])


def _filter(code: bytes) -> None:
    kept = ctypes.create_string_buffer(code, len(code))
    words = struct.pack("@HP", len(code) // 8, ctypes.addressof(kept))  # struct sock_fprog
    _check(_libc().prctl(_PR_SET_SECCOMP, 2, words, 0, 0), "take a filter, without which it would have network")


def _line(operation: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", operation, then, otherwise, value)


def _check(result: int, what: str) -> None:
    if result < 0:
        raise Refused(f"the kernel does not {what}: {os.strerror(ctypes.get_errno())}")
