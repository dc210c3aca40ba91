"""Messages of JSON-RPC as lines: bytes as they come are cut into lines, and a line is read as a message, or told to be none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from handwork.mcp.amount import MOST_VALUES, has_too_many

LONGEST = 64 << 20
"""Bytes that one message may have."""
_BOM = b"\xef\xbb\xbf"
_BEGIN = (b"{", b"[")
_ENDS = 400
"""So much of both ends of a message that cannot be read is looked through for the id that it answers."""
_ID = re.compile(rb'"id"\s*:\s*(\d{1,15}|"[^"\\]{1,100}")')
_UNREADABLE = -32700
_NOT_READ = "It sent an answer that is no JSON, or nested too deeply, or has too large a number"
_TOO_MANY = f"It sent an answer of more than {MOST_VALUES:,} values, so it was not read"


class TooLong(Exception):
    """A line is longer than any message may be."""


class Lines:
    """Cuts what is fed into lines; the cost is linear, and no more than one line is held."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes | bytearray]:
        """The lines that are complete by now, without their ends and without empty ones. Raises TooLong."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            yield from self._whole(line)
        self._add(rest)

    def end(self) -> Iterator[bytes | bytearray]:
        """What stands behind the last end of a line."""
        yield from self._whole(b"")

    def _whole(self, line: bytes) -> Iterator[bytes | bytearray]:
        whole: bytes | bytearray = line
        if self._rest:
            self._add(line)
            whole, self._rest = self._rest, bytearray()
        if whole[:1] not in _BEGIN:  # else nothing is copied: what stands behind a message, its parser skips
            whole = whole.strip().removeprefix(_BOM).strip()
        if whole:
            yield whole

    def _add(self, data: bytes) -> None:
        if len(self._rest) + len(data) > self._longest:
            self._rest.clear()
            raise TooLong
        self._rest += data


def messages(line: bytes | bytearray, *, whole: bool = True) -> list[Any]:
    """The messages of a line: one, several (a batch of the protocol's first versions), or none if it is no message.

    What our parser refuses (an unpaired surrogate, bytes that are no UTF-8) is read with a mark in its place; an answer that nobody
    can read (3,000 levels deep, or a million values) becomes an error for the request that it answers, which would wait for ever
    otherwise; not so what may be no `whole` line.
    """
    from mcp_types import jsonrpc_message_adapter
    from pydantic import ValidationError

    if line[:1] not in _BEGIN:
        return []
    if has_too_many(line):
        return _refusal(line, _TOO_MANY) if whole else []
    try:
        return [jsonrpc_message_adapter.validate_json(line, by_name=False)]
    except ValidationError:
        pass
    try:
        value = _marked(json.loads(line.decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return _refusal(line, _NOT_READ) if whole else []
    found: list[Any] = []
    for each in value if isinstance(value, list) else [value]:
        try:
            found.append(jsonrpc_message_adapter.validate_python(each, by_name=False))
        except ValidationError:
            continue
    return found


def written(message: Any) -> bytes:
    """A message as its line."""
    from pydantic_core import PydanticSerializationError

    try:
        text: str = message.model_dump_json(by_alias=True, exclude_unset=True)
    except PydanticSerializationError:  # an unpaired surrogate has no UTF-8, but JSON can write it
        text = json.dumps(message.model_dump(by_alias=True, exclude_unset=True))
    return text.encode() + b"\n"


def _marked(value: Any) -> Any:
    """The value with a mark in the place of each unpaired surrogate."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_marked(each) for each in value]
        case dict():
            return {_marked(key): _marked(each) for key, each in value.items()}
    return value


def _refusal(line: bytes | bytearray, why: str) -> list[Any]:
    from mcp_types import ErrorData, JSONRPCError

    ends = bytes(line[:_ENDS] + b"\n" + line[-_ENDS:])
    found = set(_ID.findall(ends))
    if len(found) != 1 or b'"jsonrpc"' not in ends or b'"method"' in ends:
        return []
    return [JSONRPCError(jsonrpc="2.0", id=json.loads(found.pop()), error=ErrorData(code=_UNREADABLE, message=why))]
