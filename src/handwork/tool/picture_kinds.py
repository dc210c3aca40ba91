"""What a picture's first bytes say that it is, and whether it is one that models take."""

from __future__ import annotations

SENT_AS_THEY_ARE = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
"""Kinds that every provider of models that see takes, with their media types."""
_HEIF_BRANDS = (b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1")
_OTHERS = (
    (b"%PDF", "a PDF document"),
    (b"8BPS", "a Photoshop file"),
    (b"\x00\x00\x00\x0cjP  ", "a JPEG 2000 picture"),
    (b"\xff\x4f\xff\x51", "a JPEG 2000 picture"),
    (b"\xff\x0a", "a JPEG XL picture"),
    (b"\x00\x00\x00\x0cJXL ", "a JPEG XL picture"),
    (b"\x1a\x45\xdf\xa3", "a video"),
    (b"OggS", "a video or sound"),
    (b"PK\x03\x04", "an archive or office document"),
)


def kind_of(data: bytes) -> str:
    """The kind by content: one of SENT_AS_THEY_ARE, BMP, TIFF or AVIF; else '' (see `described`)."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    if data.startswith(b"BM") and data[6:10] == b"\0\0\0\0":
        return "BMP"
    if data.startswith((b"II*\0", b"MM\0*")):
        return "TIFF"
    return "AVIF" if data[4:8] == b"ftyp" and data[8:12] in (b"avif", b"avis") else ""


def described(data: bytes) -> str:
    """In words, what data that is none of our kinds seems to be, and what to do about it."""
    convert = "convert it to PNG or JPEG first"
    if data[4:8] == b"ftyp":
        return f"a HEIC picture; {convert}" if data[8:12] in _HEIF_BRANDS else f"a video; {convert}"
    for beginning, name in _OTHERS:
        if data.startswith(beginning):
            return f"{name}; {convert}"
    head = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"<svg" in head and head.startswith((b"<svg", b"<?xml", b"<!--", b"<!doctype")):
        return f"an SVG drawing; {convert}"
    if head.startswith((b"<!doctype html", b"<html")):
        return "a web page"
    return "no picture of a kind that is known (PNG, JPEG, GIF, WEBP, BMP, TIFF, AVIF)"


def is_complete(kind: str, data: bytes) -> bool:
    """Whether the data has its kind's end. A decoder may forgive what a provider then refuses."""
    match kind:
        case "PNG":
            return data.rfind(b"IEND\xaeB`\x82") >= 0
        case "JPEG":
            return data.rfind(b"\xff\xd9") >= 0
        case "GIF":
            return data.rstrip(b"\0").endswith(b";")
        case "WEBP":
            return int.from_bytes(data[4:8], "little") + 8 <= len(data)
    return False
