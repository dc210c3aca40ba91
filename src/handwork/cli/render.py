"""A run drawn as it happens: every event that a person should see, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from handwork import events as ev
from handwork.cli.calls import about_host, about_server, arguments_of, observation_of
from handwork.cli.clean import StreamCleaner, clean_for_terminal, fold, fold_end, fold_middle, one_line
from handwork.cli.columns import width
from handwork.cli.diff import diff_rows
from handwork.cli.lines import Screen
from handwork.schema import Plan, Role
from handwork.tool.ask_human import AskHuman

_CALL_LINES = 8
_RESULT_LINES = 5
_PLAN_LINES = 16
_DIFF_LINES = 20
_LEVELS = {"info": ("·", "dim"), "warning": ("!", "yellow"), "error": ("✗", "red")}


class Renderer:
    """A listener that draws on a screen.

    `last_text` is the model's text if that is the last thing that was drawn, so that an answer need not be shown twice. In a
    log, which nobody watches live, the last text is kept back until something is drawn after it, for the same reason. A call
    that only ends the run, and its result, are never drawn: the run's last line says how it ended.

    Args:
        heads: whether each run begins with a line that names session, model and workspace.
        asks: whether questions and approvals are put on the same screen, which show what they are about.
    """

    def __init__(self, screen: Screen, *, heads: bool = True, asks: bool = False) -> None:
        self._screen, self._heads, self._asks = screen, heads, asks
        self._cleaner = StreamCleaner()
        self._kind = ""
        self._drawn = ""
        self._begun = False
        self._of_reply = False
        self._pending = self._failed = ""
        self._calls: dict[str, str] = {}
        self._hosts: dict[str, str] = {}
        self._ends: set[str] = set()
        self._shown: set[str] = set()
        self.last_text = ""

    def __call__(self, event: ev.Event) -> None:
        if draw := _DRAWN.get(type(event)):
            draw(self, event)

    def close(self, answer: str = "") -> None:
        """End an open line and the spinner; what was kept back is drawn unless it is the answer, which is printed elsewhere."""
        self._end_text()
        if self._pending and self._pending != answer.strip():
            text = self._pending
            self._line()
            self.last_text = text
        self._pending = ""
        self._screen.wait("")

    def forget_calls(self) -> None:
        """Calls that a killed run left open end with it."""
        self._calls.clear()
        self._ends.clear()

    # ---- lines

    def _line(self, text: str | None = None, style: str = "") -> None:
        self._end_text()
        self.last_text = ""
        if self._pending:
            self._screen.line(self._pending)
            self._pending = ""
        if text is not None:
            self._screen.line(text, style)

    def _block(self, first: str, text: str, style: str = "") -> None:
        """Lines with a mark before the first and the others below it."""
        rows = text.split("\n")
        indent = " " * len(first)
        self._line("\n".join((first if place == 0 else indent) + row for place, row in enumerate(rows)), style)

    # ---- the model's words

    def _delta(self, kind: str, text: str, style: str) -> None:
        if not self._screen.live:
            return
        if self._kind != kind:
            self._end_text()
            self._kind, self._drawn, self._begun = kind, "", False
        text = self._cleaner.feed(text)
        if not self._begun:
            text = text.lstrip("\n")
        if text:
            self._begun = self._of_reply = True
            self._screen.wait("")
            self._drawn += text
            self._write(text, style)

    def _write(self, text: str, style: str = "") -> None:
        if self._kind == "text":
            self._screen.say(text)
        else:
            self._screen.write(text, style)

    def _end_text(self) -> None:
        if not self._kind:
            return
        rest, kind = self._cleaner.finish(), self._kind
        self._drawn += rest
        if self._begun or rest:
            self._write(rest + ("" if self._drawn.endswith("\n") else "\n"), "dim")
        if kind == "text":
            self._screen.said()
        self._kind = ""
        self.last_text = self._drawn.strip() if kind == "text" else ""

    def _text_delta(self, event: ev.TextDelta) -> None:
        self._delta("text", event.text, "")

    def _thinking_delta(self, event: ev.ThinkingDelta) -> None:
        self._delta("thinking", event.text, "dim italic")

    def _tool_args_delta(self, event: ev.ToolArgsDelta) -> None:
        self._end_text()
        self._screen.wait(f"the model writes a call of {one_line(event.name, 40) or 'a tool'}")

    def _reply_discarded(self, event: ev.ReplyDiscarded) -> None:
        if self._of_reply:
            self._line("✗ what stands above is void: the answer broke off and begins anew", "yellow")
        self._of_reply = False

    def _message_added(self, event: ev.MessageAdded) -> None:
        message = event.message
        if message.role is not Role.ASSISTANT:
            return
        self._end_text()
        text = clean_for_terminal(message.content or "").strip()
        if text and not (self._of_reply and self.last_text == text):
            self._words(text)

    def _words(self, text: str) -> None:
        """What the model says, whole."""
        self._line()
        if self._screen.live:
            self._screen.say(text + "\n")
            self._screen.said()
            self.last_text = text
        else:
            self._pending = text

    # ---- calls

    def _tool_call_started(self, event: ev.ToolCallStarted) -> None:
        self._end_text()
        function = event.call.function
        if event.actions and all(action.kind == "end" for action in event.actions):
            self._ends.add(event.call.id)
            return
        name = one_line(function.name, 60)
        self._calls[event.call.id] = name
        if event.call.id in self._shown or (self._asks and function.name == AskHuman.name):
            self._wait_for_calls()
            return
        shown = fold(arguments_of(function.arguments), _CALL_LINES, self._screen.columns - 6)
        if "\n" in shown or width(f"▸ {name}  {shown}") > self._screen.columns:
            self._line(f"▸ {name}", "cyan")
            self._line("\n".join(f"  │ {row}" for row in shown.split("\n")), "cyan")
        else:
            self._line(f"▸ {name}  {shown}".rstrip(), "cyan")
        self._wait_for_calls()

    def _tool_output_delta(self, event: ev.ToolOutputDelta) -> None:
        rows = event.text.rstrip().rsplit("\n", 1)
        if rows[-1] and event.call_id not in self._ends:
            self._screen.wait(f"{self._calls.get(event.call_id, 'tool')}: {one_line(rows[-1], 200)}")

    def _tool_call_finished(self, event: ev.ToolCallFinished) -> None:
        if event.call_id in self._ends and not event.is_error:
            self._ends.discard(event.call_id)
            if "response" in (event.details or {}):  # a tool that takes the answer: it is said like any other
                self._words(clean_for_terminal(observation_of(event.observation)).strip())
            return
        name = self._calls.pop(event.call_id, "")
        if self._asks and name == AskHuman.name and not event.is_error:
            return
        whose = f"{name}: " if self._calls and name else ""
        took = f"  ({event.seconds:.1f} s)" if event.seconds >= 1 else ""
        text = self._result(event, max(self._screen.columns - 5 - len(took) - width(whose), 10))
        self._block("  ✗ " if event.is_error else "  ⎿ ", f"{whose}{text}{took}", "red" if event.is_error else "dim")
        for row, style in self._changes(event):
            self._line(f"    {row}", style)
        for artifact in event.artifacts:
            self._line(f"  + {one_line(artifact.title, 60)}: {one_line(artifact.path, 300)}", "dim")
        self._wait_for_calls()

    def _result(self, event: ev.ToolCallFinished, columns: int) -> str:
        """What came of a call, folded: a plan as its marked steps, an error from its end."""
        if (plan := Plan.from_details(event.details)) is not None:
            steps = "\n".join(f"{step.status.mark} {one_line(step.text, columns)}" for step in plan.steps)
            return fold_middle(f"{one_line(plan.title, 200)} – {plan.progress} done\n{steps}", _PLAN_LINES, columns)
        if not event.is_error and (event.details or {}).get("diff"):
            return one_line(str((event.details or {}).get("path", "")), columns)
        shown = fold_end if event.is_error else fold_middle
        return shown(observation_of(event.observation), _RESULT_LINES, columns) or "(no output)"

    def _changes(self, event: ev.ToolCallFinished) -> list[tuple[str, str]]:
        diff = (event.details or {}).get("diff")
        return diff_rows(diff, _DIFF_LINES, self._screen.columns - 5) if isinstance(diff, str) else []

    def _wait_for_calls(self) -> None:
        self._screen.wait(", ".join(self._calls.values()))

    # ---- what else happens

    def _run_started(self, event: ev.RunStarted) -> None:
        if event.parent_call is None:
            self.forget_calls()
        if not self._heads:
            return
        model = f" · {one_line(event.model, 60)}" if event.model else ""
        self._line(f"session {event.session_id}{model} · {one_line(event.workspace, 300)}", "dim")

    def _request_sent(self, event: ev.RequestSent) -> None:
        self._end_text()
        self._of_reply, self._failed = False, ""
        self._screen.wait("waiting for the model")

    def _retry_scheduled(self, event: ev.RetryScheduled) -> None:
        again = f"trying again in {event.wait:.0f} s" if event.wait >= 1 else "trying again"
        what = "Failed again" if event.error.type == self._failed else one_line(event.error.message, 300)
        self._failed = event.error.type
        self._line(f"↻ {what} – {again}{f' (attempt {event.attempt + 1})' if event.attempt > 1 else ''}", "yellow")
        self._screen.wait("waiting to try again")

    def _notice(self, event: ev.Notice) -> None:
        mark, style = _LEVELS[event.level]
        self._block(f"{mark} ", clean_for_terminal(event.text), style)

    def _context_fitted(self, event: ev.ContextFitted) -> None:
        self._line(
            f"· context shortened from {event.before:,} to {event.after:,} tokens: {one_line(event.how, 200)}", "dim"
        )

    def _approval_requested(self, event: ev.ApprovalRequested) -> None:
        self._end_text()
        if self._asks:
            self._shown.add(event.call.id)
        if about_host(event.call, event.action) or about_server(event.call):
            self._hosts[event.id] = f" {one_line(event.action[0].resource, 80)}"

    def _approval_resolved(self, event: ev.ApprovalResolved) -> None:
        why = f": {one_line(event.reason, 200)}" if event.reason else ""
        host = self._hosts.pop(event.id, "")  # it is answered beside the calls: the last one drawn may be another
        if event.decision == "deny":
            self._line(f"  ✗ denied{host} ({event.by}){why}", "yellow")
        elif event.by != "mode":
            kept = {"allow_session": " for this session", "allow_always": " always"}.get(event.decision, "")
            self._line(f"  ✓ allowed{host}{kept} ({event.by}){why}", "dim")

    def _question_asked(self, event: ev.QuestionAsked) -> None:
        self._end_text()
        self._screen.wait("")

    def _run_finished(self, event: ev.RunFinished) -> None:
        self._end_text()
        self._screen.wait("")


_DRAWN: Mapping[type[ev.Event], Callable[[Renderer, Any], None]] = {
    ev.TextDelta: Renderer._text_delta,
    ev.ThinkingDelta: Renderer._thinking_delta,
    ev.ToolArgsDelta: Renderer._tool_args_delta,
    ev.ReplyDiscarded: Renderer._reply_discarded,
    ev.MessageAdded: Renderer._message_added,
    ev.ToolCallStarted: Renderer._tool_call_started,
    ev.ToolOutputDelta: Renderer._tool_output_delta,
    ev.ToolCallFinished: Renderer._tool_call_finished,
    ev.RunStarted: Renderer._run_started,
    ev.RequestSent: Renderer._request_sent,
    ev.RetryScheduled: Renderer._retry_scheduled,
    ev.Notice: Renderer._notice,
    ev.ContextFitted: Renderer._context_fitted,
    ev.ApprovalRequested: Renderer._approval_requested,
    ev.ApprovalResolved: Renderer._approval_resolved,
    ev.QuestionAsked: Renderer._question_asked,
    ev.RunFinished: Renderer._run_finished,
}
