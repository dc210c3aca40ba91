"""Text that may come to be a call written as text is held back until that is known, so that nobody is shown a call as an answer."""

from __future__ import annotations

from collections.abc import Callable

from handwork.llm.written_calls import may_be_written
from handwork.schema import Request, TextDelta, ToolChoice

_ENOUGH = 200
_LONGEST = 50_000
"""Characters after which a text is shown all the same."""


class HeldText:
    """The beginning of one reply's text: `add` what comes; it goes on to `show` unless it may be a call."""

    def __init__(self, request: Request, show: Callable[[TextDelta], None]) -> None:
        self._show = show
        self._expected = bool(request.tools) and request.tool_choice is not ToolChoice.NONE
        self.begin()

    def begin(self) -> None:
        """What was held is void: the reply begins anew."""
        self._held: list[TextDelta] = []
        self._size, self._start, self._holds = 0, "", self._expected
        self.shown = False

    def add(self, item: TextDelta) -> None:
        """Take the next piece of the text."""
        if self._holds:
            self._held.append(item)
            self._size += len(item.text)
            if len(self._start) < _ENOUGH:
                self._start += item.text[:_ENOUGH]
            if self._size <= _LONGEST and may_be_written(self._start):
                return
        if self._held:
            self.release()
        else:
            self._pass_on(item)

    def release(self) -> None:
        """Show what is held, and whatever follows."""
        held, self._held, self._holds = self._held, [], False
        for item in held:
            self._pass_on(item)

    def _pass_on(self, item: TextDelta) -> None:
        self.shown = True
        self._show(item)
