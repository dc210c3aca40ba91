"""`!command`: what the human runs in the session's own shell, shown as it comes, and told to the agent afterwards."""

from __future__ import annotations

from handwork.cli.clean import StreamCleaner
from handwork.cli.lines import Screen
from handwork.schema.visible import seen
from handwork.session import Session
from handwork.tool.shell import Outcome, Shell

_SECONDS = 24 * 3600.0
"""The human ends a command that takes too long."""
_TOLD = 10_000
"""Characters of the output that the agent is told."""


async def run_command(command: str, session: Session, screen: Screen) -> str:
    """Run a command and show what it writes; returns what the agent is to be told. Raises SandboxError."""
    shell = session.resource("shell", lambda: Shell(session.sandbox))
    view = _View(screen, session)
    try:
        outcome = await shell.run(command, _SECONDS, view.show)
    except BaseException:
        view.end()
        raise
    view.end()
    _show_end(outcome, screen, written=view.written)
    return _told(command, session.masked(outcome.output), _end(outcome))


def interrupted(command: str) -> str:
    """What the agent is told of a command that the human stopped."""
    return _told(command, "", "interrupted by me")


class _View:
    def __init__(self, screen: Screen, session: Session) -> None:
        self._screen, self._session, self._cleaner = screen, session, StreamCleaner()
        self._open = False
        self.written = False

    async def show(self, text: str) -> None:
        self._write(self._cleaner.feed(self._session.masked(text)))

    def end(self) -> None:
        self._write(self._cleaner.finish())
        if self._open:
            self._screen.line()

    def _write(self, text: str) -> None:
        if text:
            self.written = True
            self._open = not text.endswith("\n")
            self._screen.write(text)


def _show_end(outcome: Outcome, screen: Screen, *, written: bool) -> None:
    for note in outcome.notes:
        screen.line(f"· {note}", "dim")
    if end := _end(outcome):
        screen.line(f"  {end}", "yellow")
    elif not written:
        screen.line("  (no output)", "dim")


def _end(outcome: Outcome) -> str:
    if outcome.timed_out:
        return "timed out"
    if outcome.shell_ended:
        return "the shell has ended"
    return f"exit code {outcome.exit_code}" if outcome.exit_code else ""


def _told(command: str, output: str, end: str) -> str:
    if len(output) > _TOLD:
        output = f"{output[: _TOLD // 2]}\n[… {len(output) - _TOLD} characters left out …]\n{output[-_TOLD // 2 :]}"
    shown = seen(output.rstrip())
    note = f"({shown.note_with_advice})" if shown.note else ""
    lines = [f"I ran a command in your shell:\n$ {command}", shown.text, note, f"[{end}]" if end else ""]
    return "\n".join(line for line in lines if line)
