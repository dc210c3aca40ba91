"""What makes a history valid: each call has exactly one result, right behind it, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from handwork.schema import Memory, Message, Role, ToolCall


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """Calls that lack a result; `at` is where they were made, `newest` says whether no assistant spoke after them."""

    at: int
    calls: tuple[ToolCall, ...]
    newest: bool


def first_open(messages: Sequence[Message]) -> OpenTurn | None:
    """The oldest turn with calls whose results do not follow it."""
    for index in range(len(messages)):
        if missing := _unanswered(messages, index):
            later = messages[_end_of_results(messages, index) :]
            return OpenTurn(index, missing, all(message.role is not Role.ASSISTANT for message in later))
    return None


def open_at_end(messages: Sequence[Message]) -> int | None:
    """Where the model's last words stand, if calls in them lack a result behind them."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role is Role.ASSISTANT:
            return index if _unanswered(messages, index) else None
    return None


def _unanswered(messages: Sequence[Message], index: int) -> tuple[ToolCall, ...]:
    """The calls of a message whose results do not follow it."""
    if not (calls := messages[index].tool_calls):
        return ()
    answered = {result.tool_call_id for result in messages[index + 1 : _end_of_results(messages, index)]}
    return tuple(call for call in calls if call.id not in answered)


def adopt_orphans(memory: Memory) -> None:
    """Results that do not follow their call, and second ones, become words of the user behind the turn's own results: no
    provider takes them otherwise."""
    valid: list[Message] = []
    words: list[Message] = []
    expected: set[str] = set()
    for message in memory.messages:
        if message.role is not Role.TOOL:
            valid += words
            words, expected = [], {call.id for call in message.tool_calls}
            valid.append(message)
        elif message.tool_call_id in expected:
            expected.discard(message.tool_call_id)
            valid.append(message)
        else:
            words.append(_as_words(message))
    valid += words
    if len(valid) != len(memory.messages) or any(a is not b for a, b in zip(valid, memory.messages, strict=True)):
        memory.messages = valid


def forget_calls(memory: Memory, at: int) -> None:
    """Take the calls out of a message, as a last resort: they cannot be answered where they stand."""
    message = memory.messages[at]
    names = ", ".join(call.function.name for call in message.tool_calls)
    text = f"{message.content or ''}\n[calls that were never answered: {names}]".strip()
    memory.messages[at] = replace(message, content=text, tool_calls=())


def insert_results(
    memory: Memory, calls: Sequence[ToolCall], results: Sequence[Message], at: int | None = None
) -> None:
    """Put results right behind their calls, at `at` or wherever a tool has left those; without them they are words of the user."""
    if at is None or at >= len(memory.messages) or not set(calls) <= set(memory.messages[at].tool_calls):
        at = _place_of(memory, calls)
    if at is None:
        words = [_as_words(message) if message.role is Role.TOOL else message for message in results]
        memory.add_messages(words)
        return
    end = _end_of_results(memory.messages, at)
    if end == at + 1 == len(memory.messages):
        memory.add_messages(results)
        return
    order = {call.id: number for number, call in enumerate(memory.messages[at].tool_calls)}
    there = memory.messages[at + 1 : end]
    answers = [*there, *(message for message in results if message.role is Role.TOOL)]
    answers.sort(key=lambda message: order.get(message.tool_call_id or "", 0))
    memory.messages[at + 1 : end] = [*answers, *(message for message in results if message.role is not Role.TOOL)]


def was_cut(memory: Memory, calls: Sequence[ToolCall]) -> bool:
    """Whether the reply that made these calls was cut off by the token limit."""
    at = _place_of(memory, calls)
    return at is not None and memory.messages[at].finish_reason == "length"


def _place_of(memory: Memory, calls: Sequence[ToolCall]) -> int | None:
    ids = {call.id for call in calls}
    for index in range(len(memory.messages) - 1, -1, -1):
        if any(call.id in ids for call in memory.messages[index].tool_calls):
            return index
    return None


def _end_of_results(messages: Sequence[Message], index: int) -> int:
    end = index + 1
    while end < len(messages) and messages[end].role is Role.TOOL:
        end += 1
    return end


def _as_words(message: Message) -> Message:
    text = f"Result of an earlier call of {message.name or 'a tool'}:\n{message.content or ''}"
    return Message(role=Role.USER, content=text, images=message.images)
