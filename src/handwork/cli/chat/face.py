"""The prompt: where a person types while the work goes on above it, and where questions are put."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.input import create_input
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from handwork.cli.chat.keys import bindings
from handwork.cli.chat.output import Output, open_output
from handwork.cli.chat.pasted import Pastes
from handwork.cli.chat.redraw import ChatApplication
from handwork.cli.chat.scroll import Scroll
from handwork.cli.clean import clean_for_terminal, one_line
from handwork.cli.columns import fit, wrapped

_QUIET = 0.35
"""Seconds without a key before what is typed can be an answer: whoever is in the middle of a sentence has not read the question."""
_COMPLETIONS, _QUEUED, _HINT = 8, 3, 3
"""Rows of what Tab offers, of what waits to be read, and of a hint."""
_STYLE = Style.from_dict(
    {
        "dim": "fg:ansibrightblack",
        "wait": "fg:ansibrightblack",
        "mark": "bold",
        "question": "fg:ansimagenta bold",
        "hint": "fg:ansiyellow",
        "status": "fg:ansibrightblack",
        "chosen": "reverse",
    }
)


class Owner(Protocol):
    """Who the prompt works for."""

    def submit(self, text: str) -> None:
        """Something was sent."""

    def interrupt(self) -> bool:
        """Esc or Ctrl-C: stop what goes on; False if nothing does."""
        ...

    def kill(self) -> bool:
        """Ctrl-C once more while something is being stopped: end at once; False if nothing is being stopped."""
        ...

    def leave(self) -> None:
        """Ctrl-D."""

    def status(self, columns: int) -> str:
        """The line below the prompt."""
        ...

    def queued(self) -> list[str]:
        """What was sent and not yet read."""
        ...


class Face:
    """A prompt on the terminal of this process; `screen` draws above it."""

    has_keys = True

    def __init__(self, owner: Owner, completer: Completer) -> None:
        self.owner = owner
        self.output: Output = open_output(os.environ.get("TERM", ""))
        self.screen = Scroll(self.output, self._print_above, self._changed)
        self.hint = ""
        self.pastes = Pastes()
        self._question = ""
        self._answered: asyncio.Future[str] | None = None
        self._key = asyncio.Event()
        self.draft = Buffer(
            completer=ThreadedCompleter(completer),
            complete_while_typing=True,
            multiline=True,
        )
        self.answer = Buffer(multiline=True)
        self._search = SearchToolbar()
        self._draft_window = self._editor(self.draft, "> ")
        self._answer_window = self._editor(self.answer, "? ")
        self.app = ChatApplication(
            self.output,
            layout=Layout(self._layout(), self._draft_window),
            key_bindings=bindings(self),
            input=create_input(),
            style=_STYLE,
            color_depth=ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None,
        )
        self.app.key_processor.before_key_press += self._key_pressed

    # ---- drawing

    def _editor(self, buffer: Buffer, mark: str) -> Window:
        control = BufferControl(buffer, search_buffer_control=self._search.control, preview_search=True)
        return Window(
            control,
            height=Dimension(min=1, max=10),
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=lambda line, wrap: [("class:mark", mark if line == wrap == 0 else "  ")],
        )

    def _layout(self) -> HSplit:
        asking = Condition(lambda: has_focus(self.answer)())
        completing = Condition(lambda: self.draft.complete_state is not None)
        return HSplit(
            [
                self._text(self._below),
                self._text(self._asked),
                ConditionalContainer(self._answer_window, asking),
                ConditionalContainer(self._draft_window, ~asking),
                ConditionalContainer(self._text(self._completions), completing),
                self._search,
                Window(FormattedTextControl(self._status), dont_extend_height=True, height=self._status_height),
            ]
        )

    @staticmethod
    def _text(content: Callable[[], StyleAndTextTuples]) -> Window:
        """Rows of text, which give way where the terminal has too few."""

        def height() -> Dimension:
            rows = sum(text.count("\n") for _, text, *_ in content())
            return Dimension(min=0, max=rows, preferred=rows)

        return Window(FormattedTextControl(content), dont_extend_height=True, height=height)

    def _below(self) -> StyleAndTextTuples:
        size = self.output.get_size()
        shown = self.screen.below(max(size.rows // 2 - 2, 1))
        queued = self.owner.queued()
        for text in queued[:_QUEUED]:
            shown.append(("class:dim", one_line(f"↳ {text}", size.columns - 20) + "  (is read next)\n"))
        if len(queued) > _QUEUED:
            shown.append(("class:dim", f"  … {len(queued) - _QUEUED} more\n"))
        return shown

    def _asked(self) -> StyleAndTextTuples:
        if not self._question:
            return []
        return [("class:question", f"{wrapped(self._question, self.output.get_size().columns)}\n")]

    def _completions(self) -> StyleAndTextTuples:
        state = self.draft.complete_state
        if state is None:
            return []
        chosen = state.complete_index
        first = max(0, (chosen or 0) - _COMPLETIONS + 1)
        columns = self.output.get_size().columns
        rows: StyleAndTextTuples = []
        for place, found in enumerate(state.completions[first : first + _COMPLETIONS], first):
            text = f"{found.display_text:<14}  {found.display_meta_text}".rstrip()
            rows.append(("class:chosen" if place == chosen else "class:dim", f"  {one_line(text, columns - 4)}\n"))
        return rows

    def _status(self) -> StyleAndTextTuples:
        columns = self.output.get_size().columns - 1
        if self.hint:
            rows = wrapped(clean_for_terminal(self.hint), columns).split("\n")
            return [("class:hint", "\n".join(fit(row, columns) for row in rows[:_HINT]))]
        return [("class:status", self.owner.status(columns))]

    def _status_height(self) -> Dimension:
        rows = 1 + sum(text.count("\n") for _, text, *_ in self._status())
        return Dimension(min=1, max=rows, preferred=rows)

    def _print_above(self, text: str) -> None:
        self.app.print_above(text)

    def _changed(self) -> None:
        self.app.invalidate()

    # ---- life

    async def run(self) -> None:
        """Show the prompt until `close`. Raises EOFError when the terminal is gone."""
        try:
            await self.app.run_async(set_exception_handler=False)
        finally:
            self.app.print_above("")

    def close(self) -> None:
        if self.app.is_running and not self.app.is_done:
            self.app.exit()

    def remember(self, history: History) -> None:
        """Offer what was typed in earlier chats."""
        self.draft.history = history
        self.draft.reset(self.draft.document)

    def say(self, hint: str) -> None:
        """Show a hint until the next key."""
        self.hint = hint
        self._changed()

    def refresh(self) -> None:
        """Draw the lines around the prompt anew."""
        self._changed()

    def restore(self, text: str) -> None:
        """Put a text back where it can be edited, before what was typed since."""
        document = self.draft.document
        joined = f"{text}\n{document.text}" if document.text else text
        self.draft.set_document(Document(joined, len(text)), bypass_readonly=True)
        self._changed()

    def interrupt(self) -> bool:
        return self.owner.interrupt()

    def kill(self) -> bool:
        return self.owner.kill()

    def leave(self) -> None:
        self.owner.leave()

    def _key_pressed(self, _: object) -> None:
        self._key.set()
        self.hint = ""

    def send(self) -> None:
        """Enter at the draft."""
        text = self.pastes.whole(self.draft.text)
        if not text.strip():
            return
        if self.draft.text == text:
            self.draft.append_to_history()
        self.draft.reset()
        self.owner.submit(text)

    # ---- questions

    def reply(self) -> None:
        """Enter at a question; `/quit` answers none."""
        if self.answer.text.strip().lower() in ("/quit", "/exit", "/q"):
            self.owner.leave()
        elif self._answered is not None and not self._answered.done():
            self._answered.set_result(self.answer.text)

    async def ask(self, question: str) -> str:
        """The answer that is typed at a question, which stands above the line while it waits; what was begun before stays."""
        async with self._asking(question):
            self._answered = asyncio.get_running_loop().create_future()
            return await self._answered

    @asynccontextmanager
    async def _asking(self, question: str) -> AsyncIterator[None]:
        self._question = question
        self._changed()
        try:
            await self._quiet()
            self.answer.reset()
            self.app.layout.focus(self._answer_window)
            self._changed()
            yield
        finally:
            self._question, self._answered = "", None
            self.app.layout.focus(self._draft_window)
            self._changed()

    async def _quiet(self) -> None:
        """Wait until the question has been on the screen for a moment in which nothing was typed."""
        while True:
            self._key.clear()
            try:
                await asyncio.wait_for(self._key.wait(), _QUIET)
            except TimeoutError:
                return
