"""A picture's pixels: opened by kind, made plain and upright, and encoded to fit a number of bytes."""

from __future__ import annotations

import io
from typing import Any

_LONGEST_PROFILE = 100_000
_QUALITIES = (90, 80, 65)
_MANY_SIZES = 6
_GREY = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")


def opened(kind: str, data: bytes) -> Any:
    """The picture with its header read and nothing decoded. Not `PIL.Image.open`, which guesses the kind and warns of sizes."""
    from PIL import (
        AvifImagePlugin,
        BmpImagePlugin,
        GifImagePlugin,
        JpegImagePlugin,
        PngImagePlugin,
        TiffImagePlugin,
        WebPImagePlugin,
    )

    classes: dict[str, Any] = {
        "PNG": PngImagePlugin.PngImageFile,
        "JPEG": JpegImagePlugin.JpegImageFile,
        "GIF": GifImagePlugin.GifImageFile,
        "WEBP": WebPImagePlugin.WebPImageFile,
        "BMP": BmpImagePlugin.BmpImageFile,
        "TIFF": TiffImagePlugin.TiffImageFile,
        "AVIF": AvifImagePlugin.AvifImageFile,
    }
    return classes[kind](io.BytesIO(data))


def upright(picture: Any, longest: int) -> Any:
    """The first frame in a mode that both PNG and JPEG know (L, RGB; RGBA for PNG), at most `longest` pixels wide and high,
    turned as its EXIF says, and without any metadata but its colours' profile."""
    from PIL import ImageOps

    plain = _plain(picture)
    plain.thumbnail((longest, longest))
    exif = picture.getexif()
    if plain is not picture:
        plain.getexif().update(exif)
    plain = ImageOps.exif_transpose(plain)
    profile = picture.info.get("icc_profile") if plain.mode != "L" and picture.mode != "CMYK" else None
    plain.info = {"icc_profile": profile} if profile and len(profile) < _LONGEST_PROFILE else {}
    return plain


def _plain(picture: Any) -> Any:
    transparent = "transparency" in picture.info
    match picture.mode:
        case "RGBA" | "LA" | "La" | "PA" | "RGBa":
            return picture.convert("RGBA")
        case "P" | "RGB" | "L" | "1" if transparent:
            return picture.convert("RGBA")
        case "RGB" | "L":
            return picture
        case "1":
            return picture.convert("L")
        case mode if mode in _GREY:
            return _grey(picture)
    return picture.convert("RGB")


def _grey(picture: Any) -> Any:
    """Deep grey levels as 8 bits: of 16, the upper ones; of others, from the darkest to the brightest."""
    deep = picture.convert("I").convert("F") if picture.mode != "F" else picture
    low, high = (0.0, 65535.0) if picture.mode.startswith("I;16") else deep.getextrema()
    scale = 255.0 / (high - low) if high > low else 1.0
    return deep.point(lambda level: level * scale + -low * scale).convert("L")


def encoded(picture: Any, *, lossy: bool, largest: int) -> tuple[bytes, str]:
    """(the bytes of a file, its media type): PNG unless `lossy` or too large, then JPEG, smaller and smaller."""
    if not lossy or picture.mode == "RGBA":
        made = _saved(picture, "PNG")
        if len(made) <= largest:
            return made, "image/png"
    if picture.mode == "RGBA":
        picture = _on_white(picture)
    for _ in range(_MANY_SIZES):
        for quality in _QUALITIES:
            made = _saved(picture, "JPEG", quality=quality)
            if len(made) <= largest:
                return made, "image/jpeg"
        picture.thumbnail((max(1, picture.width * 3 // 4), max(1, picture.height * 3 // 4)))
    raise ValueError("it cannot be made small enough")


def _on_white(picture: Any) -> Any:
    from PIL import Image

    ground = Image.new("RGBA", picture.size, "white")
    ground.alpha_composite(picture)
    return ground.convert("RGB")


def _saved(picture: Any, kind: str, **options: Any) -> bytes:
    made = io.BytesIO()
    picture.save(made, kind, **options)
    return made.getvalue()
