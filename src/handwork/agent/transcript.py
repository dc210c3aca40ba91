"""A conversation as a text to be summarised, and what of it is kept word for word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from handwork.schema import Message, Role

HEADING = "Summary of the conversation so far, made when it was compacted; the user's own words stand above."
_ORPHANS = ("Image returned by ", "Result of an earlier call of ")
"""How words begin that stand in the user's place and are none of theirs."""
_ONE, _TOGETHER = 8_000, 32_000
"""Characters of one text of the human, and of all, that are kept."""
_IMAGES = 4
"""Pictures of the human's, the newest, that are kept."""


def is_summary(message: Message) -> bool:
    """Whether this is what an earlier compacting left."""
    return message.role is Role.USER and (message.content or "").startswith(HEADING)


def summary_message(summary: str, plan: str, dropped: int) -> Message:
    """The message that stands for what is no longer there; `dropped` is how many of the human's messages are not."""
    gone = f"{dropped} earlier messages of the user are left out there." if dropped else ""
    parts = [HEADING, gone, summary, f"The plan as it stands:\n{plan}" if plan else ""]
    return Message.user_message("\n\n".join(part for part in parts if part))


def human_words(messages: Iterable[Message]) -> list[Message]:
    """What the human said: requests and steering, not what tools returned in the user's place."""
    return [message for message in messages if message.role is Role.USER and not _is_returned(message)]


def _is_returned(message: Message) -> bool:
    return message.tool_call_id is not None or is_summary(message) or (message.content or "").startswith(_ORPHANS)


def kept_words(words: Sequence[Message]) -> list[Message]:
    """The human's words, bounded: the first and the newest, each long one without its middle, the newest pictures."""
    kept: list[Message] = []
    room, images = _TOGETHER - len(shortened((words[0].content if words else "") or "", _ONE)), _IMAGES
    for message in reversed(words):
        text = shortened(message.content or "", _ONE)
        first = message is words[0]
        if not first:
            if len(text) > room:
                continue
            room -= len(text)
        shown = message.images[:images]
        images -= len(shown)
        if len(shown) < len(message.images):
            text += "\n[a picture that came with this is no longer shown]"
        same = text == message.content and shown == message.images
        kept.append(message if same else replace(message, content=text, images=shown))
    return kept[::-1]


def transcript_of(messages: Sequence[Message], each: int, together: int) -> str:
    """The conversation as a text: `each` bounds the characters of one part, `together` those of all."""
    parts = [part for message in messages for part in _parts(message, each)]
    return f"<conversation>\n{shortened(chr(10).join(parts), together)}\n</conversation>\n\nWrite the summary."


def _parts(message: Message, each: int) -> list[str]:
    text = shortened(message.content or "", each)
    pictures = f" [and {len(message.images)} pictures]" if message.images else ""
    if message.role is Role.TOOL:
        return [f"Result of {message.name}{' (failed)' if message.is_error else ''}: {text}{pictures}"]
    who = {Role.ASSISTANT: "Agent", Role.USER: "User", Role.SYSTEM: "System"}[message.role]
    if _is_returned(message) and message.role is Role.USER:
        who = "Note"
    said = [f"{who}: {text}{pictures}"] if text or pictures else []
    calls = (call.function for call in message.tool_calls)
    return said + [f"Agent calls {call.name}: {shortened(call.arguments, each)}" for call in calls]


def shortened(text: str, limit: int) -> str:
    """A text without its middle, if it is longer than the limit by more than the note about it."""
    if len(text) <= limit + 100:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters are left out here …]\n{text[-half:]}"
