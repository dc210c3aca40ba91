"""A PNG without its extra parts that are broken: viewers pass over them, while decoders of models refuse the whole picture."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import islice

_SIGNATURE = 8
_AROUND = 12
"""Bytes of a chunk beside its data: length, name, checksum."""
_ANCILLARY = 0x20
"""The bit that makes the first letter of a name small: the picture can be drawn without that chunk."""
_MOST = 100


def without_broken_extras(data: bytes) -> bytes:
    """The same bytes, less the ancillary chunks whose checksum is wrong; what is no PNG stays as it is."""
    kept, place = list[bytes](), 0
    for begin, end in islice(_broken_extras(data), _MOST):
        kept.append(data[place:begin])
        place = end
    return b"".join((*kept, data[place:])) if place else data


def _broken_extras(data: bytes) -> Iterator[tuple[int, int]]:
    """Where they begin and end, in their order."""
    view, place = memoryview(data), _SIGNATURE
    while place + _AROUND <= len(data):
        (length,) = struct.unpack_from(">I", data, place)
        end = place + _AROUND + length
        if end > len(data):
            return
        (checksum,) = struct.unpack_from(">I", data, end - 4)
        if data[place + 4] & _ANCILLARY and zlib.crc32(view[place + 4 : end - 4]) != checksum:
            yield place, end
        place = end
