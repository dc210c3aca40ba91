"""May this call run: a pure function of what it does, who approves, and whether the system confines it (CONTRACT H)."""

from __future__ import annotations

from collections.abc import Sequence

from handwork.schema import Action, Decision, Mode, Verdict
from handwork.schema.plans import OWN_PLAN

_UNDECLARED = Action(kind="execute", resource="*")
_HARMLESS = frozenset({"read", "ask", "end"})
_SHOWN = 3
_LONGEST = 200


def decide(actions: Sequence[Action], *, mode: Mode, contained: bool) -> Decision:
    """Allow a call, refuse it, or have a human decide.

    Reading, asking the human, ending the run and writing the agent's own plan are always allowed. Everything else (write,
    execute, network, and kinds that are not known) is refused in read-only mode, put to the human in ask mode, and in auto
    mode allowed if it is contained, else put to the human. A `network` action is never a mere read, even if it fetches only:
    an address and its query can carry data out, so read-only and ask hold for it; that auto lets our own web tools read
    public addresses is the caller's `contained=True` for them.

    Args:
        actions: what the call does; nothing declared is the worst, execute on `*`.
        mode: who approves.
        contained: whether whoever started the program vouches for the effects: the sandbox confines them, or the program
            itself passed the tool in.
    """
    more = [action for action in actions if not _is_harmless(action)] if actions else [_UNDECLARED]
    if not more:
        return Decision(verdict=Verdict.ALLOW, why="it only reads, plans, asks or ends the run")
    what = _shown(more)
    if mode == Mode.READ_ONLY:
        return Decision(verdict=Verdict.DENY, why=f"read-only mode allows reading alone, and this would {what}")
    if mode == Mode.AUTO and contained:
        return Decision(verdict=Verdict.ALLOW, why="auto mode: its effects are contained")
    if not contained:
        return Decision(verdict=Verdict.ASK, why=f"no sandbox confines this, and it would {what}")
    return Decision(verdict=Verdict.ASK, why=f"ask mode: it would {what}")


def _is_harmless(action: Action) -> bool:
    return action.kind in _HARMLESS or (action.kind == "write" and action.resource == OWN_PLAN)


_VERBS = {"write": "write to", "execute": "run something on", "network": "reach over the network"}
_ON_ANYTHING = {"write": "write anywhere", "execute": "run a program", "network": "reach any address"}


def _shown(actions: Sequence[Action]) -> str:
    parts = list(dict.fromkeys(_effect(action) for action in actions))
    more = len(parts) - _SHOWN
    return ", ".join(parts[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _effect(action: Action) -> str:
    if action.resource in ("", "*") and action.kind in _ON_ANYTHING:
        return _ON_ANYTHING[action.kind]
    return f"{_VERBS.get(action.kind, action.kind)} {_plain(action.resource)}"


def _plain(resource: str) -> str:
    """A resource as one line in which nothing acts on a terminal or hides: the model chose it, a person reads it."""
    if resource in ("", "*"):
        return "anything"
    text = "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in resource[:_LONGEST]
    )
    return f"{text}…" if len(resource) > _LONGEST else text
