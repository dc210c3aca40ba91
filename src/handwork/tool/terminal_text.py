"""What a program wrote for a terminal, as plain text: no escape sequences, no control characters."""

from __future__ import annotations

import codecs
import re

from handwork.sandbox.capture import Capture

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # strings for the device
    r"|\x1b[ -/]+[0-~]"  # character sets
    r"|\x1b[0-~]?"
)
_UNFINISHED = re.compile(r"(?:\r|\x1b(?:\[[0-?]*[ -/]*)?)\Z")
_OVERSTRIKE = re.compile(r"[^\n\x08]\x08")
_REDRAWN = 4
"""A line that was begun so often anew is a progress bar."""
_CONTROLS = {code: "\ufffd" for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in (0x09, 0x0A)}


def plain(text: str) -> str:
    """The text without escape sequences; CR becomes a line end, other control characters a visible sign.

    Of a line that was written over and over again, as progress bars do, the last state is kept.
    """
    text = _ESCAPES.sub("", text)
    if "\r" in text:
        # Line by line: one pattern for all looks anew from each character of a long line.
        text = "\n".join(map(_last_state, text.replace("\r\n", "\n").split("\n")))
    if "\x08" in text:
        text = _OVERSTRIKE.sub("", text)
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_CONTROLS)


def _last_state(line: str) -> str:
    if line.count("\r") < _REDRAWN:
        return line
    states = [state for state in line.split("\r") if state.strip()]
    if len(states) < _REDRAWN:
        return line
    return f"[{len(states) - 1} earlier states of this line, each overwritten, are left out]\n{states[-1]}"


def plain_ends(capture: Capture) -> str:
    """What was kept of an output as plain text, with a note in the middle that says how much is missing."""
    head, tail = capture.ends()
    if not capture.omitted:
        return plain((head + tail).decode("utf-8", "replace"))
    start = codecs.getincrementaldecoder("utf-8")("replace").decode(head)  # drops a cut last character
    cut = next((i for i in range(min(4, len(tail))) if tail[i] & 0xC0 != 0x80), 0)
    end = plain(tail[cut:].decode("utf-8", "replace"))
    return f"{plain(start)}\n[... {capture.omitted} bytes omitted ...]\n{end}"


class Fresh:
    """The newest output that was not shown yet, for progress: a slow listener gets the last `limit` bytes only."""

    def __init__(self, limit: int = 8192) -> None:
        self._limit = limit
        self._data = bytearray()
        self._rest = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, data: bytes) -> None:
        """Take more bytes in."""
        self._data += data[-self._limit :]
        if len(self._data) > 2 * self._limit:
            del self._data[: -self._limit]

    def take(self) -> str:
        """The text since the last time."""
        data, self._data = bytes(self._data[-self._limit :]), bytearray()
        text = self._rest + self._decoder.decode(data)
        cut = match.start() if (match := _UNFINISHED.search(text)) else len(text)
        self._rest = text[cut:]
        return plain(text[:cut])
