"""From a tool's result to what the model sees of it: clean, masked, bounded (CONTRACT B8, B10)."""

from __future__ import annotations

from pydantic_core import PydanticSerializationError, from_json, to_json

from handwork.errors import PictureError
from handwork.schema import JSON, Artifact, Image, ToolCall, ToolResult, scrub
from handwork.schema.visible import Seen, seen
from handwork.session import Session, uncancelled
from handwork.store.past import Outcome
from handwork.tool.pictures import picture_of_base64
from handwork.tool.threads import run_in_thread

STEP_LIMIT = 400_000
"""Characters that all results of one step may have together when the agent sets no max_observe."""
STEP_SHARE = 5
"""With max_observe, the results of one step have together at most this many times as much."""
NOTE_LIMIT = 1000
"""Characters of a tool's own note about itself, which survives the cut."""
_NOTHING = "Cmd `{}` completed with no output"
_SOON = 200_000
"""Characters that are looked through at once; more of them in a thread."""


def limit_for(max_observe: int | None, calls: int) -> int:
    """Characters that one of `calls` results of a step may have."""
    each, together = (max_observe, STEP_SHARE * max_observe) if max_observe else (STEP_LIMIT, STEP_LIMIT)
    return min(each, together // max(calls, 1))


async def outcome_of(
    session: Session, call: ToolCall, result: ToolResult, limit: int, *, problem: str = "", text: str = ""
) -> Outcome:
    """What a result comes to; `problem` are words for what the tool raised, `text` those that an override gave instead."""
    name = call.function.name
    frame, body = ("", problem or text) if problem or text else framed(name, str(result))
    kept = "what was kept is in" if (result.details or {}).get("omitted_bytes") else "the whole text is in"
    visible, frame = await _seen(scrub(body)), session.masked(seen(scrub(frame)).text)
    file = f"{name}-{call.id}.txt"
    shown, artifact = await observe(session.masked(visible.text), limit, session, file, kept, frame)
    notes = [seen(str(note)).text for note in (result.system, visible.note_with_advice) if note]
    images, broken = await _images(result)
    session.keep_images(images)
    for note in (*notes, *broken):
        shown = f"{shown}\n({session.masked(scrub(str(note)))[:NOTE_LIMIT]})"
    return Outcome(
        shown,
        is_error=bool(problem or result.error),
        images=images,
        details=session.masked(_plain(result.details)),
        artifacts=(*result.artifacts, artifact) if artifact else result.artifacts,
    )


async def _seen(text: str) -> Seen:
    """The text as a model is given it: what no person sees in it, no model obeys."""
    if len(text) < _SOON:
        return seen(text)
    found, _ = await uncancelled(run_in_thread(seen, text))
    return found


async def _images(result: ToolResult) -> tuple[tuple[Image, ...], list[str]]:
    """The pictures of a result, as they are sent to models, and a note on each that cannot be used: in a thread, as decoding takes its
    time, and to its end, as being cancelled meanwhile must not lose the result of a call that is done."""
    images: list[Image] = []
    notes: list[str] = []
    for given in (result.base64_image, *result.images):
        if not given:
            continue
        try:
            if not isinstance(given, str):
                raise PictureError(f"it is no base64 text but of type {type(given).__name__}")
            image, _ = await uncancelled(run_in_thread(picture_of_base64, given))
            images.append(image)
        except PictureError as error:
            notes.append(f"The tool returned an image that cannot be used: {error.message}")
    return tuple(images), list(dict.fromkeys(notes))


def _plain(details: JSON) -> dict[str, JSON] | None:
    """Details as JSON can hold them."""
    if not details:
        return None
    try:
        made: dict[str, JSON] = from_json(scrub(to_json(details, serialize_unknown=True).decode()))
    except (PydanticSerializationError, ValueError, RecursionError):
        return {"details": scrub(repr(details))[:NOTE_LIMIT]}
    return made


async def observe(
    text: str, limit: int, session: Session, file: str, kept: str, frame: str = ""
) -> tuple[str, Artifact | None]:
    """The text behind its frame if it is short enough, else head and tail around a note; the whole text, and nothing but it,
    goes to a file of the artifacts."""
    shown = f"{frame}{text}"
    if len(shown) <= limit:
        return shown, None
    artifact = None
    try:
        artifact = await session.save_artifact(file, text.encode(), title="long output", media_type="text/plain")
        where = f"{kept} {session.sandbox.artifacts.rstrip('/')}/{artifact.path.rpartition('/')[2]}"
    except OSError as error:
        where = f"the whole text could not be kept: {error.strerror}"
    note = f"\n\n… [{len(shown) - limit:,} of {len(shown):,} characters are left out here; {where}] …\n\n"
    room = limit - len(note)
    if room < limit // 2:  # so small a limit has no room for explanations
        return shown[:limit], artifact
    head = (room + 1) // 2
    return shown[:head] + note + shown[-(room - head) :], artifact


def framed(name: str, shown: str) -> tuple[str, str]:
    """OpenManus's words for a call that returned, and behind them what it returned."""
    return (f"Observed output of cmd `{name}` executed:\n", shown) if shown else ("", _NOTHING.format(name))
