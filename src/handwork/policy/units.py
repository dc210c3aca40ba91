"""The single things that a call does, each able to tell which rules speak about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from handwork.config.host_names import host_matches, place_of
from handwork.config.policy_rules import Rule
from handwork.policy.match import Match
from handwork.policy.parts import Part
from handwork.policy.paths import Place, path_match
from handwork.policy.running import allows, is_harmless, run_match
from handwork.policy.taking_data import takes_data
from handwork.schema import Verdict

_ABOUT_COMMANDS = frozenset({"run", "read", "write", "network"})


class Deed(Protocol):
    """One thing that a call does."""

    def match(self, rule: Rule, place: Place) -> Match:
        """How surely a rule (not one about a tool or a call) names it. A rule that allows does so for sure or not at all."""
        ...

    def shown(self) -> str:
        """What it would do, for a sentence: `write to /x`."""
        ...


@dataclass(frozen=True, slots=True)
class Path:
    """Reading or writing a path.

    sure: it is real, so that a rule may allow it. guess: a command only names it. lost: nobody knows where it leads.
    whole: a guess of a command that works on whole folders. sifted: what may not be read below it is left out.
    """

    kind: Literal["read", "write"]
    path: str
    sure: bool = False
    guess: bool = False
    lost: bool = False
    whole: bool = False
    sifted: bool = False

    def match(self, rule: Rule, place: Place) -> Match:
        if rule.kind != self.kind:
            return Match.NO
        found = path_match(rule.pattern, self.path, place)
        if rule.verdict is Verdict.ALLOW:
            known = self.sure or self.guess or rule.pattern in ("*", "**")
            return found if found is Match.YES and known else Match.NO
        if self.guess and not self.whole and found is Match.MAYBE:
            return Match.NO
        return max(found, Match.MAYBE) if self.lost else found

    def shown(self) -> str:
        verb = "read" if self.kind == "read" else "write to"
        if self.path in ("", "*"):
            return f"{self.kind} anywhere"
        return f"{verb} {plain(self.path)}" + (", wherever that is then" if self.lost else "")


@dataclass(frozen=True, slots=True)
class Host:
    """Reaching an address over the network."""

    address: str

    def match(self, rule: Rule, place: Place) -> Match:
        if rule.kind != "network":
            return Match.NO
        if rule.pattern == "*":
            return Match.YES
        try:
            host, port = place_of(self.address)
        except ValueError:
            return Match.NO if rule.verdict is Verdict.ALLOW else Match.MAYBE
        if host_matches(rule.pattern, host, port):
            return Match.YES
        maybe = port is None and rule.verdict is not Verdict.ALLOW and host_matches(_portless(rule.pattern), host, None)
        return Match.MAYBE if maybe else Match.NO

    def shown(self) -> str:
        return f"reach over the network {plain(self.address)}" if self.address not in ("", "*") else "reach any address"


@dataclass(frozen=True, slots=True)
class Command:
    """Running one command of a shell; `defined` are functions and aliases that are made beside it."""

    part: Part
    defined: frozenset[str]

    def match(self, rule: Rule, place: Place) -> Match:
        if rule.kind != "run":
            return Match.NO
        if rule.verdict is Verdict.ALLOW:
            return Match.YES if allows(rule, self.part, self.defined) else Match.NO
        return run_match(rule, self.part)

    @property
    def harmless(self) -> bool:
        """Whether it only sets variables that change nothing but words and colours."""
        return not self.part.words and all(map(is_harmless, self.part.assigns))

    def shown(self) -> str:
        if not self.part.words:
            return f"set {plain(', '.join(word.assigns for word in self.part.assigns))} for all that follows"
        words = [word.text if word.text and (word.static or word.glob) else "…" for word in self.part.words]
        fed = " with what is fed to it" if self.part.fed and not takes_data(self.part.words) else ""
        return f"run {plain(' '.join(words))}{fed}"


@dataclass(frozen=True, slots=True)
class Unread:
    """A part of a command that is not understood: whatever a rule about commands names may be in it."""

    def match(self, rule: Rule, place: Place) -> Match:
        if rule.kind == "run" and not rule.words:
            return Match.YES
        maybe = rule.verdict is not Verdict.ALLOW and rule.kind in _ABOUT_COMMANDS
        return Match.MAYBE if maybe else Match.NO

    def shown(self) -> str:
        return "run a command that is not understood"


@dataclass(frozen=True, slots=True)
class Other:
    """What no rule names but one about its tool: asking, ending, a program that does who knows what."""

    words: str
    harmless: bool = False

    def match(self, rule: Rule, place: Place) -> Match:
        return Match.NO

    def shown(self) -> str:
        return plain(self.words)


_LONGEST = 200


def plain(text: str) -> str:
    """A text as one line in which nothing acts on a terminal or hides: the model chose it, a person reads it."""
    if text in ("", "*"):
        return "anything"
    shown = "".join(sign if sign.isprintable() else f"⟨U+{ord(sign):04X}⟩" for sign in text[:_LONGEST])
    return f"{shown}…" if len(text) > _LONGEST else shown


def _portless(pattern: str) -> str:
    host, _, port = pattern.rpartition(":")
    return host if host and port.isdigit() and (":" not in host or host.endswith("]")) else pattern
