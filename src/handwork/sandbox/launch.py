"""Start the supervisor, in a sandbox or plainly, with one end of a socket pair and nothing else of ours."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from handwork.sandbox.connection import Connection
from handwork.schema import Notify

# -S and -I keep the start at 20 ms and every file of the workspace out of it.
_IMPORTS = "import sys; sys.path.append(sys.argv[1]); from json import loads; from inside.supervisor import main; "
_CONFINE = "from inside.landlock import confine; confine(**loads(sys.argv[3])); "
_SERVE = "main(**loads(sys.argv[2]))"


def interpreter() -> str:
    """The real file of this python: inside, the links to it need not exist."""
    return os.path.realpath(sys.executable)


def launch(
    prefix: Sequence[str],
    settings: Mapping[str, object],
    *,
    environment: Mapping[str, str],
    pass_fds: Sequence[int] = (),
    notify: Notify,
    confine: Mapping[str, object] | None = None,
) -> Connection:
    """Run `prefix` + the supervisor; `settings` are the arguments of its main, `confine` of what goes before it under Landlock.

    Raises OSError if it cannot be run at all."""
    code = _IMPORTS + (_CONFINE if confine else "") + _SERVE
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    errors = os.memfd_create("errors", os.MFD_CLOEXEC)
    try:
        arguments = json.dumps({"descriptor": theirs.fileno(), **settings})
        child = subprocess.Popen(
            [
                *prefix,
                interpreter(),
                "-I",
                "-S",
                "-c",
                code,
                str(Path(__file__).parent),
                arguments,
                json.dumps(confine),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=dict(environment),
            cwd="/",
            pass_fds=(theirs.fileno(), *pass_fds),
            start_new_session=True,
        )
    except BaseException:
        ours.close()
        os.close(errors)
        raise
    finally:
        theirs.close()
    # The pidfd is taken now: later somebody else may have reaped the child.
    connection = Connection(ours, child, os.pidfd_open(child.pid), errors, notify)
    if isinstance(limits := settings.get("limits"), dict):
        connection.hold(limits, child.pid)
    return connection
