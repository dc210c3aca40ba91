"""What of an assistant message goes back to Anthropic unchanged: thinking, blocks of unknown kinds, and the order of all blocks."""

from __future__ import annotations

from collections.abc import Sequence

from handwork.llm.jsontext import dump, sendable
from handwork.schema import JSON, Message, Thinking, scrub

KEY = "anthropic"
"""The name of Anthropic's parts in `Thinking.opaque` and `Message.opaque`."""
KINDS = ("thinking", "redacted_thinking")
_THOUGHT, _CALL = "thinking", "call"


def thinking_of(block: dict[str, JSON]) -> Thinking:
    """A whole thinking block as ours. One without a signature (it was cut off) is text for people, and never sent back.

    Raises ValueError for what cannot be written as JSON again.
    """
    text = block.get("thinking")
    kept = {name: value for name, value in block.items() if name != "thinking"}
    whole = kept.get("signature") or kept.get("data")
    return Thinking(text=scrub(text) if isinstance(text, str) else "", opaque={KEY: sendable(kept)} if whole else None)


def thinking_block(part: Thinking) -> bytes:
    """The block as it came; b'' for reasoning that is not Anthropic's own."""
    kept = (part.opaque or {}).get(KEY)
    if not isinstance(kept, dict) or kept.get("type") not in KINDS:
        return b""
    return dump(kept if kept["type"] == "redacted_thinking" else {"type": "thinking", "thinking": part.text, **kept})


def order_of(blocks: Sequence[dict[str, JSON]]) -> dict[str, JSON] | None:
    """Message.opaque for these blocks; None where they stand in the plain order: thinking, one text, calls.

    In it stand `thinking` and `call` for the next of each, a number for a text of that many characters, and blocks of other
    kinds themselves.
    """
    order = [_entry(block) for block in blocks]
    ranks = [0 if entry == _THOUGHT else 2 if entry == _CALL else 1 for entry in order]
    plain = ranks == sorted(ranks) and ranks.count(1) <= 1 and not any(isinstance(entry, dict) for entry in order)
    return None if plain else {KEY: sendable(order)}


def _entry(block: dict[str, JSON]) -> JSON:
    kind = block.get("type")
    if kind in KINDS:
        return _THOUGHT
    if kind == "tool_use":
        return _CALL
    return len(scrub(block["text"])) if kind == "text" else block


def in_order(message: Message, thinking: list[bytes], calls: list[bytes]) -> list[bytes]:
    """The blocks of an assistant message as they came; in the plain order if the message is not what came any more.

    No empty text, and no thinking at the end: both are refused.
    """
    text = message.content or ""
    order = (message.opaque or {}).get(KEY)
    if not isinstance(order, list) or not _fits(order, len(thinking), len(text), len(calls)):
        order = [*[_THOUGHT] * len(thinking), len(text), *[_CALL] * len(calls)]
    thoughts, called, at = iter(thinking), iter(calls), 0
    blocks: list[bytes] = []
    said = 0
    for entry in order:
        if entry == _THOUGHT:
            block = next(thoughts)
        elif entry == _CALL:
            block = next(called)
        elif isinstance(entry, int):
            block, at = text_block(text[at : at + entry]), at + entry
        else:
            block = dump(entry)
        if block:
            blocks.append(block)
            said = said if entry == _THOUGHT else len(blocks)
    return blocks[:said]


def ends_with_own_block(message: Message) -> bool:
    """Whether the last block is of a kind that we do not know, so that nothing may be added to it."""
    order = (message.opaque or {}).get(KEY)
    return isinstance(order, list) and bool(order) and isinstance(order[-1], dict)


def _fits(order: list[JSON], thoughts: int, characters: int, calls: int) -> bool:
    if not all(entry in (_THOUGHT, _CALL) or isinstance(entry, int | dict) for entry in order):
        return False
    texts = sum(entry for entry in order if isinstance(entry, int))
    return (order.count(_THOUGHT), texts, order.count(_CALL)) == (thoughts, characters, calls)


def text_block(text: str) -> bytes:
    """A text block; b'' for a text without a visible character, which is refused."""
    return b'{"type":"text","text":%s}' % dump(text) if text.strip() else b""
