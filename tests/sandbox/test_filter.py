"""The filter of system calls: run on paper for every architecture that it knows, and in the sandbox call by call."""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
import subprocess
from collections.abc import Iterator

import pytest

from handwork.sandbox.client import SupervisedSandbox
from handwork.sandbox.connection import Connection
from handwork.sandbox.inside import calls, filter, wire

_ALLOW, _REFUSE, _UNKNOWN, _NO_FAMILY = 0x7FFF0000, 0x50000 | 1, 0x50000 | errno.ENOSYS, 0x50000 | errno.EAFNOSUPPORT
_ARCHITECTURES = {"x86_64": 0, "i386": 1, "aarch64": 2, "arm": 3}
_FAR = 1 << 32
"""A bit of the upper half, which the kernel does not look at."""


def _verdict(number: int, architecture: int, *arguments: int, narrow: bool = False) -> int:
    """What the kernel's machine makes of a call; every jump must land in the program."""
    lines = list(struct.iter_unpack("=HBBI", filter.program(narrow)))
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *[*arguments, *[0] * 6][:6])
    register = at = 0
    while True:
        operation, then, otherwise, value = lines[at]
        at += 1
        if operation == 0x20:
            register = int.from_bytes(data[value : value + 4], "little")
        elif operation == 0x05:
            at += value
        elif operation == 0x06:
            return int(value)
        else:
            holds = {0x15: register == value, 0x35: register >= value, 0x45: bool(register & value)}
            at += then if holds[operation] else otherwise


def _call(table: tuple[int | None, ...], index: int, *arguments: int) -> int:
    number = table[index]
    assert number is not None
    return _verdict(number, calls.ARCHITECTURES[index], *arguments)


@pytest.fixture(params=_ARCHITECTURES)
def index(request: pytest.FixtureRequest) -> int:
    return _ARCHITECTURES[request.param]


def test_every_call_of_the_table_is_refused_and_no_other_is(index: int) -> None:
    architecture = calls.ARCHITECTURES[index]
    refused = {numbers[index] for numbers in calls.REFUSED.values()} - {None}
    assert len(refused) > 40
    lines = {number for number in range(600) if _verdict(number, architecture) == _REFUSE}
    assert lines == refused
    left = {number for number in range(600) if _verdict(number, architecture) != _ALLOW} - refused
    assert left == {calls.CLONE3[index], calls.SOCKET[index], calls.SOCKETPAIR[index]}  # a family 0 is none


def test_no_number_stands_for_two_calls(index: int) -> None:
    tables = [*calls.REFUSED.values(), calls.CLONE, calls.CLONE3, calls.UNSHARE, calls.IOCTL, calls.PERSONALITY]
    numbers = [
        table[index]
        for table in [*tables, calls.SOCKET, calls.SOCKETPAIR, calls.SOCKETCALL]
        if table[index] is not None
    ]
    assert len(numbers) == len(set(numbers))


def test_the_program_is_one_that_the_kernel_takes() -> None:
    lines = list(struct.iter_unpack("=HBBI", filter.program()))
    assert len(lines) <= 4096
    assert lines[-1] == (0x06, 0, 0, _REFUSE)
    for at, (operation, then, otherwise, value) in enumerate(lines):
        assert operation in (0x20, 0x05, 0x15, 0x35, 0x45, 0x06)
        assert at + 1 + max(then, otherwise, value if operation == 0x05 else 0) < len(lines) or operation == 0x06


@pytest.mark.parametrize("high", [0, _FAR])
@pytest.mark.parametrize("bit", [17, 25, 26, 27, 28, 29, 30])
def test_no_new_namespace_by_clone_or_unshare(index: int, bit: int, high: int) -> None:
    for more in (0, 17, 0x11200):
        assert _call(calls.CLONE, index, 1 << bit | more | high) == _REFUSE
        assert _call(calls.UNSHARE, index, 1 << bit | more | high) == _REFUSE


def test_processes_threads_and_what_they_share_are_made_as_ever(index: int) -> None:
    for flags in (17, 0x4111, 0x3D0F00, 0x1200011, 0x80 | 0x100):
        assert _call(calls.CLONE, index, flags) == _ALLOW
    for flags in (0, 0x200, 0x400):
        assert _call(calls.UNSHARE, index, flags) == _ALLOW
    assert _call(calls.UNSHARE, index, calls.NEW_TIME) == _REFUSE
    assert _call(calls.CLONE3, index) == _UNKNOWN


@pytest.mark.parametrize("high", [0, _FAR])
def test_nothing_types_into_a_terminal(index: int, high: int) -> None:
    for request in (0x5412, 0x541C):
        assert _call(calls.IOCTL, index, 0, request | high) == _REFUSE
        assert _call(calls.IOCTL, index, request, 0) == _ALLOW
    for request in (0x5401, 0x5413, 0x541B, 0x5421, 0x802C542A):
        assert _call(calls.IOCTL, index, 0, request) == _ALLOW


@pytest.mark.parametrize("high", [0, _FAR])
def test_only_harmless_personalities_can_be_had(index: int, high: int) -> None:
    for persona in calls.PERSONALITIES:
        assert _call(calls.PERSONALITY, index, persona | high) == _ALLOW
    for persona in (0x40000, 0x400000, 0x100000, 0x200000, 0x40008, 1, 6, 0x7FFFFFFF):
        assert _call(calls.PERSONALITY, index, persona | high) == _REFUSE


@pytest.mark.parametrize("high", [0, _FAR])
def test_sockets_are_of_the_families_that_programs_need(index: int, high: int) -> None:
    for table in (calls.SOCKET, calls.SOCKETPAIR):
        verdicts = {family: _call(table, index, family | high, 1, 0) for family in range(64)}
        assert {family for family, verdict in verdicts.items() if verdict == _ALLOW} == {1, 2, 10, 16}
        assert set(verdicts.values()) == {_ALLOW, _NO_FAMILY}
        assert _call(table, index, 2, 1, 6) == _ALLOW
        for protocol in (1, 4, 9, 12, 15, 16):
            assert _call(table, index, 16 | high, 3, protocol) == _NO_FAMILY


def test_the_old_way_of_i386_to_make_sockets_is_shut_where_it_is_not_needed() -> None:
    i386 = calls.ARCHITECTURES[1]
    assert [_verdict(102, i386, operation) for operation in (1, 8)] == [_REFUSE] * 2
    assert {_verdict(102, i386, operation) for operation in (2, 3, 4, 5, 9, 16, 17)} == {_ALLOW}
    assert _verdict(102, i386, 1, narrow=True) == _ALLOW


def test_calls_of_x32_are_unknown_by_its_own_numbers_too() -> None:
    x86_64 = calls.ARCHITECTURES[0]
    for number in (0, 1, 41, 56, 101, 248, 272, *range(512, 548)):
        assert _verdict(0x40000000 + number, x86_64) == _UNKNOWN
    assert _verdict(-1, x86_64) == _UNKNOWN


def test_calls_of_an_architecture_that_is_in_no_table_are_refused() -> None:
    for architecture in (0x14, 0xC00000F3, 0x80000028, 0):
        assert {_verdict(number, architecture) for number in (0, 1, 60)} == {_REFUSE}


def test_a_machine_whose_calls_are_not_known_is_said_and_nothing_is_changed() -> None:
    assert "riscv64" in filter.seal("riscv64")


# ---- in the sandbox

_TRY = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
def attempt(number, arguments):
    ctypes.set_errno(0)
    result = libc.syscall(number, *(ctypes.c_long(value) for value in arguments))
    return ctypes.get_errno() if result == -1 else 0
print(json.dumps([attempt(number, arguments) for number, arguments in json.loads(sys.argv[1])]))
"""
_HERE = {"x86_64": 0, "aarch64": 2}.get(os.uname().machine)


async def _errors(sandbox: SupervisedSandbox, wanted: list[tuple[int | None, list[int]]]) -> list[int]:
    result = await sandbox.exec(["python3", "-c", _TRY, json.dumps(wanted)])
    assert result.exit_code == 0, result.stderr
    errors = json.loads(result.output)
    assert isinstance(errors, list)
    return errors


@pytest.mark.skipif(_HERE is None, reason="the table has other machines' numbers")
async def test_the_kernel_refuses_each_call_of_the_table_in_the_sandbox(bwrap: SupervisedSandbox) -> None:
    assert _HERE is not None
    numbers = {name: table[_HERE] for name, table in calls.REFUSED.items() if table[_HERE] is not None}
    errors = await _errors(bwrap, [(number, [0] * 6) for number in numbers.values()])
    assert dict(zip(numbers, errors, strict=True)) == dict.fromkeys(numbers, errno.EPERM)


@pytest.mark.skipif(_HERE is None, reason="the table has other machines' numbers")
async def test_the_kernel_looks_at_arguments_in_the_sandbox(bwrap: SupervisedSandbox) -> None:
    assert _HERE is not None
    wanted: list[tuple[tuple[int | None, ...], list[int], int]] = [
        (calls.UNSHARE, [0x10000000], errno.EPERM),
        (calls.UNSHARE, [0x200], 0),
        (calls.CLONE, [0x10000011], errno.EPERM),
        (calls.CLONE3, [0, 0], errno.ENOSYS),
        (calls.IOCTL, [0, 0x5412, 0], errno.EPERM),
        (calls.IOCTL, [0, _FAR | 0x5412, 0], errno.EPERM),
        (calls.PERSONALITY, [0x400000], errno.EPERM),
        (calls.PERSONALITY, [0xFFFFFFFF], 0),
        (calls.SOCKET, [17, 3, 0], errno.EAFNOSUPPORT),
        (calls.SOCKET, [38, 5, 0], errno.EAFNOSUPPORT),
        (calls.SOCKET, [40, 1, 0], errno.EAFNOSUPPORT),
        (calls.SOCKET, [16, 3, 9], errno.EAFNOSUPPORT),
        (calls.SOCKET, [16, 3, 0], 0),
        (calls.SOCKET, [1, 1, 0], 0),
        (calls.SOCKET, [2, 1, 0], 0),
        (calls.SOCKET, [10, 1, 0], 0),
    ]
    errors = await _errors(bwrap, [(table[_HERE], arguments) for table, arguments, _error in wanted])
    assert errors == [error for _table, _arguments, error in wanted]


_OLD_CALLS = """
import ctypes, json, mmap, sys
def call(number, first):
    # mov eax, number; push rbx; mov ebx, first; xor ecx, ecx; xor edx, edx; int 0x80; pop rbx; ret
    code = b"".join(
        part if isinstance(part, bytes) else bytes.fromhex(part)
        for part in ("b8", number.to_bytes(4, "little"), "53bb", first.to_bytes(4, "little"), "31c931d2cd805bc3")
    )
    page = mmap.mmap(-1, 4096, prot=7)
    page.write(code)
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
assert call(20, 0) > 0
print(json.dumps([call(number, first) for number, first in json.loads(sys.argv[1])]))
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="only this machine has i386's calls beside its own")
async def test_the_calls_of_32_bits_are_no_way_around(bwrap: SupervisedSandbox) -> None:
    refused = [(table[1], 0) for table in calls.REFUSED.values() if table[1] is not None]
    wanted = [*refused, (120, 0x10000011), (310, 0x10000000), (102, 1)]
    result = await bwrap.exec(["python3", "-c", _OLD_CALLS, json.dumps(wanted)])
    if result.exit_code == -11:
        pytest.skip("this kernel has no calls of 32 bits")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.output) == [-errno.EPERM] * len(wanted)


async def test_what_ordinary_programs_do_works_under_the_filter(bwrap: SupervisedSandbox) -> None:
    script = (
        "import asyncio, multiprocessing, signal, socket, subprocess, threading\n"
        "async def main():\n"
        "    server = await asyncio.start_server(lambda r, w: w.close(), '127.0.0.1', 0)\n"
        "    await asyncio.open_connection(*server.sockets[0].getsockname())\n"
        "    program = await asyncio.create_subprocess_exec('true')\n"
        "    assert await program.wait() == 0\n"
        "asyncio.run(main())\n"
        "assert multiprocessing.get_context('fork').Pool(2).map(abs, [-1, -2]) == [1, 2]\n"
        "thread = threading.Thread(target=socket.socketpair); thread.start(); thread.join()\n"
        "socket.getaddrinfo('localhost', 80)\n"
        "print(subprocess.run(['bash', '-c', 'echo fine | cat'], capture_output=True).stdout)\n"
    )
    result = await bwrap.exec(["python3", "-W", "ignore", "-c", script])
    assert (result.exit_code, result.output) == (0, b"b'fine\\n'\n"), result.stderr


# ---- where there is no filter


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """Stands for a supervisor's process: it ends when the test does."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        yield child


async def test_a_sandbox_without_its_filter_is_announced(
    child: subprocess.Popen[bytes],
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    told: list[tuple[str, str]] = []
    connection = Connection(
        ours, child, os.pidfd_open(child.pid), os.memfd_create("errors"), lambda level, text: told.append((level, text))
    )
    wire.send_packet(theirs, *wire.encode({"ready": True, "unfiltered": "the kernel takes no filter"}, []))
    await connection.ready
    ((level, text),) = told
    assert level == "warning"
    assert "keyrings" in text
    assert "the kernel takes no filter" in text
    theirs.close()
    assert child.stdin
    child.stdin.close()
    await connection.end()
