"""The terminal as chat writes to it: drawings that belong together arrive together, in letters that it knows."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output

from handwork.cli.lines import knows_marks

_PLAIN = str.maketrans("▸⎿│┊▎•·…✗✓↻↳→←–—⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏╭╮╰╯├┤┬┴┼─", ">L|:|*-.x+~>><--|/-\\|/-\\|/+++++++++-")
"""Our own marks where the terminal's encoding has none of them."""


class Output(Vt100_Output):
    """Vt100_Output that can hold back what it was given, so that erasing and drawing anew never flickers."""

    def __init__(self, stream: TextIO, term: str) -> None:
        self.held = False
        self._plain = not knows_marks(stream)
        super().__init__(stream, lambda: _size(stream), term=term, enable_bell=False, enable_cpr=False)

    def write(self, data: str) -> None:
        super().write(data.translate(_PLAIN) if self._plain else data)

    def write_raw(self, data: str) -> None:
        super().write_raw(data.translate(_PLAIN) if self._plain else data)

    def flush(self) -> None:
        if not self.held:
            super().flush()


def _size(stream: TextIO) -> Size:
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return Size(rows=24, columns=80)
    return Size(rows=max(size.lines, 4) if size.lines else 24, columns=max(size.columns, 20) if size.columns else 80)


def open_output(term: str) -> Output:
    """The terminal behind standard output."""
    return Output(sys.stdout, term)
