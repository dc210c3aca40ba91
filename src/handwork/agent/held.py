"""Text that may come to be a call written as text is held back until that is known, so that nobody is shown a call as an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from handwork.llm.written.calls import may_be_written
from handwork.schema import Discarded, Request, TextDelta, ThinkingDelta, ToolArgsDelta, ToolChoice

Delta: TypeAlias = TextDelta | ThinkingDelta | ToolArgsDelta | Discarded
_ENOUGH = 200
_LONGEST = 50_000
"""Characters after which a text is shown all the same."""


class HeldText:
    """The pieces of one reply: `take` what comes; it goes on to `show` at once, but text waits while it may be a call."""

    def __init__(self, request: Request, show: Callable[[Delta], None]) -> None:
        self._show = show
        self._expected = bool(request.tools) and request.tool_choice is not ToolChoice.NONE
        self._begin()

    def _begin(self) -> None:
        self._held: list[TextDelta] = []
        self._size, self._start, self._holds = 0, "", self._expected

    @property
    def shown(self) -> bool:
        """Whether text is shown as it comes, so that it may have been seen already."""
        return not self._holds

    def take(self, item: Delta) -> None:
        """Take the next piece. A reply that is discarded begins anew, and what was held of it is void."""
        if isinstance(item, Discarded):
            self._begin()
        elif self._holds:
            if isinstance(item, TextDelta):
                return self._hold(item)
            if isinstance(item, ToolArgsDelta):  # who calls like that writes no calls
                self.release()
        self._show(item)
        return None

    def _hold(self, item: TextDelta) -> None:
        self._held.append(item)
        self._size += len(item.text)
        if len(self._start) < _ENOUGH:
            self._start += item.text[:_ENOUGH]
        if self._size > _LONGEST or not may_be_written(self._start):
            self.release()

    def release(self) -> None:
        """Show what is held, and whatever follows."""
        held, self._held, self._holds = self._held, [], False
        for item in held:
            self._show(item)
