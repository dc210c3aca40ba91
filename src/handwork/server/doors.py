"""The two doors to the human who sits behind a client: questions and approvals as forms."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from handwork.errors import Waiting
from handwork.schema import JSON, Approval, ApprovalChoice, ApprovalRequest, Approve, Ask, Question
from handwork.server.exchange import Exchange, Reply

_CHOICES: dict[str, ApprovalChoice] = {"allow": "allow", "allow_session": "allow_session", "deny": "deny"}
_ANSWER: dict[str, JSON] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Answer"}},
    "required": ["answer"],
}
_DISMISSED = "the question was dismissed"


def doors(current: Callable[[], Exchange | None]) -> tuple[Ask, Approve]:
    """The doors of a session; `current` gives the exchange whose client can be asked now, None if there is none."""

    async def ask(question: Question) -> str:
        if (exchange := current()) is None:
            raise Waiting(f"Waiting for an answer to: {question.text}")
        reply = await exchange.ask(exactly(question.text), _ANSWER)
        answer = reply.content.get("answer")
        if reply.action == "decline":
            return "(The human declined to answer.)"
        if reply.action != "accept" or not isinstance(answer, str):
            raise Waiting(f"Waiting for an answer to: {question.text}")
        return answer

    async def approve(request: ApprovalRequest) -> Approval:
        if (exchange := current()) is None:
            return Approval(decision="deny", reason="nobody is there to approve it")
        return decision_of(await exchange.ask(_shown(request), _form(request)), remembers=bool(request.rules))

    return ask, approve


def decision_of(reply: Reply, *, remembers: bool) -> Approval:
    """What a reply to an approval comes to; whatever is no clear yes is a no."""
    if reply.action != "accept":
        return Approval(decision="deny", reason=_DISMISSED if reply.action == "cancel" else "")
    decision = _CHOICES.get(str(reply.content.get("decision")), "deny")
    if decision == "allow_session" and not remembers:
        decision = "allow"
    reason = reply.content.get("reason")
    return Approval(decision=decision, reason=reason if decision == "deny" and isinstance(reason, str) else "")


def _form(request: ApprovalRequest) -> dict[str, JSON]:
    """Without "always": what is allowed for good stands in the configuration of this machine's user, who may be somebody else."""
    choices: list[Any] = [name for name in _CHOICES if name != "allow_session" or request.rules]
    return {
        "type": "object",
        "properties": {
            "decision": {"type": "string", "title": "Run it?", "enum": choices},
            "reason": {"type": "string", "title": "If not, why not"},
        },
        "required": ["decision"],
    }


def _shown(request: ApprovalRequest) -> str:
    """All that is to be seen before a decision, with nothing in it that could hide."""
    parts = [f"{request.call.function.name} wants to run – {request.why}", _arguments(request.call.function.arguments)]
    if request.preview:
        parts.append(request.preview)
    if request.rules:
        parts.append("allow_session would allow in this session: " + "; ".join(request.rules))
    return exactly("\n\n".join(parts))


def _arguments(raw: str) -> str:
    try:
        arguments = json.loads(raw or "{}")
    except (ValueError, RecursionError):
        return raw
    if not isinstance(arguments, dict):
        return raw
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
    )


def exactly(text: str) -> str:
    """The text with every character that is not shown spelt out, as ⟨U+202E⟩; only newlines and spaces stay."""
    return "".join(char if char.isprintable() or char == "\n" else f"⟨U+{ord(char):04X}⟩" for char in text)
