"""What holds in a session: the rules of [policy], what was allowed for good, and what was allowed in the session itself."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from handwork.config import Settings
from handwork.config.approvals import Approvals
from handwork.config.policy_rules import Rule, parse_rule
from handwork.errors import ConfigError
from handwork.policy.closed import Closed
from handwork.policy.decide import Call, all_steps, decide
from handwork.policy.exact import exact_rules
from handwork.policy.judge import Judge
from handwork.policy.paths import Place, real_pattern
from handwork.sandbox.closed import Rules
from handwork.schema import Action, Decision, Mode, Verdict

_ABOUT_PATHS = ("read", "write")


class Grants:
    """Decides about calls, and keeps what people allowed.

    Args:
        settings: its [policy] has the rules; approvals for good lie in its configuration folder.
        workspace: where the session works: approvals for good are kept for it alone.

    Raises ConfigError for a rule or a file of approvals that cannot be used.
    """

    def __init__(self, settings: Settings, workspace: Path) -> None:
        self.rules = tuple(map(parse_rule, settings.policy.rules))
        """The rules of [policy]."""
        self._workspace = workspace
        self._home = os.path.realpath(settings.environ.get("HOME") or "/")
        self._approvals = Approvals(settings.home.config)
        self._own = tuple(_kept(settings))
        self._anywhere = [*map(parse_rule, self._approvals.rules(workspace, anywhere=True))]
        self._grants = [*map(parse_rule, self._approvals.rules(workspace)), *self._anywhere]
        self._for_session: list[str] = []
        self._places: dict[str, tuple[Place, tuple[Rule, ...]]] = {}

    @property
    def asks_about_paths(self) -> bool:
        """Whether any rule is about paths, so that it matters where links lead to."""
        return any(rule.kind in _ABOUT_PATHS for rule in (*self.rules, *self._grants))

    @property
    def about_network(self) -> Sequence[Rule]:
        """Every rule about the network, what people allowed included."""
        return [rule for rule in (*self.rules, *self._grants) if rule.kind == "network"]

    @property
    def closing(self) -> Rules:
        """What the sandbox is to hold of the rules of [policy]; nothing that was allowed changes a refusal."""
        denied = [str(rule) for rule in self.rules if rule.kind in _ABOUT_PATHS and rule.verdict is Verdict.DENY]
        place, rules = self._at("")
        return Rules(denied, Closed(rules, place)) if denied else Rules()

    def forbids_reading(self, path: str, workspace: str = "") -> bool:
        """Whether a rule forbids reading a real path for sure; `workspace` is where relative ones in rules lead to."""
        place, rules = self._at(workspace)
        return bool(Closed(rules, place)("read", path, False)[0])

    def decide(
        self,
        actions: Sequence[Action],
        *,
        mode: Mode,
        contained: bool,
        call: Call | None = None,
        real: Mapping[str, str] | None = None,
        workspace: str = "",
    ) -> Decision:
        """What the rules, what was allowed, and the mode say; see `policy.decide`. `workspace` is the one that the tool sees."""
        place, rules = self._at(workspace)
        return decide(
            actions,
            mode=mode,
            contained=contained,
            rules=rules if contained else (*self._own, *rules),
            grants=self._granted(contained),
            place=place,
            call=call,
            real=real,
        )

    def exact(
        self,
        actions: Sequence[Action],
        *,
        mode: Mode,
        contained: bool,
        call: Call,
        real: Mapping[str, str] | None = None,
        workspace: str = "",
    ) -> tuple[str, ...]:
        """The rules that name exactly what these actions are asked about for."""
        place, rules = self._at(workspace)
        judge = Judge(mode, contained, rules, tuple(self._granted(contained)), place, call.tool, call.arguments)
        return exact_rules(judge, all_steps(actions, real or {}))

    def allow(self, rules: Sequence[str], *, for_good: bool, contained: bool = True) -> None:
        """Keep what a person allowed, for this session or for good: what was allowed in a sandbox holds in one alone.

        Raises ConfigError if it cannot be kept for good; for the session it holds then, too.
        """
        allowed = [*map(parse_rule, rules)]
        self._grants += allowed
        self._anywhere += [] if contained else allowed
        try:
            if for_good and rules:
                self._approvals.add(self._workspace, rules, anywhere=not contained)
                return
        except ConfigError:
            self._for_session += rules
            raise
        self._for_session += rules

    def recall(self, granted: Iterable[str]) -> None:
        """Take what the journal says was allowed in this session, for sandboxes alone: it does not say where that was.

        What is not understood any more allows nothing.
        """
        for text in granted:
            with suppress(ConfigError):
                self._grants.append(parse_rule(text))
                self._for_session.append(text)

    @property
    def for_session(self) -> tuple[str, ...]:
        """The rules that people allowed for this session alone."""
        return tuple(dict.fromkeys(self._for_session))

    def forget(self, rules: Collection[str]) -> None:
        """Take back what was allowed for this session; what is written down for good stays."""
        kept = [text for text in self._for_session if text not in rules]
        for each in (self._grants, self._anywhere):
            for text in self._for_session:
                if text in rules and (rule := parse_rule(text)) in each:
                    each.remove(rule)
        self._for_session = kept

    def _granted(self, contained: bool) -> Sequence[Rule]:
        """What people allowed that holds here: who said yes to a program in a sandbox has not said yes to it on this machine.

        A host is the same one from everywhere.
        """
        return [rule for rule in self._grants if contained or rule.kind == "network" or rule in self._anywhere]

    def _at(self, workspace: str) -> tuple[Place, tuple[Rule, ...]]:
        """Where relative paths lead to, and the rules with the real paths of what they name."""
        if workspace not in self._places:
            place = Place(os.path.realpath(workspace or self._workspace), self._home)
            self._places[workspace] = place, tuple(_with_real_paths(self.rules, place))
        return self._places[workspace]


def _with_real_paths(rules: Sequence[Rule], place: Place) -> Iterator[Rule]:
    """A rule about what lies behind a link holds for where that leads to as well."""
    for rule in rules:
        yield rule
        if rule.kind in _ABOUT_PATHS and (real := real_pattern(rule.pattern, place)) != place.absolute(rule.pattern):
            yield replace(rule, pattern=real)


def _kept(settings: Settings) -> Iterator[Rule]:
    """Our own files are nobody's to write where no sandbox hides them."""
    for folder in (settings.home.config, settings.home.data):
        path = os.path.realpath(folder)
        if path.isprintable() and not set(path) & set("*?"):
            yield replace(parse_rule(f"deny write {path}"), ours=True)
