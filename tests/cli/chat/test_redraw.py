"""How the prompt is drawn: in one write, and without anything of the old drawing left."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Callable

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.layout import FormattedTextControl, Layout, Window

from handwork.cli.chat.output import Output
from handwork.cli.chat.redraw import ChatApplication


class Writes(io.TextIOWrapper):
    """A terminal's stream that keeps each write on its own."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")
        self.size = os.terminal_size((80, 24))

    def taken(self) -> str:
        """What was written since the last time."""
        raw = self.buffer
        assert isinstance(raw, io.BytesIO)
        text = raw.getvalue().decode()
        raw.seek(0)
        raw.truncate()
        return text


async def test_what_goes_above_and_the_prompt_below_it_arrive_in_one_write() -> None:
    stream = Writes()
    writes: list[str] = []
    changed = asyncio.Event()

    async def until(condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                changed.clear()
                await changed.wait()

    class Recorded(Output):
        def flush(self) -> None:
            super().flush()
            if text := stream.taken():
                writes.append(text)
                changed.set()

    lines = ["> prompt"]
    with create_pipe_input() as keys:
        drawn = FormattedTextControl(lambda: "\n".join(lines))
        app = ChatApplication(
            Recorded(stream, "xterm"), layout=Layout(Window(drawn, dont_extend_height=True)), input=keys
        )
        running = asyncio.ensure_future(app.run_async())
        await until(lambda: any("prompt" in text for text in writes))
        del writes[:]
        app.print_above("one\n")
        app.print_above("two\n")
        await until(lambda: bool(writes))
        assert len(writes) == 1
        assert "one\r\ntwo\r\n" in writes[0]
        assert writes[0].index("\x1b[J") < writes[0].index("one") < writes[0].index("prompt")
        lines.append("more below")
        app.invalidate()
        await until(lambda: len(writes) == 2)
        assert "\x1b[J" not in writes[1]
        lines.pop()
        app.invalidate()
        await until(lambda: len(writes) == 3)
        assert "\x1b[J" in writes[2]
        assert "prompt" in writes[2]
        app.exit()
        await running


@pytest.mark.parametrize("name", ["ascii", "latin-1", "utf-8"])
def test_our_marks_are_replaced_where_the_encoding_has_none(name: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=name)
    output = Output(stream, "xterm")
    output.write_raw("▸ ⎿ ✗ …")
    output.flush()
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    expected = "▸ ⎿ ✗ …" if name == "utf-8" else "> L x ."
    assert stream.buffer.getvalue().decode(name) == expected
