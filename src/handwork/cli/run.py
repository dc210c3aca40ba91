"""`handwork run`: open a session, let the agent work, show it, and end with the right exit code."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from handwork import events as ev
from handwork.agent.base import BaseAgent
from handwork.agent.roles import load_role
from handwork.cli import outcome
from handwork.cli.changes import Changes
from handwork.cli.doors import TerminalDoors
from handwork.cli.interrupt import Interrupts
from handwork.cli.json_lines import JsonLines
from handwork.cli.mcp.servers_of_a_run import server_fields
from handwork.cli.options import RunOptions, agent_fields
from handwork.cli.output import print_answer
from handwork.cli.place import place
from handwork.cli.quiet import Warnings
from handwork.cli.render import Renderer
from handwork.cli.screen import is_terminal, open_screen
from handwork.cli.stdin import PATIENCE, NothingCame
from handwork.cli.trust.glance import carries_something
from handwork.cli.workspace import make_folder
from handwork.config import Settings
from handwork.errors import ConfigError, NoModelError
from handwork.events import Event, Listener
from handwork.llm.llm import LLM
from handwork.sandbox.open import check_workspace
from handwork.sandbox.ready import check_backend
from handwork.schema import Image, Role, RunResult, scrub
from handwork.schema.visible import seen
from handwork.session import Session

_PATIENCE = 1.0
"""Seconds that a reader of --json has to take the last lines after Ctrl-C."""
_NO_INPUT = (
    f"Standard input is open, and nothing came for {PATIENCE:.0f} seconds: the task goes without it. "
    "Where none is meant, < /dev/null says so at once."
)


def run_task(options: RunOptions) -> int:
    """Run one task; returns the exit code. Raises HandworkError for what is wrong before the run begins."""
    if options.session is not None and options.go_on:
        raise ConfigError(
            "--session and --continue exclude each other: the first names a session, the second takes the last"
        )
    if carries_something(options.workspace):
        from handwork.cli.trust.question import ask_about  # most folders carry nothing

        options = replace(options, trusted=ask_about(options.workspace, options.config))
    settings = options.settings()
    images = options.images()
    try:
        request, notices = options.request(), list[tuple[str, str]]()
    except NothingCame:
        request, notices = options.typed, [("warning", _NO_INPUT)]
    if request is not None and (found := seen(scrub(request))).note:
        request, notices = found.text, [*notices, ("warning", f"In the task: {found.note}")]
        if not request.strip():
            raise ConfigError("The task holds no character that can be seen", hint="say in words what is to be done")
    if images and request is None:
        raise ConfigError("--image belongs to a task", hint="say in words what is to be done with it")
    try:
        return _run(options, settings, request, images, notices)
    except NoModelError as error:
        check_workspace(settings.sandbox, options.folder)
        from handwork.cli.setup.setup import offer_setup  # who has a model does not wait for it

        if options.json or not offer_setup(settings, error, options.config):
            raise
    return _run(options, options.settings(), request, images, notices)


def _run(
    options: RunOptions,
    settings: Settings,
    request: str | None,
    images: Sequence[Image],
    notices: Sequence[tuple[str, str]],
) -> int:
    try:
        return asyncio.run(TaskRun(options, settings, request, options.again(), images, notices).run())
    except asyncio.CancelledError:
        return 130


class TaskRun:
    """One run from the command line: what it is shown on, and what it counts for the last line.

    `again` are the options that must be typed again to go on; None: nobody is to be told how.
    """

    def __init__(
        self,
        options: RunOptions,
        settings: Settings,
        request: str | None,
        again: Mapping[str, str] | None = None,
        images: Sequence[Image] = (),
        notices: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.options, self.settings, self.request, self._again = options, settings, request, again
        self._images = images
        self.screen = open_screen()
        self.renderer = None if options.json or options.quiet else Renderer(self.screen)
        self.steps = 0
        self._changes = Changes()
        self._notices: list[tuple[str, str]] = [*notices, *(("info", text) for text in settings.notices)]
        self._llm: LLM | None = None

    async def run(self) -> int:
        """Run to the end; the exit code."""
        began = time.monotonic()
        interrupts = Interrupts(self._tell)
        with interrupts.watching():
            lines = JsonLines(interrupts.interrupt) if self.options.json else None
            try:
                result = await self._work(interrupts, lines)
            finally:
                interrupts.run = interrupts.kill = None
                if lines:
                    await lines.finish(_PATIENCE if interrupts.asked else None)
        if result is None:
            return 130
        if not self.options.json:
            self._show_end(result, time.monotonic() - began)
        return outcome.exit_code(result)

    async def _work(self, interrupts: Interrupts, lines: JsonLines | None) -> RunResult | None:
        agent_class = load_role(self.options.agent)
        fields = {**agent_fields(self.settings), **server_fields(agent_class, self.options.mcp, self.settings)}
        llm = self._llm = await self._checked_model(agent_class)
        await check_backend(self.settings.sandbox, self.settings.daytona, self.settings.environ)
        async with self._open_session(lines) as session:
            self._check_rest(session)
            agent = agent_class(session=session, settings=self.settings, llm=llm, **fields)
            for level, text in self._notices:
                session.notify(level, text)
            interrupts.kill = session.close
            if interrupts.asked:
                return None
            interrupts.run = agent.cancel
            return await agent.run(self.request, images=self._images)

    async def _checked_model(self, agent_class: type[BaseAgent]) -> LLM:
        """The agent's model, built before anything is journaled: a missing key ends in an error here, not in a session."""
        llm = LLM(agent_class.name, self.settings, notify=lambda level, text: self._notices.append((level, text)))
        await llm.ready()
        return llm

    def _open_session(self, lines: JsonLines | None) -> Session:
        doors = TerminalDoors.open(self.screen)
        id, workspace = place(self.options, self.settings)
        if make_folder(workspace):
            self._notices.append(("info", f"The workspace {workspace} was not there and has been made."))
        listeners: list[Listener] = [self._count, self._changes]
        if shown := self.renderer or lines or (Warnings(self.screen) if self.options.quiet else None):
            listeners.append(shown)
        return Session.open(
            self.settings,
            workspace,
            id,
            doors.ask if doors else None,
            doors.approve if doors else None,
            listeners,
            create=self.request is not None,
        )

    def _check_rest(self, session: Session) -> None:
        """Without a request there must be something to go on with: asking again after an answer would invent a task."""
        messages = session.past.messages
        if self.request is None and (
            not messages or (messages[-1].role is Role.ASSISTANT and not messages[-1].tool_calls)
        ):
            raise ConfigError(f"Session {session.id} has nothing left to do: give it a task")

    def _count(self, event: Event) -> None:
        if isinstance(event, ev.RunFinished) and event.parent_call is None:
            self.steps = event.steps

    def _tell(self, text: str) -> None:
        if not self.options.json:
            if self.renderer:
                self.renderer.close()
            self.screen.line(text, "yellow")

    def _show_end(self, result: RunResult, seconds: float) -> None:
        answer, seen = outcome.answer(result), ""
        if self.renderer:
            self.renderer.close(answer)
            seen = self.renderer.last_text
        try:
            if answer and not (is_terminal(sys.stdout) and seen == answer.strip()):
                print_answer(answer)
        finally:
            self._show_outcome(result, seconds)

    def _show_outcome(self, result: RunResult, seconds: float) -> None:
        if self.options.quiet and outcome.exit_code(result) == 0:
            return
        summary = outcome.last_line(result, self.steps, seconds, self._llm.name if self._llm else "")
        lines = [summary] if summary else []
        for row in self._changes.rows():
            self.screen.line(row, "dim")
        if self._again is not None:
            lines += outcome.way_on(result, self._again).splitlines()
        for line in lines:  # the first says how it ended
            self.screen.line(line, outcome.style(result) if line is lines[0] else "")
