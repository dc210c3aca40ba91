"""What the keys do at the prompt."""

from __future__ import annotations

from typing import Protocol

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, has_focus, is_searching
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from handwork.cli.chat.pasted import Pastes, clipboard_image, mention_of_image

_SHIFT_ENTER = ("\x1b[13;2u", "\x1b[27;2;13~")
"""As terminals send it that tell it from Enter."""
_LEAVING = "To leave: Ctrl-D or /quit"
_NO_IMAGE = "No picture in the clipboard (wl-paste, xclip or pngpaste reads it): use /image PATH"


class Prompt(Protocol):
    """What the keys act on."""

    draft: Buffer
    answer: Buffer
    pastes: Pastes

    def send(self) -> None: ...
    def reply(self) -> None: ...
    def say(self, hint: str) -> None: ...
    def interrupt(self) -> bool: ...
    def kill(self) -> bool: ...
    def leave(self) -> None: ...


def bindings(prompt: Prompt) -> KeyBindings:
    """All keys that act otherwise than in every other prompt."""
    ANSI_SEQUENCES.update(dict.fromkeys(_SHIFT_ENTER, Keys.ControlJ))
    keys = KeyBindings()
    _lines(keys, prompt)
    _pastes(keys, prompt)
    _stops(keys, prompt)
    return keys


def _lines(keys: KeyBindings, prompt: Prompt) -> None:
    drafting, answering = has_focus(prompt.draft), has_focus(prompt.answer)

    @keys.add("enter", filter=drafting)
    def _(event: KeyPressEvent) -> None:
        buffer = prompt.draft
        if buffer.complete_state is not None:
            chosen = buffer.complete_state.current_completion is not None
            buffer.complete_state = None
            if chosen:
                return
        if not _continued(buffer):
            prompt.send()

    @keys.add("enter", filter=answering)
    def _(event: KeyPressEvent) -> None:
        if not _continued(prompt.answer):
            prompt.reply()

    @keys.add("escape", "enter", filter=drafting | answering)
    @keys.add("c-j", filter=drafting | answering)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("tab", filter=drafting)
    def _(event: KeyPressEvent) -> None:
        buffer = prompt.draft
        if buffer.complete_state is None:
            buffer.start_completion(insert_common_part=True)
        elif len(buffer.complete_state.completions) == 1:
            buffer.complete_next()
            buffer.complete_state = None
        else:
            buffer.complete_next()

    @keys.add("s-tab", filter=drafting & Condition(lambda: prompt.draft.complete_state is not None))
    def _(event: KeyPressEvent) -> None:
        prompt.draft.complete_previous()


def _continued(buffer: Buffer) -> bool:
    """A backslash at the end of the text asks for one more line."""
    if not (buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\")):
        return False
    buffer.delete_before_cursor()
    buffer.insert_text("\n")
    return True


def _pastes(keys: KeyBindings, prompt: Prompt) -> None:
    @keys.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        buffer = event.current_buffer
        if buffer is prompt.draft:
            text = mention_of_image(text) or prompt.pastes.take(text)
        buffer.insert_text(text)

    @keys.add("c-v", filter=has_focus(prompt.draft))
    async def _(event: KeyPressEvent) -> None:
        path = await clipboard_image()
        if path is None:
            prompt.say(_NO_IMAGE)
        else:
            prompt.draft.insert_text(f"@{path} ")


def _stops(keys: KeyBindings, prompt: Prompt) -> None:
    idle = ~is_searching

    @keys.add("escape", filter=idle)
    def _(event: KeyPressEvent) -> None:
        if prompt.draft.complete_state is not None:
            prompt.draft.cancel_completion()
        else:
            prompt.interrupt()

    @keys.add("c-c", filter=idle)
    @keys.add(Keys.SIGINT)
    def _(event: KeyPressEvent) -> None:
        if prompt.kill() or prompt.interrupt():
            return
        if prompt.draft.text:
            prompt.draft.reset()
        else:
            prompt.say(_LEAVING)

    @keys.add("c-d", filter=idle)
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.delete()
        else:
            prompt.leave()

    @keys.add("c-z", filter=idle)
    def _(event: KeyPressEvent) -> None:
        get_app().suspend_to_background()
