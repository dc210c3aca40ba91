"""May this call run: the policy, then the grants, then the human."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from handwork import events as ev
from handwork.agent.run import Run
from handwork.policy.decide import decide
from handwork.schema import Action, Approval, ApprovalRequest, Approve, Decision, ToolCall, Verdict


async def denial(run: Run, call: ToolCall, actions: Sequence[Action], *, contained: bool) -> str | None:
    """None if the call may run, else why not, in words for the model."""
    decision = _decide(run, actions, contained=contained)
    put_before = call.id in run.session.past.unapproved
    if decision.verdict is Verdict.ALLOW and not put_before:
        return None
    if decision.verdict is Verdict.DENY:
        return f"Not executed: denied by the policy: {decision.why}"
    session, why = run.session, decision.why
    if put_before:
        why = "you were asked before and have not decided"
    grant: Hashable = (call.function.name, tuple((action.kind, action.resource) for action in actions))
    if session.approve_door is None:
        return f"Not executed: {why}, and nobody is there to approve it. Find another way, or finish."
    async with session.door:
        if grant in session.grants:  # asked in here: the call before may just have brought it
            return None
        request = ApprovalRequest(id=call.id, call=call, actions=tuple(actions), why=why)
        approval = await _put(run, request, session.approve_door)
        if approval.decision in ("allow_session", "allow_always"):
            session.grants.add(grant)
    if approval.decision == "deny":
        reason = f": {approval.reason}" if approval.reason else ""
        return f"Not executed: the user denied this call{reason}"
    return None


def _decide(run: Run, actions: Sequence[Action], *, contained: bool) -> Decision:
    try:
        return decide(actions, mode=run.session.mode, contained=contained)
    except Exception as error:  # the policy is a named boundary: a policy that fails allows nothing
        return Decision(verdict=Verdict.DENY, why=f"the policy failed ({type(error).__name__}: {error})")


async def _put(run: Run, request: ApprovalRequest, door: Approve) -> Approval:
    run.emit(ev.ApprovalRequested(id=request.id, call=request.call, action=request.actions, why=request.why))
    await run.gate()
    approval = await door(request)
    run.emit(ev.ApprovalResolved(id=request.id, decision=approval.decision, by="human", reason=approval.reason))
    await run.gate()
    return approval
