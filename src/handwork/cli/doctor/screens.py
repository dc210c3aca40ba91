"""The terminal: size, colours, and letters beyond ASCII."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator

from handwork.cli.doctor.finding import Finding, Ground
from handwork.cli.screen import is_terminal

_GROUP = "Terminal"
_NARROW, _LOW = 60, 15


def terminal(ground: Ground) -> Iterator[Finding]:
    """What a person would see."""
    environ = ground.settings.environ
    yield _letters()
    if not is_terminal(sys.stderr) and not is_terminal(sys.stdout):
        yield Finding(
            "terminal", _GROUP, "note", "no terminal here: output is plain lines, and questions wait (exit code 5)"
        )
        return
    columns, rows = shutil.get_terminal_size()
    if columns < _NARROW or rows < _LOW:
        text = f"the terminal is small ({columns} × {rows}): lines will be cut"
        yield Finding("terminal.size", _GROUP, "warning", text, "make the window larger: 80 × 24 is enough")
    else:
        yield Finding("terminal.size", _GROUP, "ok", f"{columns} × {rows} characters")
    name = environ.get("TERM", "")
    if name in ("", "dumb", "unknown"):
        text = f"TERM is {name or 'not set'}: no colours, no line editing"
        yield Finding(
            "terminal.kind", _GROUP, "warning", text, "export TERM=xterm-256color, if this is a usual terminal"
        )
    elif environ.get("NO_COLOR"):
        yield Finding("terminal.kind", _GROUP, "ok", f"{name}, without colours (NO_COLOR is set)")
    else:
        yield Finding("terminal.kind", _GROUP, "ok", f"{name}, with colours")


def _letters() -> Finding:
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    given = next((f"{name}={os.environ[name]}" for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "")
    if encoding == "utf8":
        return Finding("terminal.letters", _GROUP, "ok", "letters of every language (UTF-8)")
    text = f"output is written as {sys.stdout.encoding}{f' ({given})' if given else ''}: other letters are lost"
    return Finding("terminal.letters", _GROUP, "warning", text, "export LANG=C.UTF-8 (or PYTHONUTF8=1)")
