"""May this call run: a pure function of what it does, the rules, who approves, and whether the system confines it (CONTRACT H)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from handwork.config.policy_rules import Rule
from handwork.policy.judge import Finding, Judge, strictest
from handwork.policy.paths import Place, is_real
from handwork.policy.scripts import Step, steps
from handwork.policy.units import Host, Other, Path
from handwork.schema import JSON, Action, Decision, Mode, Verdict
from handwork.schema.plans import OWN_PLAN

_UNDECLARED = Action(kind="execute", resource="*")
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Call:
    """The call that does it, for rules about tools and about exact calls."""

    tool: str = ""
    arguments: JSON = None


def decide(
    actions: Sequence[Action],
    *,
    mode: Mode,
    contained: bool,
    rules: Sequence[Rule] = (),
    grants: Sequence[Rule] = (),
    place: Place | None = None,
    call: Call | None = None,
    real: Mapping[str, str] | None = None,
) -> Decision:
    """Allow a call, refuse it, or have a human decide.

    Each thing that it does is looked up in the rules, in order; the first that names it decides, and the strictest verdict over
    all of them holds (deny, ask, allow). A rule that denies or asks and may apply asks; one that allows applies for sure or not
    at all. Where no rule speaks the mode does: reading, asking the human, ending the run and writing the agent's own plan
    are allowed; everything else (write, execute, network, and kinds that are not known) is refused in read-only mode, put to
    the human in ask mode, and in auto mode allowed if it is contained, else put to the human. No rule loosens read-only.

    Args:
        actions: what the call does; nothing declared is the worst, execute on `*`. Paths are real (`Sandbox.resolve`).
        mode: who approves.
        contained: whether whoever started the program vouches for the effects: the sandbox confines them, or the program
            itself passed the tool in. A `network` action is never a mere read, since an address can carry data out.
        rules: those of [policy], and what was allowed for good.
        grants: what people allowed: they answer a question, and never change a refusal.
        place: where relative paths in rules and `~` lead to.
        real: the real paths of what redirections in a command open.
    """
    call = call or Call()
    judge = Judge(mode, contained, tuple(rules), tuple(grants), place or Place(), call.tool, call.arguments)
    parsed = bool(rules or grants) or mode != Mode.AUTO or not contained
    findings = [judge.judged(step) for step in all_steps(actions, real or {}, parsed=parsed)]
    worst = strictest(findings)
    if worst.verdict is Verdict.ASK and judge.call_granted():
        return Decision(verdict=Verdict.ALLOW, why="this very call was allowed before", by="rule")
    return Decision(verdict=worst.verdict, why=_why(worst, findings), by=worst.by)


def all_steps(actions: Sequence[Action], real: Mapping[str, str], *, parsed: bool = True) -> list[Step]:
    """Everything that the actions do; commands are looked into if `parsed`: if anything speaks about their parts, or of them."""
    return [step for action in actions or [_UNDECLARED] for step in _steps(action, real, parsed=parsed)]


def _steps(action: Action, real: Mapping[str, str], *, parsed: bool) -> Sequence[Step]:
    kind, resource = action.kind, action.resource
    if kind in ("ask", "end") or (kind == "write" and resource == OWN_PLAN):
        return [Step(Other("plan, ask or end the run", harmless=True))]
    if kind == "read" or kind == "write":
        real_path = is_real(resource)
        named = real_path or "://" in resource
        return [Step(Path(kind, resource, sure=named, lost=not named, sifted=action.sifted))]
    if kind == "network":
        return [Step(Host(resource))]
    if kind == "execute" and action.command and parsed:
        found = steps(action.command, real)
        if resource not in ("", "*"):  # typed into a program: no rule that allows commands names it
            return [Step(Other(f"type into {resource}: {action.command}"), ((-1, found),))]
        return found or [Step(Other("run a program"))]
    words = "run a program" if kind == "execute" and resource in ("", "*") else f"{_verb(kind)} {resource}"
    return [Step(Other(words))]


def _verb(kind: str) -> str:
    return "run something on" if kind == "execute" else kind


def _why(worst: Finding, findings: Sequence[Finding]) -> str:
    if worst.by == "rule":
        return worst.why
    same = [each for each in findings if each.verdict is worst.verdict and each.by == "mode"]
    parts = list(dict.fromkeys(each.shown for each in same if each.shown))
    if not parts:
        return worst.why
    more = len(parts) - _SHOWN
    return worst.why + ", ".join(parts[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
