"""What a session has cost, by model: a fold over its events."""

from __future__ import annotations

from dataclasses import dataclass, field

from handwork import events as ev
from handwork.cli.chat.status import dollars
from handwork.events import Event
from handwork.schema import Usage


@dataclass
class Spent:
    """What one model was asked. `cost` counts the requests with a known price, `unknown` the others."""

    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float = 0.0
    unknown: int = 0


@dataclass
class Costs:
    """`last` is the usage of the main agent's newest request: what its conversation takes up at the provider."""

    models: dict[str, Spent] = field(default_factory=dict)
    last: Usage | None = None
    _asked: dict[tuple[str, str, str | None], str] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Take the next event."""
        asker = (event.run_id, event.agent, event.parent_call)
        match event:
            case ev.RequestSent():
                self._asked[asker] = event.model
            case ev.UsageReported():
                self._add(self._asked.get(asker, ""), event)
            case ev.MemoryCleared() | ev.ContextFitted():
                self.last = None

    def _add(self, model: str, event: ev.UsageReported) -> None:
        usage = Usage(event.input, event.cached, event.written, event.output, event.reasoning)
        spent = self.models.setdefault(model, Spent())
        spent.requests += 1
        spent.usage += usage
        if event.cost_usd is None:
            spent.unknown += 1
        else:
            spent.cost += event.cost_usd
        if event.parent_call is None:
            self.last = usage

    @property
    def usage(self) -> Usage:
        return sum((spent.usage for spent in self.models.values()), Usage())

    @property
    def cost(self) -> float:
        return sum(spent.cost for spent in self.models.values())

    @property
    def unknown(self) -> int:
        """Requests whose price is not known."""
        return sum(spent.unknown for spent in self.models.values())

    def in_short(self, model: str) -> str:
        """The cost for the status line; '' while there is none."""
        if not self.models or model.startswith("local:"):
            return ""
        if not self.unknown:
            return dollars(self.cost)
        return f"{dollars(self.cost)} + unknown" if self.cost else "cost unknown"

    def share_of(self, window: int | None) -> str:
        """How full the model's window was at the newest request; '' before the first."""
        if self.last is None:
            return ""
        tokens = self.last.input + self.last.output
        if window:
            return f"context {100 * tokens / window:.0f} %"
        return f"context {tokens / 1000:.1f}k" if tokens >= 1000 else f"context {tokens} tokens"
