"""What a session tree has spent, and whether it may spend more."""

from __future__ import annotations

from handwork.errors import BudgetExceeded
from handwork.schema import Budget, Usage


class Ledger:
    """Tokens and USD of all requests of a session tree. `cost` is None until a price was known."""

    def __init__(self, usage: Usage, cost: float | None) -> None:
        self.usage, self.cost = usage, cost
        self.budget = Budget()
        self.unpriced = False
        """Whether some request had no known price: then the USD figure is a lower bound."""
        self.told = False
        """Whether the user knows that a USD budget cannot be held."""

    @property
    def blind(self) -> bool:
        """Whether there is a USD budget that cannot be held, and the user was not told yet."""
        return self.unpriced and self.budget.usd is not None and not self.told

    def add(self, usage: Usage, cost: float | None) -> None:
        self.usage += usage
        if cost is None:
            self.unpriced = True
        else:
            self.cost = (self.cost or 0.0) + cost

    def check(self) -> None:
        """Raise BudgetExceeded if nothing may be spent any more."""
        usd, tokens = self.budget.usd, self.budget.tokens
        if usd is not None and (self.cost or 0.0) >= usd:
            raise BudgetExceeded(f"The budget of ${usd:g} is spent (${self.cost or 0.0:.4f})")
        if tokens is not None and self.usage.total >= tokens:
            spent = f"The budget of {tokens:,} tokens is spent ({self.usage.total:,})"
            raise BudgetExceeded(spent, option="--max-total-tokens N")
