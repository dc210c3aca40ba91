"""Words for how an MCP server failed, cleaned of what it should not be able to say."""

from __future__ import annotations

import signal

from pydantic import ValidationError

from handwork.errors import HandworkError
from handwork.schema.visible import seen

_LAST_LINES, _LAST_CHARACTERS = 5, 1000
_FAULTS = 3


def shown(text: str, longest: int = 200) -> str:
    """One line of somebody else's text, as a person or a model may read it."""
    line = seen(" ".join(text.split())).text
    return line if len(line) <= longest else f"{line[:longest]}…"


def reason(error: BaseException) -> str:
    """What an error says; of an answer that breaks the protocol where it does, in place of all that a validator tells."""
    if not isinstance(error, ValidationError):
        return str(error) or type(error).__name__
    found = error.errors(include_url=False, include_context=False, include_input=False)
    places = [f"{'.'.join(map(str, each['loc'])) or 'the whole'}: {each['msg']}" for each in found[:_FAULTS]]
    return f"an answer breaks the protocol ({'; '.join(places)})"


def ended(code: int | None) -> str:
    """How a program ended, as it goes on behind its name."""
    if code is None:
        return "closed its standard output"
    if code < 0:
        try:
            return f"was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"was ended by signal {-code}"
    return f"ended with exit code {code}"


def said_last(errors: str) -> str:
    """The last lines of a standard error, as they go on behind a sentence; '' for none."""
    lines = [shown(line, 400) for line in errors[-8192:].splitlines() if line.strip()][-_LAST_LINES:]
    text = " | ".join(lines)
    text = f"…{text[-_LAST_CHARACTERS:]}" if len(text) > _LAST_CHARACTERS else text
    return f". It said last: {text}" if text else ""


def innermost(error: BaseException) -> BaseException:
    """What is the matter, of a group of exceptions: the first of our own in it, else the first."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    found = [innermost(each) for each in error.exceptions]
    return next((each for each in found if isinstance(each, HandworkError)), found[0])
