"""Who may be reached from the sandbox: the policy, the allow-list, then a person, asked once a place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from handwork.agent.toolcall import ToolCallAgent
from handwork.config import PolicySettings, Settings
from handwork.errors import Waiting
from handwork.events import ApprovalRequested, ApprovalResolved, Event
from handwork.llm.scripted import ScriptedModel
from handwork.schema import (
    Action,
    Approval,
    ApprovalChoice,
    ApprovalRequest,
    Decision,
    Function,
    Mode,
    Status,
    ToolCall,
    Verdict,
)
from handwork.session import Session
from handwork.session.hosts import Hosts
from handwork.tool.terminate import Terminate

ALLOW, DENY = Verdict.ALLOW, Verdict.DENY


class Door:
    """A person who gives an answer when `may` is set, and what was asked."""

    def __init__(self, decision: ApprovalChoice = "allow") -> None:
        self.asked: list[ApprovalRequest] = []
        self.decision, self.may, self.came = decision, asyncio.Event(), asyncio.Event()
        self.may.set()

    async def __call__(self, request: ApprovalRequest) -> Approval:
        self.asked.append(request)
        self.came.set()
        await self.may.wait()
        return Approval(decision=self.decision)


class Place:
    """A session with an allow-list in which a run goes on."""

    def __init__(self, session: Session, entries: tuple[str, ...], seen: list[Event]) -> None:
        self.session, self.seen = session, seen
        self.hosts = Hosts(session, entries)

    async def allow(self, host: str, port: int = 443) -> Verdict:
        return (await self.hosts.allow(host, port)).verdict

    def approvals(self) -> list[str]:
        return [
            event.type if isinstance(event, ApprovalRequested) else f"{event.decision} by {event.by}"
            for event in self.seen
            if isinstance(event, ApprovalRequested | ApprovalResolved)
        ]


@asynccontextmanager
async def place(
    tmp_path: Path,
    *entries: str,
    rules: tuple[str, ...] = (),
    mode: Mode | None = None,
    door: Callable[[ApprovalRequest], Awaitable[Approval]] | None = None,
    at_work: bool = True,
    id: str | None = None,
) -> AsyncIterator[Place]:
    seen: list[Event] = []
    settings = Settings(policy=PolicySettings(approve=mode, rules=rules))
    async with Session.open(settings, tmp_path, id, approve=door, listeners=[seen.append]) as session:
        found = Place(session, entries, seen)
        if not at_work:
            yield found
            return
        async with session.taken(asyncio.Event()):
            yield found


@pytest.mark.parametrize(
    ("entries", "rules", "mode", "host", "verdict"),
    [
        (["a.test"], [], None, "a.test", ALLOW),
        (["a.test"], [], Mode.ASK, "a.test", ALLOW),
        (["a.test"], [], Mode.READ_ONLY, "a.test", DENY),
        ([], ["allow network a.test"], Mode.READ_ONLY, "a.test", DENY),
        (["a.test"], [], None, "b.test", DENY),
        (["*.a.test"], [], None, "x.a.test", ALLOW),
        (["a.test"], ["deny network a.test"], None, "a.test", DENY),
        (["*.a.test"], ["deny network x.a.test"], None, "x.a.test", DENY),
        (["*.a.test"], ["deny network x.a.test"], None, "y.a.test", ALLOW),
        (["a.test"], ["deny network *"], None, "a.test", DENY),
        (["a.test"], ["ask network a.test"], None, "a.test", DENY),
        (["a.test"], ["allow network b.test"], None, "b.test", ALLOW),
        (["a.test"], ["allow network *"], None, "b.test", ALLOW),
        (["a.test"], ["allow tool *"], None, "b.test", DENY),
        (["a.test"], ["allow network *"], None, "169.254.169.254", DENY),
        (["a.test"], ["allow network *"], None, "127.0.0.1", DENY),
        (["a.test"], ["allow network 10.0.0.5"], None, "10.0.0.5", ALLOW),
        (["10.0.0.5"], [], None, "10.0.0.5", ALLOW),
    ],
)
async def test_without_a_person_rules_and_list_decide(
    home: Path, tmp_path: Path, entries: list[str], rules: list[str], mode: Mode | None, host: str, verdict: Verdict
) -> None:
    async with place(tmp_path, *entries, rules=tuple(rules), mode=mode) as here:
        assert await here.allow(host) is verdict
        assert here.approvals() == []


async def test_the_reason_says_what_is_missing(home: Path, tmp_path: Path) -> None:
    async with place(tmp_path, "a.test", rules=("deny network c.test",)) as here:
        assert (await here.hosts.allow("b.test", 443)).why == (
            "it is not in the allow-list (--allow-net), and nobody is there to ask"
        )
        assert "deny network c.test" in (await here.hosts.allow("c.test", 443)).why
        assert "this machine itself" in (await here.hosts.allow("127.0.0.1", 80)).why


async def test_of_an_address_it_is_said_which_name_leads_there(home: Path, tmp_path: Path) -> None:
    door = Door("deny")
    leads = "a.test leads to 10.0.0.5, which is a private network, so its address must be allowed, too (--allow-net 10.0.0.5)"
    async with place(tmp_path, "a.test", rules=("deny network 10.0.0.6",)) as here:
        assert (await here.hosts.allow("10.0.0.5", 443, "a.test")).why == f"{leads}, and nobody is there to ask"
        by_rule = (await here.hosts.allow("10.0.0.6", 443, "a.test")).why
        assert by_rule.startswith("a.test leads there, and ")
        assert "deny network 10.0.0.6" in by_rule
    async with place(tmp_path, "a.test", door=door) as here:
        await here.hosts.allow("10.0.0.5", 443, "a.test")
    assert door.asked[0].why == f"a program in the sandbox wants to reach 10.0.0.5:443: {leads}"


async def test_a_person_is_asked_once_for_all_connections_to_a_place(home: Path, tmp_path: Path) -> None:
    door = Door()
    door.may.clear()
    async with place(tmp_path, door=door) as here:
        waiting = [asyncio.ensure_future(here.allow("b.test")) for _ in range(20)]
        await door.came.wait()
        door.may.set()
        assert set(await asyncio.gather(*waiting)) == {ALLOW}
        assert await here.allow("b.test") is ALLOW
        assert len(door.asked) == 1
        assert door.asked[0].why == (
            "a program in the sandbox wants to reach b.test:443: it is not in the allow-list (--allow-net)"
        )
        assert door.asked[0].rules == ("allow network b.test:443",)
        assert await here.allow("b.test", 80) is ALLOW
        assert len(door.asked) == 2
        assert here.approvals() == ["approval_requested", "allow by human"] * 2
        here.hosts.call_over()
        await here.allow("b.test")
        assert len(door.asked) == 3


@pytest.mark.parametrize("decision", ["allow_session", "allow_always"])
async def test_what_is_allowed_for_longer_is_not_asked_about_again(
    home: Path, tmp_path: Path, decision: ApprovalChoice
) -> None:
    door = Door(decision)
    async with place(tmp_path, door=door) as here:
        for host in ("b.test", "10.0.0.5"):
            assert await here.allow(host) is ALLOW
            here.hosts.call_over()
            assert await here.allow(host) is ALLOW
        assert len(door.asked) == 2
        id = here.session.id
    async with place(tmp_path, id=id) as here:
        assert await here.allow("b.test") is ALLOW
        assert await here.allow("b.test", 80) is DENY
    async with place(tmp_path) as here:
        assert await here.allow("b.test") is (ALLOW if decision == "allow_always" else DENY)


async def test_a_refusal_holds_for_the_call(home: Path, tmp_path: Path) -> None:
    door = Door("deny")
    async with place(tmp_path, door=door) as here:
        decisions = [await here.hosts.allow("b.test", 443) for _ in range(3)]
        assert [decision.why for decision in decisions] == ["the user denied it"] * 3
        assert len(door.asked) == 1


async def test_no_more_than_eight_places_are_asked_about_in_a_call(home: Path, tmp_path: Path) -> None:
    door = Door("deny")
    async with place(tmp_path, door=door) as here:
        decisions: list[Decision] = [await here.hosts.allow(f"n{number}.test", 443) for number in range(30)]
        assert len(door.asked) == 8
        assert decisions[-1].why.endswith("this call has asked about 8 places already")
        here.hosts.call_over()
        await here.allow("other.test")
        assert len(door.asked) == 9


async def test_nobody_is_asked_between_runs(home: Path, tmp_path: Path) -> None:
    door = Door()
    async with place(tmp_path, door=door, at_work=False) as here:
        assert "no run goes on" in (await here.hosts.allow("b.test", 443)).why
        assert door.asked == []


async def test_the_end_of_a_run_withdraws_the_question_and_tells_its_end(home: Path, tmp_path: Path) -> None:
    door = Door()
    door.may.clear()
    async with place(tmp_path, door=door) as here:
        waiting = asyncio.ensure_future(here.hosts.allow("b.test", 443))
        await door.came.wait()
        here.hosts.withdraw()
        assert here.approvals() == ["approval_requested", "deny by mode"]
        assert (await waiting).verdict is DENY
        assert here.approvals() == ["approval_requested", "deny by mode"]
        assert here.session.past.unapproved == set()
        assert not here.session.door.locked()


async def test_a_question_nobody_waits_for_ends_with_its_call_and_not_before(home: Path, tmp_path: Path) -> None:
    door = Door()
    door.may.clear()
    async with place(tmp_path, door=door) as here:
        first = asyncio.ensure_future(here.allow("b.test"))
        await door.came.wait()
        first.cancel()
        await asyncio.wait([first])
        again = asyncio.ensure_future(here.allow("b.test"))  # as programs do that give up early and try anew
        await asyncio.sleep(0)
        again.cancel()
        await asyncio.wait([again])
        assert here.approvals() == ["approval_requested"]
        here.hosts.call_over()
        async with here.session.door:
            pass
        assert here.approvals() == ["approval_requested", "deny by mode"]
        assert len(door.asked) == 1


async def test_a_door_that_nobody_stands_at_after_all_is_a_refusal(home: Path, tmp_path: Path) -> None:
    async def away(request: ApprovalRequest) -> Approval:
        raise Waiting("No answer was given: the input has ended")

    async with place(tmp_path, door=away) as here:
        decision = await here.hosts.allow("b.test", 443)
        assert decision.verdict is DENY
        assert "No answer was given" in decision.why
        assert here.approvals() == ["approval_requested", "deny by mode"]


async def test_a_policy_that_fails_allows_nothing(home: Path, tmp_path: Path) -> None:
    class Broken:
        def decide(self, *_: object, **__: object) -> Decision:
            raise RuntimeError("lost its way")

    async with place(tmp_path, "a.test") as here:
        vars(here.session)["grants"] = Broken()
        assert (await here.hosts.allow("a.test", 443)).why == "the policy failed (RuntimeError: lost its way)"


async def test_a_question_that_a_crash_left_open_troubles_no_later_run(home: Path, tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        id = here.session.id
        call = ToolCall(id="network-0123", function=Function(name="network", arguments='{"host":"b.test","port":443}'))
        action = (Action(kind="network", resource="b.test:443"),)
        here.session.tell(ApprovalRequested(id="network-0123", call=call, action=action, why="it wants to"))
    door = Door()
    async with Session.open(Settings(), tmp_path, id, approve=door) as session:
        assert session.past.unapproved == {"network-0123"}
        agent = ToolCallAgent(llm=ScriptedModel(["done"]), available_tools=[Terminate], session=session)
        result = await agent.run("go on")
    assert (result.status, result.output) == (Status.FINISHED, "done")
    assert door.asked == []
