"""Actions and consent: what a call does, who may allow it, and the doors to the human."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Literal, TypeAlias

from pydantic.dataclasses import dataclass as validated

from handwork.schema.messages import ToolCall
from handwork.schema.values import STRICT

ActionKind: TypeAlias = Literal["read", "write", "execute", "network", "ask", "end"]


@validated(frozen=True, slots=True, config=STRICT)
class Action:
    """What a call does to one resource: concurrency, policy and resume all read this.

    `resource` is a path, an address or a name; `*` is shared with every resource, a folder with all below it.
    `repeatable` says that doing it twice is the same as doing it once. `command` is the text of a shell command that an
    `execute` runs, whole: policy reads its parts. With a resource of its own it is what is typed into a program of that name.
    `sifted`: what rules forbid to read below the resource is left out by the tool itself (`ToolContext.forbids`).
    """

    kind: ActionKind
    resource: str = "*"
    repeatable: bool = False
    command: str = ""
    sifted: bool = False


class Mode(StrEnum):
    """Who approves calls (CONTRACT H)."""

    ASK = "ask"
    AUTO = "auto"
    READ_ONLY = "read-only"


class Verdict(StrEnum):
    """What the policy says about a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@validated(frozen=True, slots=True, config=STRICT)
class Decision:
    """The policy's verdict and the reason, in words for a person; `by` says whether a rule or the mode decided."""

    verdict: Verdict
    why: str = ""
    by: Literal["rule", "mode"] = "mode"


@validated(frozen=True, slots=True, config=STRICT)
class Question:
    """A question of the agent to its human."""

    id: str
    text: str
    call_id: str | None = None


ApprovalChoice: TypeAlias = Literal["allow", "allow_session", "allow_always", "deny"]


@validated(frozen=True, slots=True, config=STRICT)
class ApprovalRequest:
    """May this call run? `call.function.arguments` is exactly what will run.

    `preview` is what it would change, as a unified diff ('' if that is not known before). `rules` are what "allow for this
    session" and "always" write down: rules of [policy] that name exactly what was allowed; without any, neither can be chosen.
    """

    id: str
    call: ToolCall
    actions: tuple[Action, ...]
    why: str
    preview: str = ""
    rules: tuple[str, ...] = ()


@validated(frozen=True, slots=True, config=STRICT)
class Approval:
    """A human's answer to an ApprovalRequest; `reason` reaches the model when denied."""

    decision: ApprovalChoice
    reason: str = ""


Ask: TypeAlias = Callable[[Question], Awaitable[str]]
"""The door for questions. Raise Waiting when nobody is there."""
Approve: TypeAlias = Callable[[ApprovalRequest], Awaitable[Approval]]
"""The door for approvals."""
AllowHost: TypeAlias = Callable[[str, int, str], Awaitable[Decision]]
"""allow_host(host, port, name): whether what runs in the sandbox may reach that place (allow or deny), and why. Asked for every
connection; `name`: what was asked for and leads to `host`, an address, '' if that was asked for itself."""
Notify: TypeAlias = Callable[[str, str], None]
"""notify(level, text): how sandbox, llm and mcp report; level is info, warning or error."""
