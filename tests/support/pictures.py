"""Files of small pictures for tests, and what a provider makes of one."""

from __future__ import annotations

import base64
import io

from PIL import Image


def png(number: int = 0, size: tuple[int, int] = (4, 4)) -> bytes:
    """A PNG in one colour; another number is another colour."""
    made = io.BytesIO()
    Image.new("RGB", size, (number & 255, number >> 8 & 255, number >> 16 & 255)).save(made, "PNG")
    return made.getvalue()


def png_base64(number: int = 0, size: tuple[int, int] = (4, 4)) -> str:
    return base64.b64encode(png(number, size)).decode()


def size_of(data_url: str) -> tuple[int, int]:
    """Decode a data URL as a provider does; raises when it is no picture of the type that it names."""
    head, _, data = data_url.partition(";base64,")
    opened = Image.open(io.BytesIO(base64.b64decode(data, validate=True)))
    opened.load()
    assert head == f"data:image/{(opened.format or '').lower()}"
    return opened.size
