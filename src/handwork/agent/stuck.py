"""Whether a run goes round in circles (CONTRACT A7)."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from handwork.schema import Message, Role

PATIENCE = 5.0
"""Seconds: a call that waited this long is a wait, not a repetition."""


@dataclass(frozen=True, slots=True)
class StepTrace:
    """What one step did: `signature` is None if it stored nothing or waited; `faults` are the kinds of its calls' errors, if all
    of its calls failed."""

    signature: Hashable
    faults: frozenset[Hashable] = frozenset()


def signature(messages: Iterable[Message]) -> Hashable:
    """The text, the calls with canonical arguments and the results of one step's messages, without ids."""
    parts = tuple(_part(message) for message in messages)
    return parts or None


def _part(message: Message) -> Hashable:
    if message.role is Role.ASSISTANT:
        calls = tuple((call.function.name, _canonical(call.function.arguments)) for call in message.tool_calls)
        return (message.role, message.content, calls)
    return (message.role, message.content, message.name, tuple(image.hash for image in message.images))


def _canonical(arguments: str) -> str:
    if len(arguments) > 4096:  # so long a text is repeated to the letter or not at all
        return arguments
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


class StuckDetector:
    """Keeps the last steps of a run; the memory it needs depends on the threshold only."""

    def __init__(self, threshold: int) -> None:
        self.times = threshold + 1
        self._steps: deque[StepTrace] = deque(maxlen=2 * self.times)

    def observe(self, step: StepTrace) -> None:
        self._steps.append(step)

    def is_stuck(self) -> bool:
        """The last steps were all the same, or A-B-A-B as often, or failed in the same way."""
        steps = list(self._steps)
        last = steps[-self.times :]
        if len(last) < self.times:
            return False
        if frozenset.intersection(*(step.faults for step in last)):
            return True
        return self._repeats(last, 1) or (len(steps) == 2 * self.times and self._repeats(steps, 2))

    @staticmethod
    def _repeats(steps: list[StepTrace], period: int) -> bool:
        pattern = [step.signature for step in steps[:period]]
        if None in pattern:
            return False
        return all(step.signature == pattern[i % period] for i, step in enumerate(steps))
