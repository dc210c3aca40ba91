"""One session with its agent, over all the runs of a chat; and the next one, after /new."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from handwork import events as ev
from handwork.agent.base import BaseAgent
from handwork.agent.compact import Compacted, compact
from handwork.agent.roles import load_role
from handwork.agent.toolcall import ToolCallAgent
from handwork.cli.chat.costs import Costs
from handwork.cli.chat.servers import ChatServers
from handwork.cli.chat.status import plan_progress, shortened
from handwork.cli.mcp.servers_of_a_run import server_fields
from handwork.cli.options import RunOptions, agent_fields
from handwork.cli.place import place
from handwork.cli.undo.undo import Undo, Undone
from handwork.cli.workspace import make_folder
from handwork.config import Settings
from handwork.config.llm_tables import with_model
from handwork.config.providers import find_provider, provider_name
from handwork.errors import ConfigError
from handwork.events import Event, Listener
from handwork.llm.facts import context_window
from handwork.llm.llm import LLM
from handwork.sandbox.ready import check_backend
from handwork.schema import Approval, ApprovalRequest, Message, Question, Role, RunResult
from handwork.session import Session
from handwork.store.sqlite import Store

_STOPPED = "I interrupted it. What it had done until then stays; look before you rely on it."


class Doors(Protocol):
    """How the human is asked."""

    async def ask(self, question: Question) -> str: ...
    async def approve(self, request: ApprovalRequest) -> Approval: ...


class Conversation:
    """Opened by `open`, closed by `close`. `notices` are what to tell before the first run."""

    def __init__(self, options: RunOptions, settings: Settings, doors: Doors, listener: Listener) -> None:
        self.options, self.settings = options, settings
        self._doors, self._listener = doors, listener
        self.costs = Costs()
        self.plan: dict[str, Any] | None = None
        self.notices: list[tuple[str, str]] = [("info", text) for text in settings.notices]
        self.workspace = Path()
        self.id = ""
        self._session: Session | None = None
        self._agent: BaseAgent | None = None
        self._undo: Undo | None = None
        self._llm: LLM | None = None
        self._notes: list[str] = []
        self._window: int | None = None
        self._stopped: set[str] = set()
        """Calls that were interrupted in this chat."""

    @property
    def session(self) -> Session:
        assert self._session is not None
        return self._session

    @property
    def is_open(self) -> bool:
        """Whether there is a session with its agent."""
        return self._session is not None and self._agent is not None

    @property
    def servers(self) -> ChatServers:
        """The MCP servers of the agent."""
        return ChatServers(self.session, self.agent)

    @property
    def agent(self) -> BaseAgent:
        assert self._agent is not None
        return self._agent

    @property
    def llm(self) -> LLM:
        assert self._llm is not None
        return self._llm

    def facts(self) -> list[tuple[int, str]]:
        """What the status line shows, each with its rank: the higher, the sooner it is left out."""
        if not self.is_open:
            return []
        session = self.session
        return [
            (1, self.llm.name),
            (5, shortened(session.workspace)),
            (2, plan_progress(self.plan)),
            (3, self.costs.share_of(self._window)),
            (4, self.costs.in_short(self.llm.name)),
            (6, f"{session.mode.value}/{session.sandbox.name}"),
            (7, self.servers.fact),
        ]

    # ---- opening and closing

    async def open(self) -> None:
        """Choose the model, take the session and make the agent. Raises HandworkError: NoModelError if there is no model."""
        self._llm = await self._model(None)
        await check_backend(self.settings.sandbox, self.settings.daytona, self.settings.environ)
        id, self.workspace = place(self.options, self.settings)
        if make_folder(self.workspace):
            self.notices.append(("info", f"The workspace {self.workspace} was not there and has been made."))
        self._begin(id)
        await self._look_up_window(self._llm)

    def _begin(self, id: str | None) -> None:
        self.costs, self.plan = Costs(), None
        session = Session.open(
            self.settings, self.workspace, id, self._ask, self._doors.approve, [self._note, self._listener]
        )
        self._session, self.id = session, session.id
        if id is not None:
            self._read_past(id)
        self._stopped.clear()  # who has stopped a call of an earlier program, and why, nobody knows here
        role = load_role(self.options.agent)
        fields = {**agent_fields(self.settings), **server_fields(role, self.options.mcp, self.settings)}
        self._agent = role(session=session, settings=self.settings, llm=self._llm, **fields)
        _ = session.sandbox  # what is wrong with the workspace is told now, and which servers it is opened to is known
        self.servers.begin()
        self._undo = Undo(
            self.workspace, self.settings.home.data / "undo" / session.id, session.notify, self._private()
        )

    def _private(self) -> list[Path]:
        home = self.settings.home
        return [home.data, home.config, home.cache]

    def _read_past(self, id: str) -> None:
        store = Store.open(self.settings.store_path, synchronous=self.settings.store.synchronous)
        try:
            for _, data in store.events(id):
                self._note(ev.read_event(data))
        finally:
            store.close()

    async def renew(self) -> None:
        """Close the session and begin another with the same model; what was noted for the next turn goes with the old one."""
        await self._end()
        self._notes = []
        self._begin(None)

    async def close(self) -> None:
        await self._end()
        if self._llm is not None:
            await self._llm.aclose()

    async def _end(self) -> None:
        if self._undo is not None:
            await asyncio.to_thread(self._undo.close)
            self._undo = None
        if self._session is not None:
            await self._session.close()
            self._session = None

    # ---- the model

    @property
    def window(self) -> int | None:
        """Tokens that the model can read at once, as far as anybody knows."""
        return self._window

    @property
    def host(self) -> str:
        """Where the model is asked; '' for one in this process."""
        own, environ = self.settings.llm_for(self.llm.config_name), self.settings.environ
        found = with_model(own, self.llm.name, environ).settings if self.llm.name != own.model else own
        provider = find_provider(provider_name(found.model, found.base_url, found.api_type))
        address = found.base_url or (provider.address(environ) if provider else "")
        return urlsplit(address).netloc.rpartition("@")[2]

    async def _look_up_window(self, llm: LLM) -> None:
        own = self.settings.llm_for(llm.config_name)
        url = own.base_url if llm.name == own.model else ""
        self._window = own.max_input_tokens or await asyncio.to_thread(context_window, llm.name, url)

    async def _model(self, wanted: str | None) -> LLM:
        name = load_role(self.options.agent).name
        llm = LLM(name, self.settings, wanted, notify=lambda level, text: self.notices.append((level, text)))
        await llm.ready()
        return llm

    async def switch(self, wanted: str) -> str:
        """Use another model from the next run on; returns its name. Raises HandworkError, and then nothing has changed."""
        new = await self._model(wanted)
        old, self._llm = self._llm, new
        self.agent.llm = new
        self.session.hide(new.secrets)
        await self._look_up_window(new)
        if old is not None:
            await old.aclose()
        return new.name

    # ---- runs

    def note(self, text: str) -> None:
        """Have the model told something by a message of the user's, with the next one."""
        self._notes.append(text)

    @property
    def answered(self) -> bool:
        """Whether nothing is left to do: the conversation is empty, or ends with an answer."""
        messages = self.session.past.messages
        return not messages or (messages[-1].role is Role.ASSISTANT and not messages[-1].tool_calls)

    async def work(self, text: str | None, images: Sequence[Path | bytes] = ()) -> RunResult:
        """One run. After an error the agent is ready for the next one."""
        notes, self._notes = self._notes, []
        for note in notes:
            self.agent.update_memory(Role.USER, note)
        try:
            return await self.agent.run(text, images=images)
        finally:
            self.agent.reset()

    async def compact(self, focus: str) -> Compacted:
        """Replace the conversation by a summary, in which nothing of `focus` is lost. Raises HandworkError."""
        if not isinstance(self.agent, ToolCallAgent):
            raise ConfigError(f"The agent {self.agent.name} has nothing to compact")
        return await compact(self.agent, focus)

    async def prepare_undo(self) -> bool:
        """Copy the workspace before the first step; later ones cost a look at it. True when it is done."""
        if self._undo is not None:
            await asyncio.to_thread(self._undo.before_step)
        return True

    async def undo(self) -> Undone:
        """Take the last step's changes of files back, and have the model told."""
        assert self._undo is not None
        undone = await asyncio.to_thread(self._undo.undo)
        if undone.files:
            names = "\n".join(undone.files)
            self.note(
                f"I have taken back the last step's changes of these files; read them again before you use them:\n{names}"
            )
        return undone

    async def _ask(self, question: Question) -> str:
        """Asks the human; but whoever has just stopped a call is not asked what came of it."""
        call = question.call_id
        if call in self._stopped and question.id != call:
            return _STOPPED
        return await self._doors.ask(question)

    def _note(self, event: Event) -> None:
        self.costs.take(event)
        match event:
            case ev.PlanChanged():
                self.plan = dict(event.plan)
            case ev.ToolCallFinished() if event.ending == "interrupted":
                self._stopped.add(event.call_id)
            case ev.StepStarted() if event.parent_call is None and self._undo is not None:
                self._undo.before_step()
            case ev.StepFinished() if event.parent_call is None and self._undo is not None:
                self._undo.after_step()

    def last_words(self) -> list[Message]:
        """The end of the conversation: the last thing that the user said, and what was answered."""
        found: list[Message] = []
        for message in reversed(self.session.past.messages):
            if message.role is Role.ASSISTANT and message.content and not found:
                found.append(message)
            elif message.role is Role.USER and message.tool_call_id is None:
                return [message, *found]
        return found
