"""The escapes of $'…' in the shell's language."""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|([abeEfnrtv\\'\"?]))"
)
_SIGNS = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


def decoded(text: str) -> str | None:
    """What stands between the quotes, None if that cannot be told (a NUL, half a character, an escape of no meaning)."""
    made, at = bytearray(), 0
    for found in re.finditer(r"\\", text):
        if found.start() < at:
            continue
        made += text[at : found.start()].encode("utf-8", "surrogatepass")
        escape = _ESCAPE.match(text, found.start())
        if escape is None:
            return None
        piece = _meant(escape)
        if piece is None:
            return None
        made += piece
        at = escape.end()
    made += text[at:].encode("utf-8", "surrogatepass")
    try:
        return made.decode()
    except UnicodeDecodeError:
        return None


def _meant(escape: re.Match[str]) -> bytes | None:
    octet, short, long, octal, sign = escape.groups()
    if sign:
        return _SIGNS.get(sign, sign).encode()
    if octet or octal:
        value = int(octet, 16) if octet else int(octal, 8)
        return bytes([value]) if 0 < value < 256 else None
    point = int(short or long, 16)
    return chr(point).encode() if 0 < point < 0x110000 and not 0xD800 <= point < 0xE000 else None
