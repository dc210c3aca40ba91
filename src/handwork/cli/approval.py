"""An approval as a person meets it: what will run, page by page and whole, what it does, what an answer would write down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pydantic_core import from_json

from handwork.cli.calls import about_host, about_server, exactly
from handwork.cli.clean import one_line, show_exactly
from handwork.cli.columns import wrapped
from handwork.cli.diff import Row, exact_rows
from handwork.cli.suspects import Suspects
from handwork.config.policy_rules import call_pattern
from handwork.schema import Action, Approval, ApprovalRequest, ToolCall

Write = Callable[[str, str], None]
Read = Callable[[str], Awaitable[str]]

_SHOWN_BY_DIFF = {"str_replace_editor": ("file_text", "old_str", "new_str", "edits")}
"""Arguments of which a whole diff shows everything."""
_WHY = 400
"""Columns of the reason; what will run stands below it, whole."""
_LEAST = 8
"""Rows of a page on however small a terminal."""
_ALWAYS_OF_A_SERVER = "  [a] always writes them down: no question until they change once more."
_DOES = {"read": "reads", "write": "writes", "execute": "runs", "network": "reaches"}


async def decide(request: ApprovalRequest, write: Write, read: Read, *, columns: int, rows: int) -> Approval:
    """Show what will run and read answers until one is a decision.

    Nothing can be allowed before all of it was on the screen: what does not fit comes page by page, or at once on request.

    Args:
        write: puts text, with a style, on the screen.
        read: puts a question and gives the line that is typed.
        columns: the width of the terminal; `rows` its height.
    """
    view = View(request, columns)
    why = Suspects(request.why).marked(one_line(request.why, _WHY))
    name = one_line(request.call.function.name, 80)
    asked = f"{name} wants to run – {why}" if _is_about_a_call(request) else _sentence(why)
    head = f"? {asked}\n"
    write(head, "bold magenta")
    view.show(write, max(rows - wrapped(head, columns).count("\n") - 4, _LEAST))
    while True:
        answer = (await read(view.choices)).strip()
        if answer == "":
            view.show(write, max(rows - 4, _LEAST))
        elif answer.lower() in ("d", "diff", "details"):
            view.show_all(write)
        elif (decision := decision_of(answer, remembers=bool(request.rules))) is None:
            write("  Nothing can be written down for this call: say y or n.\n", "yellow")
        elif decision.decision == "deny" or not view.left:
            return decision
        else:
            write(f"  Not yet: {_count(view.left, 'row')} of it you have not seen (Enter, or d).\n", "yellow")


def decision_of(answer: str, *, remembers: bool) -> Approval | None:
    """What was typed at an approval: yes, session, always, no, or the reason for a no.

    None for one that cannot be chosen: without rules nothing can be remembered.
    """
    match answer.strip().lower():
        case "y" | "yes":
            return Approval(decision="allow")
        case "s" | "session":
            return Approval(decision="allow_session") if remembers else None
        case "a" | "always":
            return Approval(decision="allow_always") if remembers else None
        case "n" | "no":
            return Approval(decision="deny")
    return Approval(decision="deny", reason=answer.strip())


class View:
    """The rows of a request, each as wide as the terminal at most, and how many of them were shown."""

    def __init__(self, request: ApprovalRequest, columns: int) -> None:
        self._request = request
        self._rows = [(piece, style) for text, style in _rows(request) for piece in wrapped(text, columns).split("\n")]
        self._shown = 0

    @property
    def left(self) -> int:
        """Rows that were not shown yet."""
        return len(self._rows) - self._shown

    @property
    def choices(self) -> str:
        """The question, with the answers that can be given."""
        if about_server(self._request.call):
            return "Use its tools as they are now? [y]es in this session, [a]lways, [n]o or why not: "
        kept = "[s]ession, [a]lways, " if self._request.rules else ""
        what = "Let it reach this?" if about_host(self._request.call, self._request.actions) else "Run it?"
        return f"{what} [y]es once, {kept}[n]o or why not: "

    def show(self, write: Write, rows: int) -> None:
        """Put the next rows on the screen, and below them how many more there are."""
        page = self._rows[self._shown : self._shown + rows]
        self._put(write, page)
        self._shown += len(page)
        if self.left:
            more = f"  … {_count(self.left, 'more row')} of {len(self._rows):,}"
            write(f"{more}: Enter shows the next ones, d all of them\n", "yellow")

    def show_all(self, write: Write) -> None:
        """Put all that was not shown on the screen; if there is nothing left, everything once more."""
        self._put(write, self._rows[self._shown if self.left else 0 :])
        self._shown = len(self._rows)

    def _put(self, write: Write, rows: list[Row]) -> None:
        for text, style in rows:
            write(f"{text}\n", style)


def _rows(request: ApprovalRequest) -> list[Row]:
    """All that is to be seen before a decision."""
    call, diff = request.call, exact_rows(request.preview)
    by_diff = _SHOWN_BY_DIFF.get(call.function.name, ()) if diff.whole else ()
    text = exactly(call, leave_out=by_diff)
    suspects = Suspects(text + request.preview)
    rows = [*diff.heads]
    rows += [(f"  │ {suspects.marked(line)}", "") for line in text.split("\n") if text]
    rows += [(f"  │ {suspects.marked(line)}", style) for line, style in diff.rows]
    if suspects.note:
        rows.append((f"  ! {suspects.note}", "bold yellow"))
    if about_server(call):
        return [*rows, (_ALWAYS_OF_A_SERVER, "dim")]
    if does := [effect for effect in map(_effect, request.actions) if effect and not _is_said(effect, request.why)]:
        rows.append((f"  does: {'; '.join(dict.fromkeys(does))}", "dim"))
    if request.rules:
        rows.append(("  [s] in this session and [a] always would allow from now on:", "dim"))
        texts = ["exactly this call" if rule == _very(call) else show_exactly(rule) for rule in request.rules]
        rows += [(f"  │ {suspects.marked(rule)}", "cyan") for rule in texts]
    return rows


def _is_about_a_call(request: ApprovalRequest) -> bool:
    return not (about_host(request.call, request.actions) or about_server(request.call))


def _very(call: ToolCall) -> str:
    """The rule that names exactly this call, which is on the screen already."""
    try:
        return f"allow call {call_pattern(call.function.name, from_json(call.function.arguments or '{}'))}"
    except ValueError:
        return ""


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _effect(action: Action) -> str:
    """What the call does to a resource, in words; '' for running a program, which the question says already."""
    anything = action.resource in ("", "*")
    if (verb := _DOES.get(action.kind)) is None or (anything and action.kind == "execute"):
        return ""
    return f"{verb} {'anything' if anything else show_exactly(action.resource)}"


def _is_said(effect: str, why: str) -> bool:
    return effect.split(" ", 1)[-1] in why


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
