"""Whether a session may spend more: its budget beside what was spent, by itself or by all that share a purse."""

from __future__ import annotations

from handwork.errors import BudgetExceeded
from handwork.events import Event, UsageReported
from handwork.schema import Budget, Usage
from handwork.store.past import Past


def check(budget: Budget, past: Past) -> None:
    """Raises BudgetExceeded if nothing may be spent any more."""
    cost = past.cost or 0.0
    if budget.usd is not None and cost >= budget.usd:
        spent = f"The budget of ${budget.usd:g} is spent (${cost:.4f})"
        raise BudgetExceeded(spent, option=f"--budget {2 * max(budget.usd, cost) or 1:g}")
    if budget.tokens is not None and past.spent.total >= budget.tokens:
        spent = f"The budget of {budget.tokens:,} tokens is spent ({past.spent.total:,})"
        raise BudgetExceeded(spent, option=f"--max-total-tokens {2 * max(budget.tokens, past.spent.total) or 100_000}")


class Purse:
    """What several sessions may spend together. It is a listener of each of them, so that it knows what was spent."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._usd, self._tokens = 0.0, 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, UsageReported):
            self._usd += event.cost_usd or 0.0
            self._tokens += Usage(event.input, event.cached, event.written, event.output, event.reasoning).total

    def check(self) -> None:
        """Raises BudgetExceeded if nothing may be spent any more."""
        budget = self._budget
        if budget.usd is not None and self._usd >= budget.usd:
            raise _empty(f"${budget.usd:g}", f"${self._usd:.4f}", "--budget")
        if budget.tokens is not None and self._tokens >= budget.tokens:
            raise _empty(f"{budget.tokens:,} tokens", f"{self._tokens:,}", "--max-total-tokens")


def _empty(budget: str, spent: str, option: str) -> BudgetExceeded:
    return BudgetExceeded(
        f"The budget of {budget} for all tasks of this server together is spent ({spent}); whoever runs it can start it anew, "
        f"with a larger {option}"
    )
