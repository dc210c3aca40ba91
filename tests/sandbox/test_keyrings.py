"""The filter that keeps programs from the kernel's keyrings, run on paper for every architecture it knows."""

from __future__ import annotations

import errno
import os
import socket
import struct
import subprocess
from collections.abc import Iterator

import pytest

from handwork.sandbox.connection import Connection
from handwork.sandbox.inside import keyrings, wire

_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_X86_64, _I386, _AARCH64, _ARM = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028


def _verdict(number: int, architecture: int) -> int:
    """What the kernel's machine makes of a call; every jump must land in the program."""
    lines = list(struct.iter_unpack("=HBBI", keyrings.program()))
    data, register, at = {0: number, 4: architecture}, 0, 0
    while True:
        operation, then, otherwise, value = lines[at]
        at += 1
        if operation == 0x20:
            register = data[value]
        elif operation == 0x54:
            register &= value
        elif operation == 0x15:
            at += then if register == value else otherwise
        else:
            assert operation == 0x06
            return int(value)


@pytest.mark.parametrize(
    ("architecture", "numbers"),
    [
        (_X86_64, (248, 249, 250)),
        (_X86_64, (0x40000000 + 248, 0x40000000 + 249, 0x40000000 + 250)),
        (_I386, (286, 287, 288)),
        (_AARCH64, (217, 218, 219)),
        (_ARM, (309, 310, 311)),
    ],
)
def test_the_three_calls_for_keys_are_refused_and_their_neighbours_are_not(
    architecture: int, numbers: tuple[int, ...]
) -> None:
    assert [_verdict(number, architecture) for number in numbers] == [_REFUSE] * 3
    for number in (0, 1, numbers[0] - 1, numbers[-1] + 1):
        assert _verdict(number, architecture) == _ALLOW


def test_the_numbers_of_one_architecture_are_no_keys_to_another() -> None:
    assert _verdict(286, _X86_64) == _verdict(250, _I386) == _verdict(250, _AARCH64) == _verdict(217, _ARM) == _ALLOW


def test_calls_of_an_architecture_that_this_kernel_cannot_have_are_refused() -> None:
    assert _verdict(1, 0x14) == _REFUSE


def test_a_machine_whose_calls_are_not_known_is_said_and_nothing_is_changed() -> None:
    assert "riscv64" in keyrings.leave("riscv64")


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """Stands for a supervisor's process: it ends when the test does."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        yield child


async def test_a_sandbox_that_cannot_keep_programs_from_the_keyrings_is_announced(
    child: subprocess.Popen[bytes],
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    told: list[tuple[str, str]] = []
    connection = Connection(ours, child, os.memfd_create("errors"), lambda level, text: told.append((level, text)))
    wire.send_packet(theirs, *wire.encode({"ready": True, "keys": "the kernel takes no filter"}, []))
    await connection.ready
    ((level, text),) = told
    assert level == "warning"
    assert "keyrings" in text
    assert "the kernel takes no filter" in text
    theirs.close()
    assert child.stdin
    child.stdin.close()
    await connection.end()
