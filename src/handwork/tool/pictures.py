"""Pictures on their way in: checked, and made such that every model that sees takes them; one bad one would break a history."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import stat
import struct
import threading
import zlib
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeAlias

from handwork.errors import PictureError
from handwork.schema import Image
from handwork.tool.picture_encoding import encoded, opened, upright
from handwork.tool.picture_kinds import SENT_AS_THEY_ARE, described, is_complete, kind_of
from handwork.tool.png_chunks import without_broken_extras
from handwork.tool.threads import run_in_thread

LONGEST = 2000
"""Pixels of the long edge: Anthropic refuses more in requests with many pictures, and no model sees more in it."""
LARGEST = 3_500_000
"""Bytes of what is sent; the lowest limit of a provider is 5 MB of base64."""
MOST_BYTES = 50_000_000
"""Bytes of what is taken in."""
MOST_PIXELS = 89_000_000
"""What is decoded at all: 9,400 squared. Pillow itself warns beyond."""
_MANY_PIXELS = 8_000_000
_one_large = threading.Lock()
"""Held while a large picture is decoded, which takes up to half a GB for a moment."""
_GPS = 0x8825
_ORIENTATION = 0x0112
_SENSELESS = (
    *(OSError, SyntaxError, ValueError, TypeError, LookupError, EOFError, ArithmeticError, AttributeError),
    *(RuntimeError, struct.error, zlib.error, Warning),
)
"""What Pillow's decoders raise for data that makes no sense; a Warning where the program makes errors of warnings."""
_DATA_URL = re.compile(r"data:[^,]{0,200};base64,", re.IGNORECASE)

Source: TypeAlias = Image | bytes | str | os.PathLike[str]
"""A picture for a request: one that is ready, the bytes of a picture's file, or its path."""


def picture(data: bytes) -> Image:
    """A picture as it is sent to models; a very large one takes seconds, so call this in a thread.

    What is small and valid stays as it is, byte for byte. The rest is encoded anew: scaled to LONGEST and LARGEST, turned as
    its EXIF says, the first frame of several, without metadata. Where it was taken (GPS) is never kept.

    Raises:
        PictureError: no picture, a broken or cut off one, or one too large to be decoded. Says so as `it is …`.
    """
    if len(data) > MOST_BYTES:
        raise PictureError(f"it is too large: {_megabytes(len(data))}, at most {_megabytes(MOST_BYTES)} are taken")
    kind = kind_of(data)
    if not kind:
        raise PictureError(f"it is {described(data)}" if data else "it is empty")
    if kind == "PNG":
        data = without_broken_extras(data)
    try:
        return _checked(kind, data)
    except _SENSELESS as error:
        why = str(error) or type(error).__name__
        raise PictureError(f"it is a broken or incomplete {kind} picture ({why})") from None
    except MemoryError:
        raise PictureError("there is not enough memory to decode it") from None


def _checked(kind: str, data: bytes) -> Image:
    source = opened(kind, data)
    width, height = source.size
    if width * height > MOST_PIXELS:
        most = MOST_PIXELS // 10**6
        raise PictureError(f"it is too large: {width:,} × {height:,} pixels, at most {most} million are decoded")
    with _one_large if width * height > _MANY_PIXELS else nullcontext():
        if _goes_as_it_is(kind, data, source):
            source.load()
            return _image(data, SENT_AS_THEY_ARE[kind])
        made = encoded(upright(source, LONGEST), lossy=kind in ("JPEG", "AVIF"), largest=LARGEST)
        return _image(*made)


def _goes_as_it_is(kind: str, data: bytes, source: Any) -> bool:
    if kind not in SENT_AS_THEY_ARE or len(data) > LARGEST or max(source.size) > LONGEST:
        return False
    if getattr(source, "n_frames", 1) > 1 or source.mode not in ("1", "L", "LA", "P", "RGB", "RGBA"):
        return False
    exif = source.getexif()
    return is_complete(kind, data) and exif.get(_ORIENTATION, 1) == 1 and _GPS not in exif


def _image(data: bytes, media_type: str) -> Image:
    return Image(hash=hashlib.sha256(data).hexdigest(), media_type=media_type, data=base64.b64encode(data).decode())


def picture_of_base64(text: str) -> Image:
    """As `picture`, of base64 text or a data URL with it."""
    text = text[found.end() :] if (found := _DATA_URL.match(text)) else text
    if len(text) > MOST_BYTES * 3 // 2:
        raise PictureError(
            f"it is too large: {_megabytes(len(text) * 3 // 4)}, at most {_megabytes(MOST_BYTES)} are taken"
        )
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise PictureError("it is no base64 text") from None
    return picture(data)


def picture_of_file(path: str | os.PathLike[str]) -> Image:
    """As `picture`, of a file; every PictureError names it."""
    place = Path(path).expanduser()
    try:
        return picture(_read(place))
    except OSError as error:
        raise PictureError(f"The picture {place} cannot be read: {error.strerror or error}") from None
    except PictureError as error:
        raise PictureError(f"The picture {place} cannot be used: {error.message}") from None


def _read(path: Path) -> bytes:
    """A regular file's bytes; never waits for a pipe or a device, and reads no more than is taken."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            raise PictureError("it is a folder" if stat.S_ISDIR(mode) else "it is no regular file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(MOST_BYTES + 1)
    finally:
        os.close(handle)


async def pictures_of(sources: Iterable[Source]) -> tuple[Image, ...]:
    """The pictures of a request, each as `picture` makes it, in a thread. Raises PictureError, which says which one."""
    if isinstance(sources, str | bytes | os.PathLike | Image):
        raise TypeError("images is a list of pictures, not a single one")
    return tuple([await run_in_thread(_of_source, number, source) for number, source in enumerate(sources, 1)])


def _of_source(number: int, source: Source) -> Image:
    if isinstance(source, Image):
        return source
    if not isinstance(source, bytes):
        return picture_of_file(source)
    try:
        return picture(source)
    except PictureError as error:
        raise PictureError(f"Picture {number} cannot be used: {error.message}") from None


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
