"""What is pasted: long texts stand as a short mark until they are sent, pictures become a mention of their file."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from handwork.config.own_keys import without_keys

_LINES, _CHARACTERS = 30, 4000
"""A longer paste is shown as a mark."""
_LARGEST = 20_000_000
_SECONDS = 5.0
IMAGES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff"})
_READERS = (
    ("wl-paste", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
)
_PNG = b"\x89PNG\r\n\x1a\n"


class Pastes:
    """The long texts that were pasted into a draft."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def take(self, text: str) -> str:
        """The text, or the mark that stands for it."""
        lines = text.count("\n") + 1
        if lines <= _LINES and len(text) <= _CHARACTERS:
            return text
        mark = f"[pasted #{len(self._texts) + 1}: {lines:,} line{'s' if lines > 1 else ''}, {len(text):,} characters]"
        self._texts[mark] = text
        return mark

    def whole(self, text: str) -> str:
        """The text with each mark replaced by what it stands for."""
        if not self._texts:
            return text
        marks = "|".join(map(re.escape, self._texts))
        return re.sub(marks, lambda found: self._texts[found[0]], text)


def mention_of_image(pasted: str) -> str | None:
    """`@path ` if what was pasted, or dropped on the terminal, is the path of a picture; else None."""
    text = pasted.strip()
    if not text or "\n" in text or len(text) > 4096:
        return None
    if text.startswith("file://"):
        text = unquote(urlsplit(text).path)
    elif len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    else:
        text = re.sub(r"\\(.)", r"\1", text)
    path = Path(text).expanduser() if text.startswith("~/") else Path(text)
    try:
        found = path.suffix.lower() in IMAGES and path.is_file()
    except (OSError, ValueError):
        return None
    return f"{mention(str(path))} " if found else None


def mention(path: str) -> str:
    """A path as it is mentioned in a message."""
    return f"@{path}" if not re.search(r"[\s\"]", path) else f'@"{path}"'


async def clipboard_image() -> Path | None:
    """The clipboard's picture as a file in the temporary folder; None if there is none, or no program that reads it."""
    for program, *arguments in _READERS:
        if shutil.which(program) is None:
            continue
        data = await _output_of(program, *arguments)
        if data.startswith(_PNG) and len(data) <= _LARGEST:
            handle, name = tempfile.mkstemp(prefix="handwork-clipboard-", suffix=".png")
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            return Path(name)
    return None


async def _output_of(*argv: str) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=without_keys(os.environ),
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), _SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return b""
    return out if process.returncode == 0 else b""
