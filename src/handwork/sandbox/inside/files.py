"""Files below the allowed folders: opened step by step without following a link, so that no swapped link leads elsewhere."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

_COPY = 1 << 20
_counter = iter(range(1 << 62))


class Files:
    """File operations inside. `readable` and `writable` are the real paths of the folders that may be used, `hidden` of those
    that may not although they lie below; inside a real sandbox all is `/`, and the kernel refuses what is not allowed.
    """

    def __init__(self, workspace: str, readable: list[str], writable: list[str], hidden: list[str]) -> None:
        self.workspace = workspace
        self.readable, self.writable, self.hidden = readable, writable, hidden

    def resolve(self, path: str) -> str:
        """The real absolute path, links followed as far as they exist."""
        return os.path.realpath(os.path.join(self.workspace, path))

    def open(self, path: str) -> int:
        """A descriptor of a regular file, for reading."""
        folder, name = self._parent(self.resolve(path), self.readable + self.writable)
        try:
            if not name:
                raise _error(errno.EISDIR)
            # Not to hang on a pipe without a writer.
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        finally:
            os.close(folder)
        mode = os.fstat(fd).st_mode
        if stat.S_ISREG(mode):
            return fd
        os.close(fd)
        raise _error(errno.EISDIR) if stat.S_ISDIR(mode) else _error(errno.EACCES, "Not a regular file")

    def piece(self, path: str, offset: int, size: int) -> tuple[list[int], bytes]:
        """Some bytes of a regular file, and which file that was: device, inode, time of its last change, and its size.
        For those whom no descriptor can reach."""
        fd = self.open(path)
        try:
            status, data = os.fstat(fd), os.pread(fd, size, offset)
        finally:
            os.close(fd)
        return [status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size], data

    def write(self, path: str, source: int, mode: int | None, exclusive: bool, expected: str = "") -> None:
        """Replace or make a file with what the descriptor `source` holds, in one step.

        `expected`, if given, is the SHA-256 of what it must hold until then: ESTALE if it does not.
        """
        if exclusive and os.path.lexists(os.path.join(self.workspace, path)):
            raise _error(errno.EEXIST)
        folder, name = self._parent(self.resolve(path), self.writable, make=True)
        try:
            if not name or path.endswith("/"):
                raise _error(errno.EISDIR)
            _replace(folder, name, source, mode, exclusive, expected)
        finally:
            os.close(folder)

    def remove(self, path: str, expected: str = "") -> None:
        """Remove a file; of a link the link. `expected` as for `write`."""
        full = os.path.join(self.workspace, path).rstrip("/")
        real = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
        folder, name = self._parent(
            real if os.path.basename(full) not in ("", ".", "..") else self.resolve(path), self.writable
        )
        try:
            if not name:
                raise _error(errno.EISDIR)
            if expected:
                _check_unchanged(folder, name, expected)
            os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)

    def stat(self, path: str) -> list[object] | None:
        """[path, kind, size, mode, links] of what stands there, links followed; None if nothing does."""
        try:
            folder, name = self._parent(self.resolve(path), self.readable + self.writable)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
                return None
            raise
        try:
            return _entry("", os.stat(name or ".", dir_fd=folder, follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return None
            raise
        finally:
            os.close(folder)

    def entries(self, path: str, depth: int, hidden: bool, limit: int) -> list[list[object]]:
        """The entries below a folder, level by level until `limit`, then sorted by path."""
        base = self.resolve(path)
        found: list[list[object]] = []
        level = [""]
        for turn in range(depth):
            below: list[str] = []
            for folder in level:
                try:
                    below += self._list_one(base, folder, hidden, limit, found)
                except OSError:
                    # What cannot be read, or went away meanwhile, does not hide the rest.
                    if turn == 0:
                        raise
                if len(found) >= limit:
                    break
            level = below
            if not level or len(found) >= limit:
                break
        return sorted(found, key=lambda entry: str(entry[0]))

    def _list_one(self, base: str, below: str, hidden: bool, limit: int, found: list[list[object]]) -> list[str]:
        folder, name = self._parent(os.path.join(base, below) if below else base, self.readable + self.writable)
        try:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(name or ".", flags, dir_fd=folder)
        finally:
            os.close(folder)
        folders: list[str] = []
        try:
            for entry in sorted(os.listdir(fd)):
                if len(found) >= limit:
                    break
                if not hidden and entry.startswith("."):
                    continue
                full = os.path.join(below, entry)
                if self._is_hidden(os.path.join(base, full)):
                    continue
                try:
                    status = os.stat(entry, dir_fd=fd, follow_symlinks=False)
                except OSError:
                    continue
                found.append(_entry(full, status))
                if stat.S_ISDIR(status.st_mode):
                    folders.append(full)
        finally:
            os.close(fd)
        return folders

    def _is_hidden(self, real: str) -> bool:
        return any(_is_below(real, folder) for folder in self.hidden)

    def _parent(self, real: str, roots: list[str], make: bool = False) -> tuple[int, str]:
        """A descriptor of the folder that holds `real`, and the last name ('' for a root itself)."""
        root = max((root for root in roots if _is_below(real, root)), key=len, default=None)
        if root is None or self._is_hidden(real):
            raise _error(errno.EACCES, f"Outside of the workspace {self.workspace} (it leads to {real})")
        *folders, name = os.path.relpath(real, root).split("/")
        fd = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for folder in folders:
                fd = _step(fd, folder, make)
        except BaseException:
            os.close(fd)
            raise
        return fd, "" if name == "." else name


def _step(fd: int, name: str, make: bool) -> int:
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        below = os.open(name, flags, dir_fd=fd)
    except FileNotFoundError:
        if not make:
            raise
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=fd)
        below = os.open(name, flags, dir_fd=fd)
    os.close(fd)
    return below


def _replace(folder: int, name: str, source: int, mode: int | None, exclusive: bool, expected: str) -> None:
    try:
        old: os.stat_result | None = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        old = None
    if old is not None and exclusive:
        raise _error(errno.EEXIST)
    if old is not None and not stat.S_ISREG(old.st_mode):
        # A link here appeared after the path was resolved: somebody plays with us.
        raise _error(errno.EISDIR) if stat.S_ISDIR(old.st_mode) else _error(errno.EACCES, "Not a regular file")
    if old is not None and not os.access(name, os.W_OK, dir_fd=folder, effective_ids=True):
        raise _error(errno.EACCES, "The file is read-only")
    temporary = f".handwork-{os.getpid()}-{next(_counter)}"
    try:
        fd = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder
        )
    except PermissionError as error:
        raise _error(errno.EACCES, "The folder is not writable, so the file cannot be replaced") from error
    except OSError as error:
        if error.errno == errno.EROFS:
            raise _error(errno.EACCES, "The folder is read-only here") from error
        raise
    try:
        try:
            _fill(fd, source, old, mode)
        finally:
            os.close(fd)
        if expected:  # last, so that next to nothing can happen between this look and the rename
            _check_unchanged(folder, name, expected)
        if exclusive:
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.unlink(temporary, dir_fd=folder)
        else:
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException as error:
        os.unlink(temporary, dir_fd=folder)
        if isinstance(error, OSError) and error.errno == errno.EBUSY:
            raise _error(errno.EACCES, "The file is a mount point and cannot be replaced") from error
        raise


def _check_unchanged(folder: int, name: str, expected: str) -> None:
    import hashlib  # a start need not pay for it

    digest = hashlib.sha256()
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        raise _error(errno.ESTALE, "The file is gone, or no file any more") from error
    try:
        while chunk := os.read(fd, _COPY) if stat.S_ISREG(os.fstat(fd).st_mode) else b"":
            digest.update(chunk)
    finally:
        os.close(fd)
    if digest.hexdigest() != expected:
        raise _error(errno.ESTALE, "The file has changed meanwhile")


def _fill(fd: int, source: int, old: os.stat_result | None, mode: int | None) -> None:
    while os.sendfile(fd, source, None, _COPY):
        pass
    if old is not None:
        with contextlib.suppress(OSError):  # only root may give a file away; else it is ours now
            os.chown(fd, old.st_uid, old.st_gid)
    if mode is not None:
        os.fchmod(fd, mode)
    elif old is not None:
        os.fchmod(fd, stat.S_IMODE(old.st_mode))


def _entry(path: str, status: os.stat_result) -> list[object]:
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}
    kind = kinds.get(stat.S_IFMT(status.st_mode), "other")
    return [path, kind, status.st_size, stat.S_IMODE(status.st_mode), status.st_nlink if kind == "file" else 1]


def _is_below(path: str, folder: str) -> bool:
    return path == folder or folder == "/" or path.startswith(folder + "/")


def _error(number: int, text: str = "") -> OSError:
    return OSError(number, text or os.strerror(number))
