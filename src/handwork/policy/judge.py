"""What rules, grants and mode say about one thing that a call does, and about what it makes run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from handwork.config.policy_rules import Rule, call_pattern
from handwork.policy.match import Match
from handwork.policy.paths import Place
from handwork.policy.scripts import Step
from handwork.policy.units import Command, Deed, Other, Path, plain
from handwork.schema import JSON, Mode, Verdict

_ORDER = (Verdict.ALLOW, Verdict.ASK, Verdict.DENY)


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict: `why` begins a sentence, which `shown` (what would be done) ends where the mode decided."""

    verdict: Verdict
    why: str
    by: Literal["rule", "mode"] = "mode"
    shown: str = ""
    rule: Rule | None = None


def strictest(findings: Sequence[Finding]) -> Finding:
    """The first of those with the strictest verdict; a rule's goes before the mode's."""
    return max(findings, key=lambda each: (_ORDER.index(each.verdict), each.by == "rule"))


@dataclass(frozen=True)
class Judge:
    """See `decide` for what these are."""

    mode: Mode
    contained: bool
    rules: tuple[Rule, ...]
    grants: tuple[Rule, ...]
    place: Place
    tool: str
    arguments: JSON

    def judged(self, step: Step) -> Finding:
        """The verdict about a step and all that it makes run."""
        own = self._of(step.deed)
        found = strictest([own, *self._objections(step, own)])
        if found.verdict is Verdict.ASK and self._granted(step):
            return Finding(Verdict.ALLOW, "it was allowed before", "rule")
        return found

    def with_grants(self, more: Sequence[Rule]) -> Judge:
        """The same, with more that was allowed."""
        return replace(self, grants=(*self.grants, *more))

    def call_granted(self) -> bool:
        """Whether exactly this call was allowed."""
        return any(rule.kind == "call" and self._about_call(rule) is Match.YES for rule in self.grants)

    def _of(self, deed: Deed) -> Finding:
        if self.mode == Mode.READ_ONLY and not _is_harmless(deed):
            return self._by_mode(deed)
        return self._by_rule(deed) or self._by_mode(deed)

    def _by_rule(self, deed: Deed) -> Finding | None:
        asked: Finding | None = None
        for rule in self.rules:
            match = self._match(rule, deed)
            if match is Match.YES:
                found = Finding(rule.verdict, _because(rule, deed), "rule", rule=rule)
                return strictest([asked, found]) if asked else found
            if match is Match.MAYBE and rule.verdict is not Verdict.ALLOW and asked is None:
                asked = Finding(Verdict.ASK, _perhaps(rule, deed), "rule", rule=rule)
        return asked

    def _match(self, rule: Rule, deed: Deed) -> Match:
        if rule.kind in ("tool", "call"):
            return Match.NO if isinstance(deed, Path) and deed.guess else self._about_call(rule)
        found = deed.match(rule, self.place)
        if found is Match.MAYBE and rule.verdict is Verdict.DENY and isinstance(deed, Path) and self._is_kept(deed):
            return Match.NO
        return found

    def _is_kept(self, deed: Path) -> bool:
        """Whether a refusal of something below a folder is kept by who reads the folder: the tool, and the sandbox it works in."""
        return deed.sifted and self.contained and not deed.lost

    def _about_call(self, rule: Rule) -> Match:
        if rule.kind == "call":
            return Match.YES if rule.pattern == self._call else Match.NO
        fits = self.tool.startswith(rule.pattern[:-1]) if rule.pattern.endswith("*") else self.tool == rule.pattern
        return Match.YES if fits else Match.NO

    @cached_property
    def _call(self) -> str:
        return call_pattern(self.tool, self.arguments)

    def _by_mode(self, deed: Deed) -> Finding:
        if self.mode == Mode.READ_ONLY and not _is_harmless(deed):
            return Finding(Verdict.DENY, "read-only mode allows reading alone, and this would ", shown=deed.shown())
        if _is_harmless(deed) or (isinstance(deed, Command) and deed.harmless):
            return Finding(Verdict.ALLOW, "it only reads, plans, asks or ends the run")
        if self.mode == Mode.AUTO and self.contained:
            return Finding(Verdict.ALLOW, "auto mode: its effects are contained")
        why = "ask mode: it would " if self.contained else "no sandbox confines this fully, and it would "
        return Finding(Verdict.ASK, why, shown=deed.shown())

    def _objections(self, step: Step, own: Finding) -> Iterator[Finding]:
        """What speaks against the commands behind a command: rules that name them, and that a `*` does not cover them."""
        for at, inner in step.inner:
            uncovered = own.rule is not None and _leaves_open(own.rule, own.verdict, at)
            for each in inner:
                found = self.judged(each)
                if found.verdict is not Verdict.ALLOW and (uncovered or found.by == "rule"):
                    yield found

    def _granted(self, step: Step) -> bool:
        """Whether what was allowed names this step, with all that it makes run."""
        return any(
            rule.verdict is Verdict.ALLOW
            and self._match(rule, step.deed) is Match.YES
            and not any(_leaves_open(rule, Verdict.ALLOW, at) for at, _ in step.inner)
            for rule in self.grants
        )


def _leaves_open(rule: Rule, verdict: Verdict, at: int) -> bool:
    return verdict is Verdict.ALLOW and rule.kind == "run" and bool(rule.words) and rule.open and at >= len(rule.words)


def _is_harmless(deed: Deed) -> bool:
    return (isinstance(deed, Path) and deed.kind == "read") or (isinstance(deed, Other) and deed.harmless)


def _perhaps(rule: Rule, deed: Deed) -> str:
    if rule.ours:
        return f"no sandbox keeps it from Handwork's own files, and it would {deed.shown()}"
    return f"the rule {_quoted(rule)} may apply, as it would {deed.shown()}"


def _because(rule: Rule, deed: Deed) -> str:
    if rule.ours:
        return f"no program is to change Handwork's own files: it would {deed.shown()}"
    if rule.verdict is Verdict.ALLOW:
        return f"the rule {_quoted(rule)} allows it"
    verb = "forbids this" if rule.verdict is Verdict.DENY else "wants to be asked"
    return f"the rule {_quoted(rule)} {verb}: it would {deed.shown()}"


def _quoted(rule: Rule) -> str:
    return f"“{plain(str(rule))}”"
