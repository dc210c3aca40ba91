"""The rules that name exactly what a person allows, no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from handwork.config.host_names import place_of
from handwork.config.policy_rules import call_pattern, parse_rule, run_pattern
from handwork.errors import ConfigError
from handwork.policy.judge import Judge
from handwork.policy.running import is_harmless
from handwork.policy.scripts import Step
from handwork.policy.units import Command, Deed, Host, Path
from handwork.schema import Verdict

_MOST = 10
"""Rules of one approval; what would take more is named as a call."""


def exact_rules(judge: Judge, steps: Sequence[Step]) -> tuple[str, ...]:
    """The rules that would have spared this question: one for each thing that was asked about, else one for the very call.

    A command is named by its exact words, a file by its real path, an address by host and port. () if nothing can name it.
    """
    asked = [step.deed for step in steps if judge.judged(step).verdict is Verdict.ASK]
    named = [_rule(deed) for deed in asked]
    texts = tuple(dict.fromkeys(text for text in named if text))
    if asked and None not in named and len(texts) <= _MOST and _suffice(judge, steps, texts):
        return texts
    try:
        call = f"allow call {call_pattern(judge.tool, judge.arguments)}"
        return (call,) if str(parse_rule(call)) == call else ()
    except (ConfigError, TypeError, ValueError):
        return ()


def _suffice(judge: Judge, steps: Sequence[Step], texts: Sequence[str]) -> bool:
    try:
        rules = tuple(parse_rule(text) for text in texts)
    except ConfigError:
        return False
    with_them = judge.with_grants(rules)
    return all(with_them.judged(step).verdict is Verdict.ALLOW for step in steps)


def _rule(deed: Deed) -> str | None:
    if isinstance(deed, Command):
        return _of_command(deed)
    if isinstance(deed, Path) and deed.sure and not set(deed.path) & set("*?"):
        return f"allow {deed.kind} {deed.path}"
    if isinstance(deed, Host):
        return next(_of_host(deed), None)
    return None


def _of_command(deed: Command) -> str | None:
    words = deed.part.words
    known = words and all(word.static for word in words) and all(is_harmless(word) for word in deed.part.assigns)
    return f"allow run {run_pattern(tuple(word.text for word in words))}" if known else None


def _of_host(deed: Host) -> Iterator[str]:
    try:
        host, port = place_of(deed.address)
    except ValueError:
        return
    name = f"[{host}]" if ":" in host else host
    yield f"allow network {name}" + (f":{port}" if port is not None else "")
