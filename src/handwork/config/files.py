"""TOML files as layers, read with care for whatever may lie there instead."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from datetime import date, time
from pathlib import Path
from typing import Any, Literal

from handwork.config.key_lines import DEEPEST, KeyLines
from handwork.config.layers import KeyPath, Layer
from handwork.errors import ConfigError

LARGEST = 1_000_000
"""Bytes of a configuration."""
_SOON = 20_000
"""Characters that are parsed soon enough, whatever they are."""
_LONG_NUMBER = re.compile(r"\d{4300}")  # what Python does not turn into a number


def is_there(file: Path) -> bool:
    """Whether something of that name exists, readable or not. Raises ConfigError if that cannot be known."""
    try:
        file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from None
    return True


def toml_layer(file: Path, kind: Literal["setup", "file"] = "file", data: bytes | None = None) -> Layer:
    """A TOML file as a layer; `data` is its content, if it was read already. Raises ConfigError."""
    text = read_text(file, data)
    lines = KeyLines(text)
    tables = _parsed(text, file, lines)
    return Layer(kind, tables, lambda path: f"{file}, line {lines.line(path)}", file, lines.line, strict=True)


def read_text(file: Path, data: bytes | None = None, *, largest: int = LARGEST) -> str:
    """The text of a file (whose content may have been read already), without a byte-order mark. A pipe or a device is never
    waited for."""
    try:
        data = read_regular(file, largest) if data is None else data
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from None
    if len(data) > largest:
        raise ConfigError(f"{file}: the configuration is larger than {largest:,} bytes")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(
            f"{file}, line {line}: the configuration is not UTF-8 text", hint="save it with the encoding UTF-8"
        ) from None


def read_regular(file: Path, largest: int = LARGEST) -> bytes:
    """A file's bytes, one more than `largest` at most. Raises OSError, also for what is no regular file."""
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        mode = os.fstat(descriptor).st_mode
        if str(file) != os.devnull and not stat.S_ISREG(mode):
            raise OSError("it is a directory" if stat.S_ISDIR(mode) else "it is no regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            return stream.read(largest + 1)
    finally:
        os.close(descriptor)


def _unreadable(file: Path, error: OSError | ValueError) -> ConfigError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ConfigError(f"{file}: the configuration cannot be read: {why}")


def _parsed(text: str, file: Path, lines: KeyLines) -> dict[str, Any]:
    if len(text) > _SOON and lines.too_deep():  # the parser's time is the square of a dotted key's length
        raise too_much(text, file, lines, RecursionError())
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _no_toml(text, file, lines, str(error)) from None
    except (RecursionError, ValueError) as error:
        raise too_much(text, file, lines, error) from None
    if too_deep(data):
        raise too_much(text, file, lines, RecursionError())
    if found := _date_in(data, ()):
        at = f"{file}, line {lines.line(found)}"
        raise ConfigError(f"{at}: {'.'.join(found)} is a date or time, and no setting is", hint="put a text in quotes")
    return data


def _date_in(value: object, path: KeyPath) -> KeyPath | None:
    """Where a date or time stands, which would be taken for a text otherwise."""
    if isinstance(value, date | time):
        return path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for name, each in inner if (found := _date_in(each, (*path, str(name))))), None)


def _no_toml(text: str, file: Path, lines: KeyLines, error: str) -> ConfigError:
    what, at, place = error.partition(" (at ")
    found = re.match(r"line (\d+)", place)
    number = int(found[1]) if at and found else text.count("\n") + 1
    if what.startswith("Cannot overwrite a value") and (twice := lines.repeated()):
        path, first, number = twice
        what = f"{'.'.join(path)} is set twice; first on line {first}"
    elif what.startswith("Cannot overwrite a value") and (path := lines.on(number)):
        what = f"{'.'.join(path)} has a value since line {lines.line(path)}, so it cannot be a table too"
    elif declared := re.match(r"Cannot declare \((.*?),?\) twice", what):
        name = ".".join(part.strip("'\" ") for part in declared[1].split(","))
        what = f"the table [{name}] stands there twice"
    return ConfigError(f"{file}, line {number}: this is not valid TOML: {what}")


def too_much(text: str, file: Path, lines: KeyLines, error: Exception) -> ConfigError:
    """What no setting can be, however well it is written: levels without end, numbers of thousands of digits."""
    if isinstance(error, RecursionError):
        number, what = lines.too_deep(), f"more than {DEEPEST} levels"
    else:
        long = _LONG_NUMBER.search(text)
        number = text.count("\n", 0, long.start()) + 1 if long else None
        what = "a number of thousands of digits" if long else str(error)
    at = f", line {number}" if number else ""
    return ConfigError(f"{file}{at}: this is no configuration: it has {what}" if number else f"{file}: {what}")


def too_deep(data: object) -> bool:
    """Whether parsed data has more levels than any setting."""
    level: list[object] = [data]
    for _ in range(DEEPEST):
        inner: list[object] = []
        for value in level:
            if isinstance(value, Mapping):
                inner.extend(value.values())
            elif isinstance(value, list):
                inner.extend(value)
        if not inner:
            return False
        level = inner
    return True
