"""Whether a session may spend more: its budget beside what its journal says was spent."""

from __future__ import annotations

from handwork.errors import BudgetExceeded
from handwork.schema import Budget
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
