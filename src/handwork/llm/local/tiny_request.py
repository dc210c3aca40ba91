"""What the host of a tiny model does with a request: split it, find the file names, read facts off the history. No choices."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from handwork.schema import Message, Role, ToolCall

MAX_PARTS = 4
_THEN = re.compile(
    r"""(?:[,;.]\s+(?:and\s+)?(?:then|afterwards|after\s+that|finally|next)\b|\s+and\s+then\b|\s+then\b|\n\s*(?:\d+[.)]|[-*])\s)[,:]?\s*""",
    re.IGNORECASE,
)
_LIST_MARK = re.compile(r"\A\s*(?:1[.)]|[-*])\s+")
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|(?<!\w)'[^'\n]*'(?!\w)|`[^`\n]*`|\{[^}\n]*\}")
_WORD = re.compile(_QUOTED.pattern + r"|\w+(?:['’]\w+)*|[^\w\s]")
"""What stands in quotes or braces is one word: nobody means half of it."""
_PATH = re.compile(r"(?<![\w./-])/?(?:[\w-]+/)*[\w-]+(?:\.[A-Za-z][\w-]*)+(?![\w/])")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_OBSERVED = re.compile(r"\AObserved output of cmd `[^`]*` executed:\n")
_LISTED = re.compile(r"2 levels deep in (.+), excluding hidden items")
_LISTED_DEPTH = 2
_WHOLE_LISTING = 9000
"""Characters from which on a listing may have been cut."""
_IMAGE_NOTE = "Image returned by "
_FAILED = ("Error:", "Outcome unknown", "Not executed:", "Observed output of cmd `python_execute` executed:\nError:")
_TRACEBACK = "Traceback (most recent call last)"


def split_request(text: str) -> list[str]:
    """The parts of a request, cut at ", then" and the like, never inside quotes."""
    text = _LIST_MARK.sub("", text.strip())
    quoted = [match.span() for match in _QUOTED.finditer(text)]
    parts, start = [], 0
    for cut in _THEN.finditer(text):
        if any(begin < cut.end() and cut.start() < end for begin, end in quoted):
            continue
        parts.append(text[start : cut.start()])
        start = cut.end()
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def paths_in(text: str) -> list[str]:
    """The words of a text that look like a file's name, each once."""
    return list(dict.fromkeys(match.group() for match in _PATH.finditer(text)))


def numbers_in(text: str) -> list[str]:
    """The numbers of a text as they are written, each once; those inside file names are none."""
    return list(dict.fromkeys(_NUMBER.findall(_PATH.sub(" ", text))))


def words_in(text: str, path: str = "") -> list[tuple[int, int]]:
    """Where each word or sign of a text begins and ends; those of the path, which names a file and is no content, are left out."""
    named = [match.span() for match in _PATH.finditer(text) if match.group() == path]
    spans = (match.span() for match in _WORD.finditer(text))
    return [(begin, end) for begin, end in spans if not any(first <= begin and end <= last for first, last in named)]


@dataclass(frozen=True, slots=True)
class Progress:
    """What the history since the last request of the human says.

    `calls` counts the calls that did a part's work and `told` says in a line each what came of them; `looked`: the workspace
    was listed, `listing` is what that showed (None: nothing usable); `created` are the files made since; `failed`: the last
    observation is an error, and `last` is what it said.
    """

    request: str = ""
    calls: int = 0
    told: tuple[str, ...] = ()
    looked: bool = False
    listing: str | None = None
    created: tuple[str, ...] = ()
    failed: bool = False
    last: str = ""

    def exists(self, path: str) -> bool | None:
        """Whether there is such a file; None: not known."""
        if path in self.created:
            return True
        if self.listing is None or path.startswith(("/", "..")):
            return None
        base = found[1].rstrip("/") if (found := _LISTED.search(self.listing)) else "."
        if f"{base}/{path}" in (line.strip().rstrip("/@") for line in self.listing.splitlines()):
            return True
        whole = len(self.listing) < _WHOLE_LISTING and path.count("/") < _LISTED_DEPTH
        return False if whole and not path.startswith(".") else None


def progress_of(messages: Sequence[Message], look_mark: str) -> Progress:
    """Fold the history since the last user message; calls whose id begins with `look_mark` only looked around."""
    start = _last_request(messages)
    if start < 0:
        return Progress()
    work: dict[str, ToolCall] = {}
    told: list[str] = []
    created: list[str] = []
    looked, listing, failed, last = False, None, False, ""
    for message in messages[start + 1 :]:
        looked = looked or any(call.id.startswith(look_mark) for call in message.tool_calls)
        work |= {call.id: call for call in message.tool_calls if not call.id.startswith(look_mark)}
        if message.role is not Role.TOOL:
            continue
        text, id = message.content or "", message.tool_call_id or ""
        if id.startswith(look_mark):
            listing = None if _is_failure(message) else text
        elif id in work:
            failed, last = _is_failure(message), text
            path = _created(work[id])
            told.append(f"Wrote {path}." if path else _OBSERVED.sub("", text).strip())
            created += [path] if path and not failed else []
    return Progress(
        messages[start].content or "", len(work), tuple(told), looked, listing, tuple(created), failed, last
    )


def _created(call: ToolCall) -> str:
    """The path that a call of the editor creates, or ''."""
    try:
        arguments = json.loads(call.function.arguments)
    except ValueError:
        return ""
    is_create = isinstance(arguments, dict) and arguments.get("command") == "create"
    return str(arguments.get("path", "")) if is_create else ""


def _last_request(messages: Sequence[Message]) -> int:
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if message.role is Role.USER and not (message.content or "").startswith(_IMAGE_NOTE):
            return at
    return -1


def _is_failure(message: Message) -> bool:
    text = message.content or ""
    return message.is_error or _TRACEBACK in text or text.startswith(_FAILED)


def first_line(text: str) -> str:
    """The first line that says something: an observation's own, not the frame around it."""
    lines = [line.strip() for line in _OBSERVED.sub("", text).splitlines() if line.strip()]
    if lines and lines[0].startswith(_TRACEBACK):
        return lines[-1]
    return lines[0] if lines else "no reason was given"


def unquoted(text: str) -> str:
    """The text without the one pair of quotes around all of it."""
    pairs = {'"': '"', "'": "'", "`": "`", "“": "”"}
    inner = text[1:-1]
    is_quoted = len(text) > 2 and pairs.get(text[0]) == text[-1] and text[0] not in inner and text[-1] not in inner
    return inner if is_quoted else text


def append_code(path: str, text: str) -> str:
    """Python that adds a line to an existing file; a missing one is an error."""
    return (
        f"with open({path!r}, 'r+', encoding='utf-8') as file:\n"
        "    held = file.read()\n"
        f"    file.write(('' if not held or held.endswith('\\n') else '\\n') + {text!r} + '\\n')\n"
        f"print('Added a line to ' + {path!r} + '.')"
    )
