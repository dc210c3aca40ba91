"""What of a server's offer may be shown and called: as it was approved, and what changed since only after a person said yes."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from handwork.config import MCPServerSettings, Settings
from handwork.errors import MCPUnavailable, Waiting
from handwork.events import Event
from handwork.mcp.changes import difference, is_too_long
from handwork.mcp.connection import Connection
from handwork.mcp.offer import Offer, ToolOffer
from handwork.mcp.own_command import own_command
from handwork.schema import Action, ApprovalRequest, Approve, Function, ToolCall
from handwork.session.approvals import Approvals
from handwork.session.records import Records
from handwork.tool.call_clock import CallClock

ABOUT_A_SERVER = "mcp server"
"""What a question about a server's definitions calls itself; no tool can have this name."""
_MOST = 3
"""Questions about one server in one session: one that changes without end is not put to a person without end."""
_LEFT_OUT = "The MCP server {name} {what} since that was approved: left out until somebody looks at it ({look})."
_TOO_OFTEN = "The MCP server {name} {what} once more; what it changed is left out in this session."
_MOST_NAMED = 8


class Asks(Protocol):
    """What this needs of its session."""

    settings: Settings
    clock: CallClock
    door: asyncio.Lock
    approve_door: Approve | None

    @property
    def at_work(self) -> bool: ...

    def notify(self, level: str, text: str) -> None: ...

    def tell(self, event: Event) -> None: ...

    def masked(self, value: str) -> str: ...

    async def commit(self) -> None: ...


@dataclass(slots=True)
class _Known:
    """Of one server: the offer that was approved, the definitions that hold by the tools' names, its instructions, and the digests
    of what was refused."""

    offer: Offer
    accepted: dict[str, ToolOffer]
    instructions: str
    refused: set[str] = field(default_factory=set)
    told: bool = False
    asked: int = 0
    settled: Offer | None = None
    """What the server offered when all of it was decided."""
    for_session: set[str] = field(default_factory=set)
    """Digests of what was accepted for this session alone."""

    def holds(self, tool: ToolOffer) -> bool:
        """Whether a tool is described as it was approved."""
        before = self.accepted.get(tool.name)
        return before is not None and (before == tool or before.digest == tool.digest)

    def holds_for_good(self, tool: ToolOffer) -> bool:
        """Whether it was approved for more than this session."""
        return self.holds(tool) and not (self.for_session and tool.digest in self.for_session)


@dataclass(frozen=True, slots=True)
class _Changes:
    """Tools that are described otherwise than approved, and new ones; none of them was refused."""

    changed: tuple[ToolOffer, ...]
    added: tuple[ToolOffer, ...]

    @property
    def tools(self) -> tuple[ToolOffer, ...]:
        return (*self.changed, *self.added)

    @property
    def words(self) -> str:
        """`changed the tools a, b and has new ones: c`."""
        parts = [f"changed {_tools(self.changed)}"] if self.changed else []
        parts += [f"added {_tools(self.added)}"] if self.added else []
        return " and ".join(parts)


class Definitions:
    """Decides for one session. `records` are what the user's folder holds of configured servers; others are known here alone."""

    def __init__(self, session: Asks) -> None:
        self._session = session
        self._approvals = Approvals(session)
        self._known: dict[str, _Known] = {}
        self._one_by_one = asyncio.Lock()
        self.records = Records(session.settings, session.notify)

    async def approved(self, connection: Connection) -> Offer:
        """See Servers.approved."""
        async with self._one_by_one:
            known = self._known_of(connection)
            live = connection.offer
            if live is None or live is known.settled:
                return known.offer
            changes = self._changes(known, connection, live)
            if not changes.tools or await self._settle(connection, known, changes, live):
                known.settled = live
            tools = tuple(tool for tool in live.tools if known.holds(tool))
            known.offer = replace(live, tools=tools, instructions=known.instructions)
            self._keep(connection, known, live)
            return known.offer

    def holds(self, connection: Connection, tool: ToolOffer) -> bool:
        """Whether a tool may be called: the server, as far as it was heard, describes it as it was approved."""
        known, live = self._known.get(_key(connection.name, connection.settings)), connection.offer
        if known is None or live is None or not known.holds(tool):
            return False
        return any(each.name == tool.name and known.holds(each) for each in live.tools)

    def _known_of(self, connection: Connection) -> _Known:
        key = _key(connection.name, connection.settings)
        if key not in self._known:
            offer = self.records.find(connection.name, connection.settings) or connection.offer
            if offer is None:
                raise MCPUnavailable(
                    f"The MCP server {connection.name} was never connected: nothing is known of its tools"
                )
            self._known[key] = _Known(offer, {tool.name: tool for tool in offer.tools}, offer.instructions)
        return self._known[key]

    def _changes(self, known: _Known, connection: Connection, live: Offer) -> _Changes:
        """What a person has to look at; new tools that need nobody are accepted here."""
        wanted = connection.settings.takes
        others = [tool for tool in live.tools if not known.holds(tool) and wanted(tool.name)]
        added = tuple(tool for tool in others if tool.name not in known.accepted)
        if connection.settings.new_tools or not self.records.is_configured(connection.name, connection.settings):
            known.accepted |= {tool.name: tool for tool in added}
            added = ()
        changed = tuple(tool for tool in others if tool.name in known.accepted and not known.holds(tool))
        return _Changes(_not_in(changed, known.refused), _not_in(added, known.refused))

    def _keep(self, connection: Connection, known: _Known, live: Offer) -> None:
        """Write down what holds for good: a definition that was not approved so leaves the one before in its place.

        One that is gone is remembered where new tools come without a question: it may come back as another.
        """
        name, settings = connection.name, connection.settings
        if not self.records.is_configured(name, settings):
            return
        record = self.records.find(name, settings)
        before = {tool.name: tool for tool in record.tools} if record else {}
        after = {tool.name: tool for tool in live.tools}
        kept: list[ToolOffer] = []
        for tool_name in sorted(before.keys() | after.keys()):
            new, old = after.get(tool_name), before.get(tool_name)
            if new is not None and known.holds_for_good(new):
                kept.append(new)
            elif old is not None and (new is not None or settings.new_tools):
                kept.append(old)
        self.records.keep(name, settings, replace(known.offer, tools=tuple(kept)))

    # ---- with the human

    async def _settle(self, connection: Connection, known: _Known, changes: _Changes, live: Offer) -> bool:
        """Have a person decide about changes, if one is there; what was not allowed is left out. False: nobody was asked yet."""
        session = self._session
        if session.approve_door is not None and not session.at_work:
            return False  # the first step of the next run asks
        request = _request(connection, known, changes, live)
        if session.approve_door is None or known.asked >= _MOST or is_too_long(request.preview):
            self._leave_out(connection, known, changes, _TOO_OFTEN if known.asked else _LEFT_OUT)
            return True
        known.asked += 1
        try:
            with session.clock.stopped():
                async with session.door:
                    approval = await self._approvals.put(request, session.approve_door)
        except Waiting:
            self._leave_out(connection, known, changes, _LEFT_OUT)
            return True
        if approval.decision == "deny":
            known.refused |= {tool.digest for tool in changes.tools}
            return True
        known.accepted |= {tool.name: tool for tool in changes.tools}
        known.instructions = live.instructions
        if approval.decision != "allow_always":
            known.for_session |= {tool.digest for tool in changes.tools}
        return True

    def _leave_out(self, connection: Connection, known: _Known, changes: _Changes, words: str) -> None:
        """Say it once a session, however often the server changes."""
        if not known.told:
            known.told = True
            look = own_command("approve", connection.name)
            self._session.notify("warning", words.format(name=connection.name, what=changes.words, look=look))


def _key(name: str, settings: MCPServerSettings) -> str:
    return f"{name}\n{settings.model_dump_json()}"


def _not_in(tools: Sequence[ToolOffer], digests: set[str]) -> tuple[ToolOffer, ...]:
    return tuple(tool for tool in tools if tool.digest not in digests)


def _tools(tools: Sequence[ToolOffer]) -> str:
    named = ", ".join(tool.name for tool in tools[:_MOST_NAMED])
    more = f" and {len(tools) - _MOST_NAMED} more" if len(tools) > _MOST_NAMED else ""
    return f"the tool{'s' if len(tools) > 1 else ''} {named}{more}"


def _request(connection: Connection, known: _Known, changes: _Changes, live: Offer) -> ApprovalRequest:
    """One question about a server; its id is none that a call can have by accident."""
    id = f"mcp-{secrets.token_hex(8)}"
    names = {"changed": [tool.name for tool in changes.changed], "new": [tool.name for tool in changes.added]}
    arguments = {"server": connection.name, **{what: tools for what, tools in names.items() if tools}}
    return ApprovalRequest(
        id=id,
        call=ToolCall(id=id, function=Function(name=ABOUT_A_SERVER, arguments=json.dumps(arguments))),
        actions=(Action(kind="read", resource=f"mcp://{connection.name}"),),
        why=f"the MCP server {connection.name} {changes.words} since that was approved",
        preview=difference(
            [known.accepted[t.name] for t in changes.changed],
            changes.tools,
            instructions=(known.instructions, live.instructions),
        ),
        rules=(f"the tools of {connection.name} as they are described here",),
    )
