"""How a conversation looks: what the human said, how a run ended, where an earlier session stopped."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from handwork.cli import outcome
from handwork.cli.clean import clean_for_terminal, fold, fold_end, one_line
from handwork.cli.lines import Screen
from handwork.errors import HandworkError
from handwork.schema import Message, Role, RunResult, Status
from handwork.tool.wording import counted

_SENT, _EARLIER = 40, 12
"""Lines of what was sent, and of an earlier answer, that are shown."""
_NAMED = 3
_NEXT = {
    Status.MAX_STEPS: "Say go on, or what to do instead",
    Status.STUCK: "Say how to go about it in another way",
    Status.TOKEN_LIMIT: "/compact makes room, /new begins anew",
    Status.TIMEOUT: "Say go on, or what to do instead",
    Status.WAITING: "Say what the answer is",
    Status.CANCELLED: "Say what to do next: the session is kept",
}


def said(screen: Screen, text: str, lines: int = _SENT) -> None:
    """What the human has sent."""
    rows = fold(clean_for_terminal(text), lines, 100_000).split("\n")
    screen.line(
        "\n" + "\n".join(f"{'>' if place == 0 else ' '} {row}".rstrip() for place, row in enumerate(rows)), "bold"
    )


def stays_text(names: Sequence[str]) -> str:
    """That words behind an @ name no file: who meant one sees it before the answer."""
    shown = ", ".join(f"@{one_line(name, 60)}" for name in names[:_NAMED]) + (" …" if len(names) > _NAMED else "")
    return f"  · {shown}: no file here, so it stays text"


def failed(screen: Screen, error: BaseException) -> None:
    """What went wrong, and on a line of its own what to do."""
    told = outcome.complaint(error) if isinstance(error, Exception) else str(error)
    what, *rest = told.split("\n")
    screen.line(f"✗ {what}", "red")
    for line in rest:
        screen.line(f"  {line}")


async def aside(screen: Screen, work: Awaitable[None]) -> None:
    """Do something beside a run, for which nobody waits: what goes wrong is shown."""
    try:
        await work
    except HandworkError as error:
        failed(screen, error)


def ended(screen: Screen, result: RunResult, steps: int, seconds: float, model: str) -> None:
    """How a run ended, and what can be done about it."""
    if result.error is not None:
        failed(screen, result.error)
    elif result.detail and result.status is not Status.FINISHED:
        screen.line(f"! {clean_for_terminal(result.detail)}", "yellow")
    style = "dim" if result.status is Status.FINISHED else outcome.style(result)
    if last := outcome.last_line(result, steps, seconds, model):
        screen.line(last, style)
    if following := _NEXT.get(result.status):
        screen.line(f"→ {following}", "dim")


def earlier(screen: Screen, messages: Sequence[Message], last: Sequence[Message], id: str, *, rests: bool) -> None:
    """The end of a conversation that is gone on with. `rests`: its last run came to an answer."""
    count = len(messages)
    far = f"{counted(count, 'message')} so far" if count else "nothing was said yet"
    screen.line(f"Session {id} · {far}", "dim")
    for message in last:
        text = message.content or ""
        if message.role is Role.USER:
            said(screen, text, _EARLIER)
        else:
            screen.say(fold_end(text, _EARLIER, 100_000) + "\n")
            screen.said()
    if count and not rests:
        screen.line("→ Its last run did not come to an end: say go on, or what to do instead", "dim")
