"""Whether what runs in the sandbox may reach a place: the policy, the allow-list, then the human, asked once a place."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from handwork.config.allow_list import is_address, is_listed, place
from handwork.config.host_names import host_matches
from handwork.errors import ConfigError, HandworkError
from handwork.events import Event
from handwork.policy.decide import Call
from handwork.sandbox.network.addresses import not_listed, unusual
from handwork.schema import (
    Action,
    Approval,
    ApprovalChoice,
    ApprovalRequest,
    Approve,
    Decision,
    Function,
    Mode,
    ToolCall,
    Verdict,
)
from handwork.session.approvals import Approvals
from handwork.session.grants import Grants
from handwork.tool.call_clock import CallClock

_MOST = 8
"""Places that are asked about during one call: a program may try any number of them."""
_GRACE = 20.0
"""Seconds that a question stays when no connection waits for it any more: many programs try again."""
_ALLOWED = Decision(verdict=Verdict.ALLOW)
_FOR_LONGER = ("allow_session", "allow_always")


class Asks(Protocol):
    """What this needs of its session."""

    grants: Grants
    approve_door: Approve | None
    door: asyncio.Lock
    clock: CallClock

    @property
    def mode(self) -> Mode: ...

    @property
    def at_work(self) -> bool: ...

    def notify(self, level: str, text: str) -> None: ...

    def tell(self, event: Event) -> None: ...

    async def commit(self) -> None: ...


@dataclass(slots=True)
class _Question:
    """A question that is with the human, and how many connections wait for its answer."""

    asking: asyncio.Task[Decision]
    waiting: int = 0


class Hosts:
    """Decides for one session; `entries` is its allow-list."""

    def __init__(self, session: Asks, entries: Sequence[str]) -> None:
        self._session, self._entries = session, tuple(entries)
        self._questions: dict[tuple[str, int], _Question] = {}
        self._answers: dict[tuple[str, int], Decision] = {}
        """What was answered for the time of one call."""
        self._asked = 0
        self._approvals = Approvals(session)

    def add(self, entries: Sequence[str]) -> None:
        """Put more entries on the allow-list."""
        self._entries = (*self._entries, *entries)

    async def allow(self, host: str, port: int, name: str = "") -> Decision:
        """Whether a place (a name or an address, in its one spelling) may be reached: allow or deny, and why. `name` was asked
        for and leads to it."""
        decision = self._decided(host, port, name)
        if decision.verdict is not Verdict.ASK:
            return decision
        if (host, port) in self._answers:
            return self._answers[host, port]
        if self._session.approve_door is None:
            return _denied(f"{decision.why}, and nobody is there to ask")
        if not self._session.at_work:
            return _denied(f"{decision.why}, and no run goes on in which to ask")
        if (host, port) not in self._questions and self._asked >= _MOST:
            return _denied(f"{decision.why}, and this call has asked about {_MOST} places already")
        return await self._answer(host, port, name, decision.why)

    def call_over(self) -> None:
        """A call has ended: what was answered for its time alone holds no longer."""
        self._asked = 0
        self._answers.clear()
        for question in list(self._questions.values()):
            self._drop(question)

    def withdraw(self) -> None:
        """The run ends: nobody is asked any more."""
        self._approvals.withdraw()
        for question in list(self._questions.values()):
            question.asking.cancel()

    # ---- without the human

    def _decided(self, host: str, port: int, name: str) -> Decision:
        try:
            decision = self._session.grants.decide(
                [_action(host, port)],
                mode=self._session.mode,
                contained=False,
                call=Call("network", {"host": host, "port": port}),
            )
        except Exception as error:  # the policy is a named boundary: a policy that fails allows nothing
            return _denied(f"the policy failed ({type(error).__name__}: {error})")
        listed = is_listed(self._entries, host, port)
        special = is_address(host) and bool(unusual(host))
        if decision.verdict is Verdict.ALLOW and not listed and not self._named(host, port, itself=special):
            decision = Decision(verdict=Verdict.ASK)
        if decision.verdict is Verdict.ASK and decision.by == "mode":
            return _ALLOWED if listed else Decision(verdict=Verdict.ASK, why=not_listed(host, name))
        if name and decision.verdict is not Verdict.ALLOW:
            return replace(decision, why=f"{name} leads there, and {decision.why}")
        return decision

    def _named(self, host: str, port: int, *, itself: bool) -> bool:
        """Whether a rule about the network allows the place; `itself`: by its own name, as one for all of the net is not about this
        machine and its neighbours."""
        return any(
            rule.verdict is Verdict.ALLOW
            and host_matches(rule.pattern, host, port)
            and not (itself and rule.pattern.startswith("*"))
            for rule in self._session.grants.about_network
        )

    # ---- with the human

    async def _answer(self, host: str, port: int, name: str, why: str) -> Decision:
        """The answer to the one question about this place; who waits for it may leave, and soon after the last one it is
        withdrawn."""
        key = (host, port)
        if key not in self._questions:
            self._asked += 1
            asking = asyncio.create_task(self._ask(host, port, name, why), name=f"ask about {place(host, port)}")
            self._questions[key] = _Question(asking)
            asking.add_done_callback(lambda _: self._questions.pop(key, None))
        question = self._questions[key]
        question.waiting += 1
        try:
            await asyncio.wait([question.asking])
        finally:
            question.waiting -= 1
            asyncio.get_running_loop().call_later(_GRACE, self._drop, question)
        if question.asking.cancelled():
            return _denied("the run has ended before anybody answered")
        return question.asking.result()

    def _drop(self, question: _Question) -> None:
        if not question.waiting:
            question.asking.cancel()

    async def _ask(self, host: str, port: int, name: str, why: str) -> Decision:
        try:
            with self._session.clock.stopped():
                approval = await self._put(host, port, name, why)
        except HandworkError as error:  # nobody is at the door after all, or the journal cannot be written
            return _denied(f"{why}, and nobody has answered ({error.what})")
        reason = f": {approval.reason}" if approval.reason else ""
        decision = _denied(f"the user denied it{reason}") if approval.decision == "deny" else _ALLOWED
        if approval.decision not in _FOR_LONGER:
            self._answers[host, port] = decision
        return decision

    async def _put(self, host: str, port: int, name: str, why: str) -> Approval:
        session, door = self._session, self._session.approve_door
        assert door is not None
        async with session.door:
            if (
                now := self._decided(host, port, name)
            ).verdict is not Verdict.ASK:  # answered meanwhile, by a rule for longer
                return Approval(decision="allow_session" if now.verdict is Verdict.ALLOW else "deny", reason=now.why)
            request = _request(host, port, why)
            approval = await self._approvals.put(request, door)
            self._keep(request, approval.decision)
        return approval

    def _keep(self, request: ApprovalRequest, decision: ApprovalChoice) -> None:
        if decision not in _FOR_LONGER:
            return
        try:
            self._session.grants.allow(request.rules, for_good=decision == "allow_always")
        except ConfigError as error:
            self._session.notify("warning", f"It holds for this session only: {error}")


def _action(host: str, port: int) -> Action:
    return Action(kind="network", resource=place(host, port))


def _request(host: str, port: int, why: str) -> ApprovalRequest:
    """The question, in the shape of one about a call; its id is none that a call can have by accident."""
    id = f"network-{secrets.token_hex(8)}"
    arguments = json.dumps({"host": host, "port": port})
    return ApprovalRequest(
        id=id,
        call=ToolCall(id=id, function=Function(name="network", arguments=arguments)),
        actions=(_action(host, port),),
        why=f"a program in the sandbox wants to reach {place(host, port)}: {why}",
        rules=(f"allow network {place(host, port)}",),
    )


def _denied(why: str) -> Decision:
    return Decision(verdict=Verdict.DENY, why=why)
