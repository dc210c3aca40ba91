"""Record a real run of the embedded model as the picture in the README: `python docs/recording.py` writes docs/first-run.svg.

The command runs in a pseudo-terminal; what stands on its screen at the end is drawn. Needs the development environment (pyte)
and the model (`handwork model fetch smollm2-135m`, which `make demo` does).
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
from itertools import groupby
from pathlib import Path

import pyte
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

COLUMNS, ROWS = 96, 40
TASK = 'Create greeting.txt containing "Hello from a small model.", then read greeting.txt'
COMMANDS = [f"handwork '{TASK}' --model local:smollm2-135m", "cat greeting.txt", "handwork sessions list"]
TARGET = Path(__file__).with_name("first-run.svg")
_THEME = TerminalTheme(
    (24, 26, 31), (214, 218, 224),
    [(24, 26, 31), (224, 108, 117), (126, 198, 109), (222, 184, 99), (97, 160, 240), (198, 120, 221), (86, 190, 205), (171, 178, 191)],
    [(92, 99, 112), (240, 130, 138), (150, 215, 130), (236, 205, 130), (130, 185, 250), (215, 150, 235), (120, 210, 222), (255, 255, 255)],
)  # fmt: skip
# rich's own frame would load a font from the network: a picture must not
_FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g></g></svg>
"""


def run(screen: pyte.Screen, stream: pyte.ByteStream, command: str, folder: Path, environ: dict[str, str]) -> None:
    """Type a command at a prompt, and let it run on the screen to its end."""
    stream.feed(f"\x1b[1;32m$\x1b[0m \x1b[1m{command}\x1b[0m\r\n".encode())
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", screen.lines, screen.columns, 0, 0))
    process = subprocess.Popen(
        shlex.split(command), cwd=folder, env=environ, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:  # the other side is closed
            break
        if not data:
            break
        stream.feed(data)
    os.close(master)
    if process.wait() != 0:
        sys.exit(f"{command} ended with {process.returncode}:\n" + "\n".join(screen.display))
    stream.feed(b"\r\n")


def drawn(screen: pyte.Screen) -> Text:
    """The screen as styled text."""
    rows = [screen.buffer[row] for row in range(screen.cursor.y + 1)]
    text = Text(end="")
    for row in rows:
        line = Text()
        cells = (row[column] for column in range(screen.columns))
        for style, alike in groupby(cells, _style):
            line.append("".join(cell.data for cell in alike), style)
        line.rstrip()
        text.append_text(line).append("\n")
    text.rstrip()
    return text


def _style(cell: pyte.screens.Char) -> Style:
    colour = {"default": None, "brown": "yellow"}.get(cell.fg, cell.fg)
    if colour is not None and len(colour) == 6 and colour not in ("yellow", "purple"):
        colour = f"#{colour}"
    return Style(color=colour and colour.replace("bright", "bright_"), bold=cell.bold, italic=cell.italics)


def main() -> None:
    """Record, and write the picture."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "work"
        folder.mkdir()
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environ = {**os.environ, "PATH": path, "TERM": "xterm-256color", "XDG_DATA_HOME": f"{home}/data"}
        for command in COMMANDS:
            run(screen, stream, command, folder, environ)
        text = drawn(screen)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(_without(text, home))
    TARGET.write_text(console.export_svg(title="handwork", theme=_THEME, code_format=_FRAME, unique_id="run"))


def _without(text: Text, home: str) -> Text:
    """The text with the recording's own folder shown as ~."""
    lines = []
    for line in text.split("\n"):
        while (at := line.plain.find(home)) >= 0:
            line = line[:at] + Text("~", line.get_style_at_offset(Console(), at)) + line[at + len(home) :]
        lines.append(line)
    return Text("\n").join(lines)


if __name__ == "__main__":
    main()
