"""The chat itself: takes what is typed, has the agent work on it, and shows what happens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from handwork import events as ev
from handwork.cli import outcome
from handwork.cli.changes import Changes
from handwork.cli.chat import talk
from handwork.cli.chat.busy import Busy
from handwork.cli.chat.commands import LEAVING, Prompt, parse
from handwork.cli.chat.conversation import Conversation, Doors
from handwork.cli.chat.mentions import Mentioned, picture_at, with_files
from handwork.cli.chat.servers import Asked
from handwork.cli.chat.shell import interrupted, run_command
from handwork.cli.chat.unread import Unread
from handwork.cli.options import RunOptions
from handwork.cli.render import Renderer
from handwork.config import Settings
from handwork.errors import ConfigError, HandworkError, PictureError
from handwork.events import Event
from handwork.schema import Role, RunResult, Status, scrub
from handwork.schema.visible import seen

_LATER = "Not while the agent works: Esc interrupts it"
_GOES_ON = (Status.FINISHED, Status.MAX_STEPS, Status.STUCK, Status.FAILED)
"""Ends after which words that nobody has read begin the next run; after the others they are given back."""


class Chat:
    """`submit` is given what is typed, `serve` works it off until `leave`."""

    def __init__(self, options: RunOptions, settings: Settings, prompt: Prompt, doors: Doors) -> None:
        self.options, self.prompt, self.screen = options, prompt, prompt.screen
        self.renderer = Renderer(self.screen, heads=False, asks=True)
        self.conversation = Conversation(options, settings, doors, self._hear)
        self.busy = Busy()
        self._changes = Changes()
        self.talked = False
        self._inbox: asyncio.Queue[str | None] = asyncio.Queue()
        self._unread = Unread()
        self._running = self._leaving = False
        self._steps = 0
        self._images: list[Path] = list(options.image)
        self._asides: set[asyncio.Future[None]] = set()

    # ---- what is typed

    def submit(self, text: str) -> None:
        """Take something that was sent: for the agent at its next step while it works, else when its turn comes."""
        text = self._visible(text)
        if text.strip().lower() in LEAVING:
            self.leave()
        elif not self._leaving and not (self._running and self._taken_at_once(text)):
            if self.busy:
                self._unread.wait(text)
            self._inbox.put_nowait(text)

    def _visible(self, text: str) -> str:
        """What the human sees of what was sent: a pasted text may hide more, and that is told."""
        found = seen(scrub(text))
        if found.note:
            self.conversation.notices.append(("warning", f"In what you sent: {found.note}"))
        return found.text

    def _taken_at_once(self, text: str) -> bool:
        """While a run goes on: do a command that needs no rest, tell the agent anything else. False for what must wait."""
        try:
            if text.startswith("!"):
                raise ConfigError(_LATER)
            if command := parse(text):
                if not command[0].anytime:
                    raise ConfigError(_LATER)
                self._do_aside(command[0].do(self, command[1]))
                return True
            if self.conversation.servers.asked(text):
                raise ConfigError(_LATER)
            mentioned = with_files(text, self.conversation.workspace)
        except ConfigError as error:
            self._give_back(text, error)
            return True
        if mentioned.images:  # a step takes words only
            return False
        told = self.conversation.session.said(mentioned.text)  # as it will stand in the history
        self._unread.tell(told, text)
        self.conversation.agent.steer(told)
        return True

    def _do_aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(talk.aside(self.screen, work))
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)

    def _give_back(self, text: str, error: ConfigError) -> None:
        self.prompt.restore(text)
        self.prompt.say(outcome.complaint(error).replace("\n", " "))

    def prompts(self) -> Mapping[str, str]:
        """The prompts of MCP servers, as they are typed."""
        return self.conversation.servers.prompts if self.conversation.is_open else {}

    def queued(self) -> list[str]:
        """What was sent and is not yet read."""
        return self._unread.typed

    # ---- stopping

    def interrupt(self) -> bool:
        """Stop what goes on; False if nothing does."""
        if not self.busy.stop():
            return False
        self.screen.wait("stopping … (Ctrl-C again: leave at once)")
        return True

    def leave(self) -> None:
        """End the chat; what goes on is stopped first."""
        self._leaving = True
        self.interrupt()
        self._inbox.put_nowait(None)

    def goodbye(self) -> str:
        """What to type to go on later; '' if nothing was said."""
        session = self.conversation.id if self.options.workspace else ""
        return outcome.chat_again(session, self.options.again()) if self.talked else ""

    # ---- the loop

    async def open(self) -> None:
        """Make everything ready. Raises HandworkError."""
        self.screen.wait("getting ready")
        await self.conversation.open()
        self.screen.wait("")
        self._tell_notices()
        self._do_aside(self._show_servers())
        session = self.conversation.session
        if (messages := session.past.messages) or self.options.session or self.options.go_on:
            last, rests = self.conversation.last_words(), self.conversation.answered
            talk.earlier(self.screen, messages, last, session.id, rests=rests)

    async def _show_servers(self) -> None:
        """Have the line of facts say when servers are connected."""
        await self.conversation.servers.connected()
        self.prompt.refresh()

    async def serve(self) -> None:
        """Work off what is sent until the human leaves."""
        if self.options.task is not None:
            self._inbox.put_nowait(self.options.task)
        while (text := await self._inbox.get()) is not None:
            self._unread.taken(text)
            if not self._leaving:
                await self.turn(text)

    async def turn(self, text: str) -> None:
        """Do what was sent, to its end; what goes wrong is shown."""
        try:
            if (text := self._visible(text)).strip():
                await self._take(text)
            self._tell_notices()
        except HandworkError as error:
            talk.failed(self.screen, error)
        finally:
            self.screen.wait("")

    async def _take(self, text: str) -> None:
        if self.prompt.has_keys:
            talk.said(self.screen, text)
        self.talked = True
        if text.startswith("!"):
            await self._shell(text[1:].strip())
        elif asked := self.conversation.servers.asked(text):
            await self._prompt_of_server(asked, text)
        elif command := parse(text):
            work = command[0].do(self, command[1])
            await (self.busy.do(work) if command[0].stoppable else work)
        else:
            await self._message(text)

    def _tell_notices(self) -> None:
        notices, self.conversation.notices = self.conversation.notices, []
        for level, text in notices:
            self.renderer(ev.Notice.model_validate({"level": level, "text": text}))

    # ---- messages

    async def _prompt_of_server(self, asked: Asked, typed: str) -> None:
        """Have a server make a request, and work on that."""
        self.screen.wait(f"asking {asked.mount.name}")
        try:
            made = await self.busy.do(asked.request())
        except HandworkError:
            self.prompt.restore(typed)
            raise
        if made is None:  # stopped
            self.prompt.restore(typed)
            return
        talk.said(self.screen, made[0])
        await self._work(typed, Mentioned(made[0]), list(made[1]))

    async def _message(self, text: str) -> None:
        try:
            mentioned = await asyncio.to_thread(with_files, text, self.conversation.workspace)
        except ConfigError:
            self.prompt.restore(text)
            raise
        given, self._images = self._images, []
        try:
            await self._work(text, mentioned, [*given, *mentioned.images])
        except (ConfigError, PictureError):
            self._images = given
            self.prompt.restore(text)
            raise

    async def _work(self, typed: str, mentioned: Mentioned, images: Sequence[Path | bytes]) -> None:
        """Runs until nothing is left that was said meanwhile."""
        if mentioned.plain:
            self.screen.line(talk.stays_text(mentioned.plain), "dim")
        if mentioned.files:
            self.screen.line(f"  with {', '.join(mentioned.files)}", "dim")
        words: str | None = mentioned.text
        while words is not None:
            result = await self._run(words, images)
            if result is None:  # stopped before it began
                self.prompt.restore(typed)
            images, words = [], None
            told = self.conversation.agent.unread()
            unread = "\n".join(self._unread.read(text) for text in told)
            if told and result is not None and result.status in _GOES_ON and not self._leaving:
                words, typed = "\n\n".join(told), unread
                talk.said(self.screen, typed)
            elif told:
                self.prompt.restore(unread)

    async def _run(self, words: str, images: Sequence[Path | bytes]) -> RunResult | None:
        began, self._steps = time.monotonic(), 0
        self.screen.wait("getting ready")
        self._running = True
        try:
            if not await self.busy.do(self.conversation.prepare_undo()):
                return None
            agent = self.conversation.agent
            result = await self.busy.do(self.conversation.work(words, images), agent.cancel)
        finally:
            self._running = False
            self.renderer.close()
        if result is not None:
            self._show_end(result, time.monotonic() - began)
        return result

    def _show_end(self, result: RunResult, seconds: float) -> None:
        answer = outcome.answer(result)
        if answer and self.renderer.last_text != answer.strip():
            self.screen.say(answer + "\n")
            self.screen.said()
        for row in self._changes.rows():
            self.screen.line(row, "dim")
        talk.ended(self.screen, result, self._steps, seconds, self.conversation.llm.name)

    def _hear(self, event: Event) -> None:
        self._changes(event)
        match event:
            case ev.MessageAdded() if event.message.role is Role.USER and event.message.content in self._unread:
                talk.said(self.screen, self._unread.read(event.message.content or ""))
            case ev.RunFinished() if event.parent_call is None:
                self._steps = event.steps
        self.renderer(event)

    # ---- what else can be done

    async def _shell(self, command: str) -> None:
        if not command:
            raise ConfigError("What is to be run?", hint="!command runs a command in the session's shell")
        self.screen.wait(command)
        told = await self.busy.do(run_command(command, self.conversation.session, self.screen))
        if told is None:
            self.screen.line("  interrupted", "yellow")
        self.conversation.note(told or interrupted(command))

    async def renew(self) -> None:
        """Begin a new conversation."""
        await self.conversation.renew()
        self._do_aside(self._show_servers())

    async def compact(self, focus: str) -> None:
        """Replace the conversation by a summary."""
        self.screen.wait("summarising the conversation")
        before, after = await self.conversation.compact(focus)
        self.screen.wait("")
        self.screen.line(f"The conversation took {before:,} tokens and takes {after:,} now.", "dim")

    async def attach(self, path: str) -> None:
        """Put a picture into the next message."""
        if not path:
            raise ConfigError("Which picture?", hint="/image PATH")
        self.prompt.restore(f"{await asyncio.to_thread(picture_at, path, self.conversation.workspace)} ")
