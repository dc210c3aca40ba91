"""Which real paths the rules of [policy] forbid for sure, so that the sandbox can hold what no word of a command tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from handwork.config.policy_rules import Rule
from handwork.policy.match import Match
from handwork.policy.paths import ANY, Pattern, Place, compiled
from handwork.schema import Verdict


@dataclass(frozen=True, slots=True)
class _Named:
    rule: Rule
    pattern: Pattern | None
    """None names everything."""

    def names(self, path: str) -> bool:
        return self.pattern is None or self.pattern.match(path) is Match.YES

    def leads_to(self, path: str) -> bool:
        return self.pattern is not None and self.pattern.leads_to(path)


class Closed:
    """The rules about paths alone, in their order: those about tools decide about calls, and programs are no calls."""

    def __init__(self, rules: Sequence[Rule], place: Place) -> None:
        self._rules: dict[str, list[_Named]] = {"read": [], "write": []}
        for rule in rules:
            if rule.kind in self._rules and "://" not in rule.pattern:
                pattern = None if rule.pattern in ANY else compiled(place.absolute(rule.pattern))
                self._rules[rule.kind].append(_Named(rule, pattern))

    def __call__(self, kind: Literal["read", "write"], path: str, folder: bool = True) -> tuple[str, bool]:
        """The rule that forbids it, '' if none does; and whether all that lies below the path stands the same (True for what
        is no folder).

        The first rule that names a path decides. What is to be asked about is not forbidden.
        """
        below: list[bool] = []
        decided = ""
        for each in self._rules[kind]:
            denies = each.rule.verdict is Verdict.DENY
            if each.names(path):
                decided = str(each.rule) if denies else ""
                break
            if folder and each.leads_to(path):
                below.append(denies)
        return decided, all(denies is bool(decided) for denies in below)
