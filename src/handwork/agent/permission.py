"""May this call run: the rules, what was allowed before, the mode, then the human."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from handwork import events as ev
from handwork.agent.run import Run
from handwork.errors import ConfigError
from handwork.policy.decide import Call
from handwork.policy.scripts import opened
from handwork.schema import JSON, Action, Approval, ApprovalRequest, Approve, Decision, ToolCall, Verdict
from handwork.session.approvals import requested
from handwork.tool.base import Tool

_PREVIEW_SECONDS = 2.0
_LONGEST_PREVIEW = 300_000
"""Characters; a longer one is none, for one that was cut would be taken for all that changes."""
_MOST_PATHS = 32
"""Redirections whose real paths are looked up; those of more are not known to any rule that allows."""
_LONGEST_HINT = 300


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call whose arguments fit, and what it does."""

    call: ToolCall
    tool: Tool
    arguments: Mapping[str, JSON]
    actions: tuple[Action, ...]


async def denial(run: Run, wanted: Wanted) -> str | None:
    """None if the call may run, else why not, in words for the model."""
    call, session = wanted.call, run.session
    real = await _real_paths(run, wanted)
    decision = _decide(run, wanted, real)
    if decision.verdict is not Verdict.DENY and wanted.tool.sandboxed and await session.place.promises_less():
        await run.gate()  # what became of it is told before anything is asked
        decision = _decide(run, wanted, real)
    put_before = call.id in session.past.unapproved
    if decision.verdict is Verdict.ALLOW and (not put_before or decision.by == "rule"):
        await _settled(run, call, "allow", decision.by)
        return None
    if decision.verdict is Verdict.DENY:
        await _settled(run, call, "deny", decision.by)
        return f"Not executed: denied by the policy: {decision.why}"
    why = "you were asked before and have not decided" if put_before else decision.why
    if session.approve_door is None:
        return f"Not executed: {why}, and nobody is there to approve it.{_way_on(run, wanted, real)}"
    async with session.door:
        if _decide(run, wanted, real).verdict is Verdict.ALLOW and not put_before:
            return None  # asked in here: the call before may just have brought it
        request = ApprovalRequest(
            id=call.id,
            call=call,
            actions=wanted.actions,
            why=why,
            preview=await _preview(run, wanted),
            rules=_rules(run, wanted, real),
        )
        approval = await _put(run, request, session.approve_door)
        _keep(run, wanted, request, approval)
    if approval.decision == "deny":
        reason = f": {approval.reason}" if approval.reason else ""
        return f"Not executed: the user denied this call{reason}"
    return None


# ---- what the policy says


def _contained(run: Run, wanted: Wanted) -> bool:
    return run.session.sandbox.contained if wanted.tool.sandboxed else True


def _workspace(run: Run, wanted: Wanted) -> str:
    return run.session.sandbox.workspace if wanted.tool.sandboxed else ""


def _decide(run: Run, wanted: Wanted, real: Mapping[str, str]) -> Decision:
    try:
        return run.session.grants.decide(
            [_on_real_path(run, wanted, action) for action in wanted.actions],
            mode=run.session.mode,
            contained=_contained(run, wanted),
            call=Call(wanted.tool.name, wanted.arguments),
            real=real,
            workspace=_workspace(run, wanted),
        )
    except Exception as error:  # the policy is a named boundary: a policy that fails allows nothing
        return Decision(verdict=Verdict.DENY, why=f"the policy failed ({type(error).__name__}: {error})")


def _rules(run: Run, wanted: Wanted, real: Mapping[str, str]) -> tuple[str, ...]:
    return run.session.grants.exact(
        [_on_real_path(run, wanted, action) for action in wanted.actions],
        mode=run.session.mode,
        contained=_contained(run, wanted),
        call=Call(wanted.tool.name, wanted.arguments),
        real=real,
        workspace=_workspace(run, wanted),
    )


def _on_real_path(run: Run, wanted: Wanted, action: Action) -> Action:
    """A path of a tool that works in this process, as it is seen from here; those in the sandbox are real already."""
    path = action.resource
    if wanted.tool.sandboxed or action.kind not in ("read", "write") or not run.session.grants.asks_about_paths:
        return action
    return action if "://" in path or path in ("", "*") else replace(action, resource=os.path.realpath(path))


async def _real_paths(run: Run, wanted: Wanted) -> dict[str, str]:
    """Where the redirections of a command lead to, if any rule asks about paths."""
    session, found = run.session, dict[str, str]()
    if not session.grants.asks_about_paths or not wanted.tool.sandboxed:
        return found
    paths = [path for action in wanted.actions if action.command for path in opened(action.command)]
    for path in dict.fromkeys(paths[:_MOST_PATHS]):
        try:
            found[path] = await session.sandbox.resolve(path)
        except (OSError, ValueError):
            continue  # no rule that allows can name it
    return found


def _way_on(run: Run, wanted: Wanted, real: Mapping[str, str]) -> str:
    """What the model may do, and what its user can."""
    rules = ", ".join(_rules(run, wanted, real))
    named = f" Its user could allow it by a rule in [policy]: {rules}" if 0 < len(rules) <= _LONGEST_HINT else ""
    return f" Find another way, or finish and say what was not done.{named}"


# ---- the human


async def _put(run: Run, request: ApprovalRequest, door: Approve) -> Approval:
    """The answer; a question that nobody came to answer stays open, and is put again when the run goes on."""
    run.emit(requested(request))
    await run.gate()
    approval = await door(request)
    run.emit(ev.ApprovalResolved(id=request.id, decision=approval.decision, by="human", reason=approval.reason))
    await run.gate()
    return approval


async def _settled(run: Run, call: ToolCall, decision: Literal["allow", "deny"], by: Literal["rule", "mode"]) -> None:
    """Tell that a question which was open is answered by a rule or the mode; that none had to be asked is not told."""
    if call.id in run.session.past.unapproved:
        run.emit(ev.ApprovalResolved(id=call.id, decision=decision, by=by))
        await run.gate()


def _keep(run: Run, wanted: Wanted, request: ApprovalRequest, approval: Approval) -> None:
    if approval.decision not in ("allow_session", "allow_always"):
        return
    try:
        for_good = approval.decision == "allow_always"
        run.session.grants.allow(request.rules, for_good=for_good, contained=_contained(run, wanted))
    except ConfigError as error:
        run.session.notify("warning", f"It holds for this session only: {error}")


async def _preview(run: Run, wanted: Wanted) -> str:
    """What the call would change, '' if its tool cannot tell soon."""
    try:
        async with asyncio.timeout(_PREVIEW_SECONDS):
            text = await wanted.tool.preview(wanted.arguments, run.session.sandbox)
    except Exception:  # a tool call is a named boundary: a tool's own preview() may raise
        return ""
    return str(run.session.masked(text)) if len(text) <= _LONGEST_PREVIEW else ""
