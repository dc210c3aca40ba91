"""Changes one server's entry in an mcp.json and leaves every other byte of the file as it is."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handwork.config.files import read_text
from handwork.config.json_text import parse_json, without_comments
from handwork.config.layers import KeyPath
from handwork.config.masking import VARIABLE, shown, without_secrets
from handwork.config.mcp_file import servers_place
from handwork.config.one_writer import alone_in
from handwork.config.own_keys import keys_in
from handwork.errors import ConfigError

_SERVERS = "mcpServers"
_BLANKS = " \t\n\r"
_INDENT = re.compile(r'\n([ \t]+)"')
_WHERE_FROM = re.compile(r"\$\{[^}]+\}")


def put_server(file: Path, name: str, entry: Mapping[str, Any], *, private: bool = True) -> None:
    """Write a server's entry, in the place of one of that name or behind the others; the file is made if it is missing.

    private: a new file is for its user's eyes only; one that gets a secret always is. Raises ConfigError.
    """
    with alone_in(file.parent):
        text, mode = _read(file)
        changed = _with(text, file, name, entry)
        if secrets_in(entry):
            mode = 0o600 if mode is None else mode & ~0o077
        _write(file, changed, 0o600 if mode is None and private else mode)


def remove_server(file: Path, name: str) -> bool:
    """Take a server out; False if it was not there. Raises ConfigError."""
    with alone_in(file.parent):
        text, mode = _read(file)
        plain = without_comments(text)
        begin = _begin(plain, _place(text, file))
        members = list(_members(plain, begin)) if begin is not None and plain[begin] == "{" else []
        number = next((number for number, each in enumerate(members) if each.name == name), None)
        if number is None:
            return False
        _write(file, _without(text, plain, members, number), mode)
        return True


def has_server(file: Path, name: str) -> bool:
    """Whether the file has an entry of that name. Raises ConfigError."""
    return entry_in(file, name) is not None


def entry_in(file: Path, name: str) -> object:
    """The entry of that name as it is written; None for none. Raises ConfigError."""
    text, _ = _read(file)
    found: Any = parse_json(text, file)[0]
    for key in (*_place(text, file), name):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def secrets_in(entry: Mapping[str, Any]) -> list[str]:
    """What of an entry is a secret that stands there itself, by its key: `env.TOKEN`, `headers.Authorization`, `url`, `args`."""
    found = [f"env.{name}" for name, value in _texts(entry, "env") if keys_in({name: value})]
    found += [f"headers.{name}" for name, value in _texts(entry, "headers") if _hides(f"{name}={value}")]
    found += ["url"] if _hides(str(entry.get("url", ""))) else []
    found += ["args"] if (args := list(entry.get("args", ()))) != shown(args) else []
    return found + [f"oauth.{name}" for name, _ in _texts(entry, "oauth") if name == "client_secret"]


def _texts(entry: Mapping[str, Any], key: str) -> Iterator[tuple[str, str]]:
    """Names and values that are looked up nowhere else."""
    values = entry.get(key)
    for name, value in values.items() if isinstance(values, Mapping) else ():
        if isinstance(value, str) and not VARIABLE.fullmatch(value) and not _WHERE_FROM.search(value):
            yield name, value


def _hides(text: str) -> bool:
    return without_secrets(text) != text


# ---- text


@dataclass(frozen=True, slots=True)
class _Member:
    """One member of an object: its name, where it starts, where its value begins and where that ends."""

    name: str
    start: int
    begin: int
    end: int


def _with(text: str, file: Path, name: str, entry: Mapping[str, Any]) -> str:
    place, plain = _place(text, file), without_comments(text)
    unit = found[1] if (found := _INDENT.search(plain)) else "  "
    if not plain.strip():
        return f"{json.dumps({_SERVERS: {name: entry}}, indent=unit, ensure_ascii=False)}\n"
    begin, level = _begin(plain, place), len(place) + 1
    if begin is None:
        return _appended(text, plain, list(_members(plain)), plain.index("{"), _SERVERS, {name: entry}, unit, 1)
    if plain[begin] != "{":
        raise ConfigError(f"{file}: {'.'.join(place)} must be an object: servers by their names")
    members = list(_members(plain, begin))
    same = next((each for each in members if each.name == name), None)
    if same is not None:
        return text[: same.begin] + _value(entry, unit, level, _newline(text)) + text[same.end :]
    return _appended(text, plain, members, begin, name, entry, unit, level)


def _without(text: str, plain: str, members: list[_Member], place: int) -> str:
    """The text without one member and the comma that parted it from another."""
    if place:
        return text[: members[place - 1].end] + text[members[place].end :]
    if len(members) > 1:
        return text[: members[0].start] + text[members[1].start :]
    before, after = plain.rindex("{", 0, members[0].start), plain.index("}", members[0].end)
    return f"{text[: before + 1]}{text[after:]}"


def _appended(
    text: str, plain: str, members: list[_Member], brace: int, name: str, value: object, unit: str, level: int
) -> str:
    """The text with one more member in the object that begins at `brace`."""
    newline = _newline(text)
    row = f"{newline}{unit * level}{json.dumps(name, ensure_ascii=False)}: {_value(value, unit, level, newline)}"
    if members:
        at = members[-1].end
        return f"{text[:at]},{row}{text[at:]}"
    closing = plain.index("}", brace)
    kept = text[brace + 1 : closing].rstrip()
    return f"{text[: brace + 1]}{kept}{row}{newline}{unit * (level - 1)}{text[closing:]}"


def _value(value: object, unit: str, level: int, newline: str) -> str:
    rows = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return newline.join([rows[0], *(f"{unit * level}{row}" for row in rows[1:])])


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _members(plain: str, begin: int | None = None) -> Iterator[_Member]:
    """The members of the object that begins there (None: the outermost one); the text is valid JSON."""
    decoder = json.JSONDecoder()
    place = _after(plain, 0 if begin is None else begin) + 1
    while plain[place := _after(plain, place)] != "}":
        start = place
        name, place = decoder.raw_decode(plain, place)
        value = _after(plain, _after(plain, place) + 1)
        _, end = decoder.raw_decode(plain, value)
        yield _Member(name, start, value, end)
        place = _after(plain, end)
        place += plain[place] == ","


def _after(plain: str, place: int) -> int:
    while plain[place] in _BLANKS:
        place += 1
    return place


def _place(text: str, file: Path) -> KeyPath:
    """Where the servers stand, or will. Raises ConfigError for what is no object in JSON."""
    place = servers_place(parse_json(text, file)[0])
    return (_SERVERS,) if place is None else place


def _begin(plain: str, place: KeyPath) -> int | None:
    """Where the value at a place begins; None if there is none."""
    begin = plain.find("{")
    for key in place:
        found = next((each for each in _members(plain, begin) if each.name == key), None) if begin >= 0 else None
        if found is None:
            return None
        begin = found.begin
    return begin


# ---- files


def _read(file: Path) -> tuple[str, int | None]:
    """The text ('' if there is no file) and its mode. Raises ConfigError for what we should not change."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return "", None
    except OSError as error:
        why = "it is a link" if error.errno == errno.ELOOP else error.strerror or str(error)
        raise _untouched(file, why) from None
    with os.fdopen(descriptor, "rb") as stream:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _untouched(file, "it is no file")
        if found.st_uid != os.geteuid():
            raise _untouched(file, "it belongs to somebody else")
        data = stream.read(2_000_000)
    read_text(file, data)  # that it can be a configuration
    return data.decode("utf-8-sig"), stat.S_IMODE(found.st_mode)


def _write(file: Path, text: str, mode: int | None) -> None:
    """Put a whole new file in the place of the old one. Raises ConfigError."""
    made = file.with_name(f".{file.name}.{secrets.token_hex(6)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(
            made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666 if mode is None else 0o600
        )
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
                if mode is not None:
                    os.fchmod(descriptor, mode)
                stream.write(text)
                stream.flush()
                os.fsync(descriptor)
            made.replace(file)
        except BaseException:
            made.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _untouched(file, error.strerror or str(error)) from None


def _untouched(file: Path, why: str) -> ConfigError:
    return ConfigError(f"{file} is not changed: {why}", hint="mend that, or write the server into the file yourself")
