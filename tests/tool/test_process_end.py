from __future__ import annotations

import pytest

from handwork.sandbox.capture import Capture
from handwork.tool.process_end import how_it_ended
from handwork.tool.terminal_text import plain_ends


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exit code 0"),
        (3, "exit code 3"),
        (-11, "killed by signal 11 (SIGSEGV)"),
        (-40, "killed by signal 40"),
        (None, "nobody knows how"),
    ],
)
def test_the_end_of_a_process_is_told_in_one_way_by_all_tools(code: int | None, words: str) -> None:
    assert how_it_ended(code) == words


@pytest.mark.parametrize("piece", [1, 3, 7, 1000])
def test_a_long_output_keeps_both_its_ends_and_counts_what_lies_between(piece: int) -> None:
    data = "".join(f"é{n} " for n in range(200)).encode()
    capture = Capture(101)
    for at in range(0, len(data), piece):
        capture.feed(data[at : at + piece])
    assert capture.ends() == (data[:51], data[-50:])
    assert (capture.total, capture.omitted) == (len(data), len(data) - 101)
    assert capture.finish() == (
        data[:51] + b"\n[... %d bytes left out ...]\n" % capture.omitted + data[-50:],
        capture.omitted,
    )
    assert "\ufffd" not in plain_ends(capture)
    assert f"[... {capture.omitted} bytes omitted ...]" in plain_ends(capture)


def test_a_short_output_is_kept_whole() -> None:
    capture = Capture(6)
    for part in (b"a\xc3", b"\xa9b", b"cd"):
        capture.feed(part)
    assert capture.finish() == (b"a\xc3\xa9bcd", 0)
    assert plain_ends(capture) == "aébcd"
