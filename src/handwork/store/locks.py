"""The writer locks of all sessions of a store: byte ranges of one file beside it, free at once when their holder dies."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import struct
from functools import cache
from pathlib import Path
from typing import IO
from weakref import WeakSet

from handwork.errors import StoreUnusable
from handwork.store.faults import system_error

# Open File Description locks belong to the open file, not to the process: two stores in one process exclude each other,
# and closing some other descriptor of the file frees nothing. Systems without them get the classic kind.
_SET = getattr(fcntl, "F_OFD_SETLK", None)
_GET = getattr(fcntl, "F_OFD_GETLK", None)
_FLOCK = "hhqqi0q"  # struct flock: type, whence, start, length, pid (0), padded
_CLASSIC = {
    fcntl.F_RDLCK: fcntl.LOCK_SH | fcntl.LOCK_NB,
    fcntl.F_WRLCK: fcntl.LOCK_EX | fcntl.LOCK_NB,
    fcntl.F_UNLCK: fcntl.LOCK_UN,
}
_HELD = (errno.EACCES, errno.EAGAIN)


class LockFile:
    """One descriptor for the locks of every session of a store.

    A session's byte is a hash of its id rather than its number in the table: a number would have to be written (and waited
    for) before a session could begin, while beginning now costs one system call and no write at all. Byte 0 says that the
    store is in use: shared by all who have it open, taken alone by who replaces the file.
    """

    def __init__(self, path: Path) -> None:
        try:  # the descriptor is not inherited by programs that we start
            self._file: IO[bytes] = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)
        except OSError as error:
            raise system_error(error, path) from error
        self.path = path
        _open_files().add(self)

    def use(self, *, alone: bool = False) -> bool:
        """Mark the store as in use; with `alone` only if nobody else has it open. False: refused."""
        return self._take(0, fcntl.F_WRLCK if alone else fcntl.F_RDLCK)

    def take(self, session_id: str) -> bool:
        """Take a session's writer lock without waiting; False: somebody else holds it."""
        return self._take(_byte(session_id), fcntl.F_WRLCK)

    def free(self, session_id: str) -> None:
        """Give a session's writer lock back."""
        self._take(_byte(session_id), fcntl.F_UNLCK)

    def is_held(self, session_id: str) -> bool:
        """Whether somebody else writes to the session now; do not ask about a session that this store holds itself."""
        if _GET is None:
            if not self.take(session_id):
                return True
            self.free(session_id)
            return False
        answer = fcntl.fcntl(self._file, _GET, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, _byte(session_id), 1, 0))
        kind: int = struct.unpack(_FLOCK, answer)[0]
        return kind != fcntl.F_UNLCK

    def close(self) -> None:
        """Give all locks back."""
        _open_files().discard(self)
        self._file.close()

    def _take(self, start: int, kind: int) -> bool:
        try:
            if _SET is not None:
                fcntl.fcntl(self._file, _SET, struct.pack(_FLOCK, kind, os.SEEK_SET, start, 1, 0))
            else:
                fcntl.lockf(self._file, _CLASSIC[kind], 1, start)
        except OSError as error:
            if error.errno in _HELD:
                return False
            raise StoreUnusable(
                f"{self.path} cannot be locked ({error.strerror}): the store needs a local file system that knows byte-range locks",
                hint="set HANDWORK_HOME to a folder on one",
            ) from error
        return True


def _byte(session_id: str) -> int:
    """Where a session's lock lies: 62 bits of hash, after byte 0."""
    digest = hashlib.blake2b(session_id.encode(), digest_size=8).digest()
    return 1 + (int.from_bytes(digest, "big") >> 2)


@cache
def _open_files() -> WeakSet[LockFile]:
    """All open lock files of the process. A fork copies the descriptor and would keep the locks alive after our death, so
    the child drops its copies; the parent's locks are untouched by that."""
    files: WeakSet[LockFile] = WeakSet()

    def drop() -> None:
        for file in list(files):
            file._file.close()
        files.clear()

    os.register_at_fork(after_in_child=drop)
    return files
