"""A minimal root folder of this machine's own programs, from which a real engine makes an image: no registry is asked."""

from __future__ import annotations

import io
import shutil
import subprocess
import sysconfig
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

PROGRAMS = (
    "bash sh cat ls sleep head tail tr wc grep env true false touch rm mkdir ln mv cp chmod id ps tty printf yes seq dd setsid "
    "kill stat find sort mount pwd echo test cut uname mkfifo"
)
_ACCOUNTS = {"etc/passwd": "root:x:0:0:root:/root:/bin/bash\n", "etc/group": "root:x:0:\n"}


def image(python: bool = True, path: Sequence[str] = ("/usr/bin", "/bin")) -> bytes:
    """A tar with bash, some programs, the libraries that they need, and Debian's own python3 unless `python` is False."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        folders: set[Path] = set()
        for name in ("tmp", "proc", "sys", "dev", "root"):
            _add_folder(tar, Path("/") / name, folders)
        _add_folder(tar, Path("/etc"), folders)
        for name, text in _ACCOUNTS.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
        found = [Path(place) for name in PROGRAMS.split() if (place := shutil.which(name, path=":".join(path)))]
        programs = {Path("/usr/bin") / file.name: file.resolve() for file in found}
        modules: list[Path] = []
        if python:
            real = Path("/usr/bin/python3").resolve()
            programs[Path("/usr/bin/python3")] = real
            library = Path("/usr/lib") / real.name
            modules = [file for file in library.rglob("*") if file.is_file() and _is_wanted(file)]
        needed = _libraries([*programs.values(), *(file for file in modules if file.suffix == ".so")])
        for place, file in [*programs.items(), *((file, file) for file in (*modules, *needed))]:
            _add_folder(tar, _in_usr(place).parent, folders)
            _add(tar, file, place)
        for name in ("bin", "lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(link)
    return archive.getvalue()


def can_be_made() -> bool:
    """Whether this machine has what the image is made of: a python3 of the system, and /lib within /usr."""
    return (
        Path("/usr/bin/python3").exists() and Path("/lib").is_symlink() and sysconfig.get_platform().startswith("linux")
    )


def _is_wanted(file: Path) -> bool:
    return not {"__pycache__", "test", "tests", "idlelib", "tkinter", "ensurepip"} & set(
        file.parts
    ) and "config-" not in str(file)


def _add_folder(tar: tarfile.TarFile, place: Path, known: set[Path]) -> None:
    if place in known or place == Path("/"):
        return
    _add_folder(tar, place.parent, known)
    known.add(place)
    folder = tarfile.TarInfo(str(place).lstrip("/"))
    folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if place == Path("/tmp") else 0o755
    tar.addfile(folder)


def _add(tar: tarfile.TarFile, file: Path, place: Path) -> None:
    entry = tar.gettarinfo(file.resolve(), str(_in_usr(place)).lstrip("/"))
    entry.type, entry.uid, entry.gid = tarfile.REGTYPE, 0, 0
    with file.resolve().open("rb") as content:
        entry.size = file.resolve().stat().st_size
        tar.addfile(entry, content)


def _in_usr(place: Path) -> Path:
    return Path("/usr") / place.relative_to("/") if place.parts[1] in ("bin", "lib", "lib64") else place


def _libraries(files: Iterable[Path]) -> list[Path]:
    out = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False).stdout
    words = {
        word for line in out.splitlines() for word in line.split() if word.startswith("/") and not word.endswith(":")
    }
    return [Path(word) for word in sorted(words)]
