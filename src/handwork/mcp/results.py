"""What a server answers, as a tool's result (CONTRACT D11): its texts for the model, its pictures, and the rest as files for people."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from handwork.errors import MCPLost, MCPRefused, MCPServerError
from handwork.mcp.cleaning import is_too_deep, one_line
from handwork.mcp.content import Answer, Embedded, Link, Media, Part, Text, Unknown
from handwork.schema import JSON, Artifact, ToolResult
from handwork.tool.base import ToolContext
from handwork.tool.wording import counted, joined

NOTHING = "No output returned."
NOT_CONNECTED = "Not connected to MCP server"
FAILED = "Error executing tool: "
MOST_PARTS = 10_000
LARGEST = 64 * 1024 * 1024
"""Characters that all parts of one answer have together; what lies behind is left out."""
MOST_PICTURES = 100
MOST_FILES = 100
_LARGEST_STRUCTURED = 1024 * 1024
_ENDINGS = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "application/zip": ".zip",
    "audio/flac": ".flac",
    "audio/mp4": ".m4a",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/wav": ".wav",
    "audio/webm": ".webm",
    "audio/x-wav": ".wav",
    "image/svg+xml": ".svg",
    "text/csv": ".csv",
    "text/html": ".html",
    "text/plain": ".txt",
    "video/mp4": ".mp4",
}


class Keep(Protocol):
    """Keep bytes as a file for people: says where the agent finds it, or raises OSError."""

    async def __call__(self, name: str, data: bytes, media_type: str) -> tuple[str, Artifact]: ...


def keeper(context: ToolContext | None) -> Keep | None:
    """The artifacts of a call's session."""
    if context is None:
        return None

    async def keep(name: str, data: bytes, media_type: str) -> tuple[str, Artifact]:
        artifact = await context.save_artifact(name, data, media_type=media_type)
        return f"{context.sandbox.artifacts.rstrip('/')}/{artifact.path.rpartition('/')[2]}", artifact

    return keep


async def result_of(answer: Answer, name: str, keep: Keep | None = None) -> ToolResult:
    """The result of a call whose answer came.

    Args:
        answer: whatever the server says in it is data.
        name: the tool's name, for files.
        keep: where sounds and other data go; None leaves them out.
    """
    return _result(
        answer, await _piled(answer.parts, name, keep), "the server does not say why" if answer.failed else NOTHING
    )


def _result(answer: Answer, pile: _Pile, nothing: str) -> ToolResult:
    """Texts first, or `nothing`, and behind them what is told of the other parts."""
    text, details = ", ".join(pile.texts), dict[str, JSON]()
    if answer.structured is not None and not is_too_deep(answer.structured):
        said = json.dumps(answer.structured, ensure_ascii=False)
        if len(said) <= _LARGEST_STRUCTURED:
            details["structured"] = answer.structured
        if not _is_said(answer.structured, pile.texts):
            text = "\n".join(filter(None, (text, said[:LARGEST])))
    text = "\n".join(filter(None, (text or nothing, *pile.lines)))
    notes = pile.notes or ([counted(len(pile.pictures), "picture")] if pile.pictures and not pile.texts else [])
    return ToolResult(
        output=None if answer.failed else text,
        error=f"{FAILED}{text}" if answer.failed else None,
        images=tuple(pile.pictures),
        details=details or None,
        artifacts=tuple(pile.artifacts),
        system=joined(notes) or None,
    )


def failure(error: MCPServerError) -> ToolResult:
    """The result of a call that came to no answer: the server had it, or it never reached one."""
    if isinstance(error, (MCPRefused, MCPLost)):
        return ToolResult(error=f"{FAILED}{error.what or type(error).__name__}")
    return ToolResult(error=NOT_CONNECTED, system=joined((error.what, error.hint)) or None)


async def text_of_resource(contents: Sequence[Embedded], name: str, keep: Keep | None = None) -> ToolResult:
    """The content of a resource as a tool's result."""
    return _result(Answer(), await _piled(contents, name, keep), "" if contents else NOTHING)


@dataclass(slots=True)
class _Pile:
    """What an answer's parts come to."""

    texts: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


async def _piled(parts: Sequence[Part], name: str, keep: Keep | None) -> _Pile:
    pile, size = _Pile(), 0
    for number, part in enumerate(parts):
        size += _size(part)
        if number >= MOST_PARTS or size > LARGEST:
            pile.notes.append(f"{counted(len(parts) - number, 'part')} of the answer left out: it is too large")
            break
        if isinstance(part, Text):
            pile.texts.append(part.text)
        elif isinstance(part, Media) and part.kind == "image":
            _add_picture(pile, part.data)
        else:
            pile.lines.append(await _line(pile, part, name, keep))
    return pile


def _size(part: Part) -> int:
    match part:
        case Text(text):
            return len(text)
        case Media(data=data):
            return len(data)
        case Embedded(text=text, blob=blob):
            return len(text or "") + len(blob or "")
    return 0


def _add_picture(pile: _Pile, data: str) -> None:
    if len(pile.pictures) < MOST_PICTURES:
        pile.pictures.append(data)
    else:
        pile.notes[:] = [f"Only the first {MOST_PICTURES} pictures are kept"]


async def _line(pile: _Pile, part: Part, name: str, keep: Keep | None) -> str:
    """What the text says of a part that is no text of its own."""
    match part:
        case Embedded(uri, text=str(text)):
            return f"Resource {one_line(uri)}:\n{text}"
        case Embedded(uri, blob=str(blob), media_type=media_type):
            if media_type.startswith("image/") and media_type not in _ENDINGS:
                _add_picture(pile, blob)
                return f"Resource {one_line(uri)}: a picture"
            return f"Resource {one_line(uri)}: {await _kept(pile, blob, media_type, name, keep)}"
        case Media(data=data, media_type=media_type):
            return f"Sound: {await _kept(pile, data, media_type, name, keep)}"
        case Link(uri, title, description, media_type):
            words = ", ".join(filter(None, map(one_line, (title, media_type, description))))
            return f"Link to the resource {one_line(uri)}" + (f" ({words})" if words else "")
        case Unknown(kind):
            return f"[a part of an unknown kind ({one_line(kind, 40)}) is left out]"
    return ""


async def _kept(pile: _Pile, data: str, media_type: str, name: str, keep: Keep | None) -> str:
    """Where data has gone, in words."""
    kind = one_line(media_type, 100) or "application/octet-stream"
    try:
        raw = base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        return f"{kind}, which is no base64 and is left out"
    told = f"{kind}, {counted(len(raw), 'byte')}"
    if keep is None or len(pile.artifacts) >= MOST_FILES:
        return f"{told}, left out"
    try:
        path, artifact = await keep(f"{name}{_ENDINGS.get(kind.partition(';')[0].strip().lower(), '.bin')}", raw, kind)
    except OSError as error:
        return f"{told}, which could not be kept: {error.strerror}"
    pile.artifacts.append(artifact)
    return f"{told}, kept in {path}"


def _is_said(structured: JSON, texts: Sequence[str]) -> bool:
    """Whether the texts say it already: all of it, or the one value in it, as a whole or one item a text."""
    inner = _wrapped(structured)
    if any(_says(text, structured) or _says(text, inner) for text in texts):
        return True
    items = inner if isinstance(inner, list) else [inner]
    return len(items) == len(texts) and all(map(_says, texts, items))


def _wrapped(structured: JSON) -> JSON:
    """The one value of an object that has one by the name `result`, or a text by any name: such a name says nothing more."""
    if isinstance(structured, dict) and len(structured) == 1:
        ((name, value),) = structured.items()
        if name == "result" or isinstance(value, str):
            return value
    return structured


def _says(text: str, value: JSON) -> bool:
    if isinstance(value, str):
        return text == value
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False
