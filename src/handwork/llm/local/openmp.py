"""OpenMP for llama.cpp on machines without libgomp: LLVM's library, from a package, under the name that is asked for.

The extension of xllamacpp is linked against libgomp.so.1, which a bare Debian lacks. LLVM's libomp has the same functions
under the same symbol versions, but bears another name (SONAME), and the linker looks for names. So it is loaded for
everybody to see, and beside it an empty shared object of the wanted name.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

from handwork.errors import ConfigError

WANTED = "libgomp.so.1"
_PACKAGED = Path("cmeel.prefix", "lib", "libgomp.so.1")
_EHDR, _PHDR, _SYM = 64, 56, 24
_ET_DYN, _PT_LOAD, _PT_DYNAMIC, _READ_WRITE = 3, 1, 2, 6
_DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT, _DT_SONAME = 4, 5, 6, 10, 11, 14


def load_openmp(name: str = WANTED, folders: Iterable[str] | None = None) -> None:
    """See to it that a library of that name is loaded; nothing is done where the system has it.

    `folders` are searched for the package cmeel-libomp (default: sys.path). Raises ConfigError, which says what to install.
    """
    if not sys.platform.startswith("linux") or _loads(name):
        return
    packaged = (Path(folder) / _PACKAGED for folder in (sys.path if folders is None else folders))
    library = next((path for path in packaged if path.is_file()), None)
    if library is None:
        raise ConfigError(f"llama.cpp needs {name}, which this machine lacks", hint="apt-get install libgomp1")
    try:
        ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
        _load_bytes(bearer_of(name, library.read_bytes()[:_EHDR]))
    except OSError as error:
        raise ConfigError(f"{library} cannot be loaded ({error})", hint="apt-get install libgomp1") from error


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def _load_bytes(library: bytes) -> None:
    memory = os.memfd_create("bearer", os.MFD_CLOEXEC)
    try:
        os.write(memory, library)
        ctypes.CDLL(f"/proc/self/fd/{memory}", ctypes.RTLD_GLOBAL)
    finally:
        os.close(memory)


def bearer_of(name: str, like: bytes) -> bytes:
    """The smallest ELF shared object with that SONAME, without code or symbols, for the machine whose ELF header is `like`.

    Format: System V ABI, chapters 4 and 5 (64-bit, little-endian).
    """
    strings = b"\0" + name.encode() + b"\0"
    symbols, hashes = bytes(_SYM), struct.pack("<4I", 1, 1, 0, 0)  # one bucket, one symbol: the null symbol
    at_symbols = _EHDR + 2 * _PHDR
    at_hashes = at_symbols + len(symbols)
    at_strings = at_hashes + len(hashes)
    at_dynamic = (at_strings + len(strings) + 7) & ~7
    entries = (
        (_DT_SONAME, 1),
        (_DT_HASH, at_hashes),
        (_DT_STRTAB, at_strings),
        (_DT_SYMTAB, at_symbols),
        (_DT_STRSZ, len(strings)),
        (_DT_SYMENT, _SYM),
        (0, 0),
    )
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in entries)
    size, machine = at_dynamic + len(dynamic), struct.unpack_from("<H", like, 18)[0]
    header = like[:16] + struct.pack("<HHIQQQIHHHHHH", _ET_DYN, machine, 1, 0, _EHDR, 0, 0, _EHDR, _PHDR, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", _PT_LOAD, _READ_WRITE, 0, 0, 0, size, size, 0x10000)
    pointer = struct.pack(
        "<IIQQQQQQ", _PT_DYNAMIC, _READ_WRITE, at_dynamic, at_dynamic, at_dynamic, len(dynamic), len(dynamic), 8
    )
    body = header + load + pointer + symbols + hashes + strings
    return body + bytes(at_dynamic - len(body)) + dynamic
