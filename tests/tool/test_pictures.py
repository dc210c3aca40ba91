"""Pictures on their way in: what passes, what is made smaller, and what is refused with which words."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow

from handwork.errors import PictureError
from handwork.schema import Image
from handwork.tool.picture_kinds import described
from handwork.tool.pictures import LARGEST, LONGEST, picture, picture_of_base64, picture_of_file, pictures_of


def drawn(kind: str = "PNG", size: tuple[int, int] = (40, 30), mode: str = "RGB", **options: Any) -> bytes:
    """The file of a picture that is dark on the left and bright on the right."""
    made = io.BytesIO()
    grey = Pillow.linear_gradient("L").rotate(90).resize(size)
    (grey if mode == "L" else grey.convert("RGB") if mode == "CMYK" else grey).convert(mode).save(made, kind, **options)
    return made.getvalue()


def noise(size: tuple[int, int], kind: str = "PNG", mode: str = "RGB", **options: Any) -> bytes:
    """The file of a picture that cannot be compressed."""
    made = io.BytesIO()
    bands = len(Pillow.new(mode, (1, 1)).getbands())
    Pillow.frombytes(mode, size, os.urandom(size[0] * size[1] * bands)).save(made, kind, **options)
    return made.getvalue()


def shown(image: Image) -> Any:
    """The picture as a provider reads it."""
    opened = Pillow.open(io.BytesIO(base64.b64decode(image.data)))
    opened.load()
    assert image.media_type == f"image/{(opened.format or '').lower()}"
    return opened


def bomb(width: int, height: int) -> bytes:
    """A PNG whose header names a size that its data does not have."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(10**6)))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_small_valid_picture_passes_byte_for_byte_with_its_real_type(kind: str) -> None:
    data = drawn(kind)
    image = picture(data)
    assert base64.b64decode(image.data) == data
    assert image.media_type == f"image/{kind.lower()}"
    assert image == Image.from_base64(image.data)


@pytest.mark.parametrize(("kind", "media_type"), [("BMP", "image/png"), ("TIFF", "image/png"), ("AVIF", "image/jpeg")])
def test_other_kinds_become_one_that_every_model_takes(kind: str, media_type: str) -> None:
    image = picture(drawn(kind))
    assert image.media_type == media_type
    assert shown(image).size == (40, 30)


def test_a_picture_of_9000_pixels_is_scaled() -> None:
    image = picture(drawn("PNG", (9000, 9000), "L"))
    assert shown(image).size == (LONGEST, LONGEST)


@pytest.mark.parametrize(("kind", "options"), [("PNG", {}), ("JPEG", {"quality": 99, "subsampling": 0})])
def test_a_picture_of_many_megabytes_is_made_small_enough(kind: str, options: dict[str, Any]) -> None:
    data = noise((1900, 1800), kind, **options)
    image = picture(data)
    assert len(data) > LARGEST >= len(base64.b64decode(image.data))
    assert shown(image).format == "JPEG"


def test_what_is_transparent_stays_so_until_it_is_too_large() -> None:
    assert shown(picture(drawn("PNG", (2500, 10), "RGBA"))).mode == "RGBA"
    palette = io.BytesIO()
    Pillow.new("P", (2500, 10)).save(palette, "GIF", transparency=0)
    assert shown(picture(palette.getvalue())).mode == "RGBA"
    assert shown(picture(noise((1900, 1800), mode="RGBA"))).mode == "RGB"


@pytest.mark.parametrize(
    ("kind", "mode"), [("JPEG", "CMYK"), ("TIFF", "CMYK"), ("TIFF", "F"), ("TIFF", "I"), ("TIFF", "1"), ("TIFF", "LAB")]
)
def test_odd_colour_modes_are_shown_as_they_look(kind: str, mode: str) -> None:
    image = shown(picture(drawn(kind, mode=mode)))
    assert image.mode in ("L", "RGB")
    if mode not in ("1", "LAB"):
        left, right = (image.convert("L").getpixel((x, 15)) for x in (1, 38))
        assert min(left, right) < 60
        assert max(left, right) > 200


def test_sixteen_bit_grey_keeps_its_levels() -> None:
    made = io.BytesIO()
    levels = struct.pack("<16H", *range(0, 65536, 4096))
    Pillow.frombytes("I;16", (16, 1), levels).save(made, "PNG")
    image = shown(picture(made.getvalue()))
    assert [round(image.getpixel((x, 0)) / 16) for x in range(16)] == list(range(16))


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_of_an_animation_the_first_frame_is_sent(kind: str) -> None:
    made = io.BytesIO()
    frames = [Pillow.new("RGB", (20, 20), colour) for colour in ("red", "blue")]
    frames[0].save(made, kind, save_all=True, append_images=frames[1:], duration=50)
    image = shown(picture(made.getvalue()))
    assert getattr(image, "n_frames", 1) == 1
    red, _, blue = image.convert("RGB").getpixel((10, 10))
    assert red > blue


def test_a_photo_is_turned_as_its_camera_said_and_tells_nothing_else() -> None:
    exif = Pillow.Exif()
    exif[0x0112], exif[0x010F] = 6, "Camera Maker"
    data = drawn("JPEG", (60, 20), exif=exif, comment=b"a private remark")
    image = picture(data)
    assert shown(image).size == (20, 60)
    raw = base64.b64decode(image.data)
    assert b"Camera Maker" in data
    assert b"Camera Maker" not in raw
    assert b"remark" not in raw
    assert not shown(image).getexif()


def test_a_turned_photo_that_is_scaled_is_turned_once() -> None:
    exif = Pillow.Exif()
    exif[0x0112] = 8
    assert shown(picture(drawn("JPEG", (4000, 1000), exif=exif))).size == (500, LONGEST)
    assert shown(picture(drawn("JPEG", (4000, 1000), "CMYK", exif=exif))).size == (500, LONGEST)


def test_where_a_small_photo_was_taken_is_never_sent() -> None:
    exif = Pillow.Exif()
    exif.get_ifd(0x8825)[1] = "N"
    exif[0x8825] = {1: "N", 2: (52.0, 31.0, 12.0)}
    data = drawn("JPEG", exif=exif)
    assert Pillow.open(io.BytesIO(data)).getexif().get_ifd(0x8825)
    assert not shown(picture(data)).getexif().get_ifd(0x8825)


@pytest.mark.parametrize("size", [(30_000, 30_000), (11_000, 11_000), (2**31 - 1, 2**31 - 1)])
def test_a_bomb_is_refused_before_it_is_decoded(size: tuple[int, int]) -> None:
    with pytest.raises(PictureError, match=r"too large|broken"):
        picture(bomb(*size))


def test_too_many_bytes_are_refused() -> None:
    with pytest.raises(PictureError, match=r"too large: 60\.0 MB"):
        picture(drawn() + bytes(60_000_000 - len(drawn())))
    with pytest.raises(PictureError, match="too large"):
        picture_of_base64("A" * 80_000_000)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF"])
def test_a_cut_off_picture_is_refused_with_its_kind(kind: str) -> None:
    data = noise((60, 60), kind)
    with pytest.raises(PictureError, match=rf"it is a broken or incomplete {kind} picture"):
        picture(data[: len(data) // 2])


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_picture_that_lacks_only_its_end_is_mended_or_refused(kind: str) -> None:
    data = drawn(kind)
    for cut in (1, 2, 4):
        try:
            image = picture(data[:-cut])
        except PictureError:
            continue
        shown(image)
        assert base64.b64decode(image.data) != data[:-cut]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "it is empty"),
        (b"hello", "no picture"),
        (b'<?xml version="1.0"?>\n<svg xmlns="x"/>', "SVG"),
        (b"<svg></svg>", "SVG"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"%PDF-1.7 x", "PDF"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "HEIC"),
        (b"\0\0\0\x18ftypisom\0\0\0\0", "video"),
        (b"PK\x03\x04", "archive"),
        (b"\x89PNG\r\n\x1a\n", "broken"),
        (b"\xff\xd8\xff", "broken"),
        (b"GIF89a", "broken"),
        (b"RIFF\0\0\0\0WEBP", "broken"),
        (b"II*\0", "broken"),
        (b"BM\0\0\0\0\0\0\0\0", "broken"),
        (b"\0\0\0\x18ftypavif", "broken"),
    ],
)
def test_what_is_no_picture_is_refused_with_words_for_what_it_is(data: bytes, told: str) -> None:
    with pytest.raises(PictureError, match=told):
        picture(data)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_whatever_the_bytes_are_they_are_a_valid_picture_or_refused(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF"]))
    raw = bytearray(_SAMPLES[kind])
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        image = picture(bytes(raw))
    except PictureError:
        return
    assert max(shown(image).size) <= LONGEST


_SAMPLES = {kind: drawn(kind) for kind in ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF")}


def test_base64_may_be_broken_into_lines_or_stand_in_a_data_url() -> None:
    data = drawn()
    text = base64.encodebytes(data).decode()
    assert picture_of_base64(text) == picture_of_base64(f"data:image/jpeg;base64,{text}") == picture(data)
    for bad in ("not base64!", "AAA", "é"):
        with pytest.raises(PictureError, match="no base64"):
            picture_of_base64(bad)


def test_a_file_is_read_and_every_error_names_it(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(drawn("JPEG"))
    assert picture_of_file(tmp_path / "a.png").media_type == "image/jpeg"
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_text("hello")
    (tmp_path / "empty").touch()
    for name, told in (
        ("none", "No such file"),
        ("", "a folder"),
        ("pipe", "no regular file"),
        ("text", "no picture"),
        ("empty", "empty"),
    ):
        with pytest.raises(PictureError, match=told) as caught:
            picture_of_file(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)


async def test_pictures_of_a_request_come_from_files_bytes_and_images_without_stopping_the_loop(tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    path.write_bytes(drawn("PNG", (9000, 4000), "L"))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    ready = picture(drawn())
    images = await pictures_of([str(path), path, drawn("GIF"), ready])
    counting.cancel()
    assert [image.media_type for image in images] == ["image/png", "image/png", "image/gif", "image/png"]
    assert images[3] is ready
    assert turns > 100
    with pytest.raises(PictureError, match="Picture 2"):
        await pictures_of([ready, b"none"])
    with pytest.raises(TypeError, match="list"):
        await pictures_of("a.png")


def test_heic_is_told_apart_from_a_video() -> None:
    assert "HEIC" in described(b"\0\0\0\x18ftypmif1")


def with_chunk(name: bytes, content: bytes, *, checksum: int | None = None) -> bytes:
    """A PNG with one more chunk behind its header."""
    data = drawn()
    checksum = zlib.crc32(name + content) if checksum is None else checksum
    return data[:33] + struct.pack(">I", len(content)) + name + content + struct.pack(">I", checksum) + data[33:]


@pytest.mark.parametrize("name", [b"iCCP", b"tEXt", b"eXIf", b"xYZz"])
def test_an_extra_part_with_a_wrong_checksum_is_left_out_as_viewers_do(name: bytes) -> None:
    assert picture(with_chunk(name, b"so\0\0x", checksum=1)) == picture(drawn())


def test_a_part_that_the_picture_needs_is_refused_with_a_wrong_checksum() -> None:
    with pytest.raises(PictureError, match="broken or incomplete PNG"):
        picture(with_chunk(b"PLTE", b"\0" * 3, checksum=1))


def test_an_extra_part_that_is_sound_stays() -> None:
    data = with_chunk(b"tEXt", b"Title\0A gradient")
    assert base64.b64decode(picture(data).data) == data
