"""What an agent works in: its memory, the session whose journal keeps it, the workspace and the doors to the human."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from handwork.agent.conversation import Conversation
from handwork.agent.run import Run
from handwork.config import Settings, load_settings
from handwork.schema import Approve, Ask, Memory, Message, Role
from handwork.session import Session, uncancelled
from handwork.tool.pictures import picture_of_base64


class InSession:
    """The part of an agent that outlives its runs; BaseAgent says what the fields mean."""

    memory: Memory = Memory()
    settings: Settings | None = None
    session: Session | None = None
    workspace: str | Path | None = None
    ask: Ask | None = None
    approve: Approve | None = None

    def __init__(self) -> None:
        self._own_session: Session | None = None
        self._session_id: str | None = None
        self._met: Session | None = None
        self._conversation = Conversation()

    # ---- memory

    @property
    def messages(self) -> list[Message]:
        """Memory's list; it can be read, set and extended."""
        return self.memory.messages

    @messages.setter
    def messages(self, messages: Iterable[Message]) -> None:
        self.memory.messages = messages

    def update_memory(self, role: str, content: str, base64_image: str | None = None, **fields: Any) -> None:
        """Add a message; it is journaled at the next gate.

        Raises ValueError for an unknown role, PictureError for an image that cannot be used. One that is large is scaled here.
        """
        if base64_image:
            base64_image = picture_of_base64(base64_image).data
        match role:
            case Role.USER:
                message = Message.user_message(content, base64_image, **fields)
            case Role.SYSTEM:
                message = Message.system_message(content, **fields)
            case Role.ASSISTANT:
                message = Message.assistant_message(content, base64_image, **fields)
            case Role.TOOL:
                message = Message.tool_message(content, base64_image=base64_image, **fields)
            case _:
                raise ValueError(f"Unsupported message role: {role}")
        self.memory.add_message(message)

    def _journal_memory(self, run: Run) -> None:
        """Tell what memory holds and the journal does not."""
        self._conversation.tell(run, self.memory)

    # ---- the session

    def _open_session(self) -> Session:
        self.settings = self.settings or load_settings(workspace=Path(self.workspace) if self.workspace else None)
        past = self._conversation.past
        session = Session.open(self.settings, self.workspace, self._session_id, self.ask, self.approve, past=past)
        self._session_id, self._own_session = session.id, session
        return session

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Session]:
        """The session that this agent has, else one of its own for the time of one run."""
        session = self.session or self._own_session
        if session is not None:
            yield session
            return
        session = self._open_session()
        try:
            yield session
        finally:
            await uncancelled(self.cleanup())

    def _meet(self, session: Session) -> None:
        """Before a run: take over what the session's journal holds; at the first one, have our parts closed with it."""
        if session is not self._met:
            self._met = session
            session.on_close(lambda: self._close_parts(session))
        self._conversation.adopt(self.memory, session.past)

    async def _close_parts(self, session: Session) -> None:
        """What the agent itself holds open (tools, servers); called when the session closes."""
        self._met = None

    async def cleanup(self) -> None:
        """Close the session that the agent opened; the agent can run again, on the same session id."""
        session, self._own_session = self._own_session, None
        if session is not None:
            await session.close()
            self._conversation.settled(intact=session.intact)

    async def __aenter__(self) -> Self:
        if self.session is None and self._own_session is None:
            self._open_session()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.cleanup()
