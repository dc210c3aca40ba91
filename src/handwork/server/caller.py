"""Runs a client's calls just as an agent's calls are run: policy, journal, masking, limits – the same path."""

from __future__ import annotations

from handwork import events as ev
from handwork.agent.manus import Manus
from handwork.agent.observe import limit_for
from handwork.agent.toolcall import ToolCallAgent
from handwork.agent.turn import Turn
from handwork.schema import Limits, Status, ToolCall, Usage
from handwork.server.in_turn import InTurn
from handwork.store.past import Outcome


class Caller(ToolCallAgent):
    """An agent without a model: a client decides what is called. Its one run lasts as long as its session is open."""

    name = "mcp"
    special_tool_names: list[str] = []
    max_observe = Manus.max_observe
    project_instructions = False

    def initialize_agent(self) -> None:
        """There is no model to be made."""
        self._in_turn = InTurn()

    def begin(self) -> None:
        """Tell that the run begins."""
        run = self._current()
        run.emit(ev.RunStarted(request=None, model="", workspace=str(run.session.workspace), limits=Limits()))

    async def call(self, command: ToolCall) -> Outcome:
        """Run one call. Raises what ends an agent's run: SandboxUnavailable, ConfigError, JournalError, Waiting."""
        turn = Turn(self._current(), self, [command], limit=limit_for(self.max_observe, 1), cut=False)
        await self._in_turn.run(turn, command)
        return turn.outcomes[command.id]

    def end(self) -> None:
        """Tell that the run is over; nothing is told after that."""
        run = self._current()
        run.closing = True
        run.emit(ev.RunFinished(status=Status.FINISHED, output="", steps=0, usage=Usage(), cost_usd=None))
        run.closed = True
