"""The policy as a table: rules, mode, whether a sandbox confines it, what is done → allow, ask or deny."""

from __future__ import annotations

from typing import NamedTuple, cast

from handwork.config.policy_rules import parse_rule
from handwork.policy.decide import Call, decide
from handwork.policy.paths import Place
from handwork.schema import Action, ActionKind, Decision, Mode

PLACE = Place("/ws", "/h")


class Row(NamedTuple):
    """`rules` are separated by ` ;; `; `done` is a command, or behind a colon `kind resource` of an action."""

    rules: str
    mode: str
    done: str
    verdict: str
    contained: bool = True


def judged(row: Row, *, grants: tuple[str, ...] = ()) -> Decision:
    """What the policy says about a row."""
    rules = [parse_rule(text.strip()) for text in row.rules.split(" ;; ") if text.strip()]
    return decide(
        [action_of(row.done)],
        mode=Mode(row.mode),
        contained=row.contained,
        rules=rules,
        grants=[parse_rule(text) for text in grants],
        place=PLACE,
        call=Call("bash" if not row.done.startswith(":") else "a_tool", {"command": row.done}),
        real={"/ws/out/a": "/ws/out/a", "/ws/link/a": "/etc/a"},
    )


def action_of(done: str) -> Action:
    """The action of a row."""
    if not done.startswith(":"):
        return Action(kind="execute", command=done)
    kind, _, resource = done[1:].partition(" ")
    return Action(kind=cast(ActionKind, kind), resource=resource or "*")
