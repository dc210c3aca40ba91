"""What tools remember is what the journal says, whoever made the calls: an earlier run, another process, another agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from handwork.schema import JSON
from handwork.session import Session
from handwork.tool.base import Tool


class Restoring:
    """How far the tools of one agent know the journal of the session that it works in."""

    __slots__ = ("_seq", "_session_id")

    def __init__(self) -> None:
        self._session_id, self._seq = "", 0

    def know(self, session: Session) -> None:
        """The tools made all that the journal holds by now, or have been told it."""
        self._session_id, self._seq = session.id, session.past.seq

    def catch_up(self, tools: Iterable[Tool], session: Session) -> None:
        """Tell the tools what came of calls that they have not seen."""
        stateful = {tool.name: tool for tool in tools if type(tool).restore is not Tool.restore}
        if stateful:
            after = self._seq if self._session_id == session.id else 0
            for name, details in session.details(after=after):
                if (tool := stateful.get(name)) is not None:
                    _restore(tool, details, session)
        self.know(session)


def _restore(tool: Tool, details: Mapping[str, JSON], session: Session) -> None:
    try:
        tool.restore(details)
    except Exception as error:  # a tool call is a named boundary
        session.notify("warning", f"The tool {tool.name} could not take up its earlier state: {error}")
