"""Start a program in a sandbox, with its descriptors, and say why it cannot be started."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

from handwork.sandbox.connection import Connection
from handwork.sandbox.process import Program, StartError


async def start(
    connection: Connection,
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    fds: list[int],
    stdin: bool = False,
    stderr: bool = False,
    pty: bool = False,
) -> Program:
    """Start a program with `fds` (standard input if `stdin`, output, errors if `stderr`), which are closed here.

    Raises the OSError of the start, with the program's or folder's name. A cancelled start leaves no process.
    """
    number = connection.next_number()
    program = Program(connection, number)
    try:
        connection.send(
            fds, op="spawn", job=number, argv=list(argv), cwd=cwd, env=dict(env), stdin=stdin, stderr=stderr, pty=pty
        )
        await program.started
    except StartError as error:
        if error.what == "cwd":
            raise OSError(error.number, os.strerror(error.number), cwd) from None
        raise OSError(error.number, os.strerror(error.number), argv[0] if argv else "") from None
    except asyncio.CancelledError:
        await program.put_down()
        raise
    return program
