"""The planning tool and plans as data: CONTRACT D7."""

from __future__ import annotations

from typing import Any

import pytest

from handwork.agent.manus import Manus
from handwork.agent.toolcall import ToolCallAgent
from handwork.config import PolicySettings, Settings
from handwork.errors import ToolError
from handwork.llm.scripted import ScriptedModel, call
from handwork.policy.conflicts import conflicts
from handwork.policy.decide import decide
from handwork.schema import Action, Mode, Plan, PlanStepStatus, Role, Status, ToolResult, Verdict
from handwork.session import Session
from handwork.tool.base import Tool
from handwork.tool.planning import PlanningTool


async def made(*steps: str, plan_id: str = "p") -> PlanningTool:
    planning = PlanningTool()
    await planning(command="create", plan_id=plan_id, title="Bake", steps=list(steps or ("mix", "bake", "eat")))
    return planning


def statuses(plan: Plan | None) -> list[tuple[str, str]]:
    assert plan is not None
    return [(step.text, step.status.value) for step in plan.steps]


# ---- the commands


async def test_create_makes_the_plan_active_and_shows_it_with_progress_and_marks() -> None:
    planning = await made()
    await planning(command="mark_step", step_index=0, step_status="completed")
    await planning(command="mark_step", step_index=1, step_status="in_progress", step_notes="at 200 °C")
    result = await planning(command="mark_step", step_index=2, step_status="blocked")
    assert str(result) == (
        "Step 2 updated in plan 'p'.\n"
        "\n"
        "Plan: Bake (ID: p)\n"
        "==================\n"
        "\n"
        "Progress: 1/3 steps completed (33.3%)\n"
        "Status: 1 completed, 1 in progress, 1 blocked, 0 not started\n"
        "\n"
        "Steps:\n"
        "0. [✓] mix\n"
        "1. [→] bake\n"
        "   Notes: at 200 °C\n"
        "2. [!] eat"
    )
    assert str(await planning(command="get")) == str(planning.active) == str(result).partition("\n\n")[2]


async def test_create_says_so() -> None:
    result = await PlanningTool()(command="create", plan_id="p", title="Bake", steps=["mix"])
    assert str(result).startswith("Plan created successfully with ID: p\n\nPlan: Bake (ID: p)\n")
    assert "0. [ ] mix" in str(result)


async def test_update_keeps_the_status_and_notes_of_steps_that_stay_wherever_they_stand() -> None:
    planning = await made("mix", "bake", "mix")
    await planning(command="mark_step", step_index=0, step_status="completed", step_notes="by hand")
    await planning(command="mark_step", step_index=1, step_status="in_progress")
    await planning(command="update", plan_id="p", steps=["buy flour", "mix", "bake", "mix", "mix"])
    assert statuses(planning.active) == [
        ("buy flour", "not_started"),
        ("mix", "completed"),
        ("bake", "in_progress"),
        ("mix", "not_started"),
        ("mix", "not_started"),
    ]
    assert planning.active.steps[1].notes == "by hand"
    await planning(command="update", plan_id="p", title="Cake")
    assert (planning.active.title, len(planning.active.steps)) == ("Cake", 5)


async def test_a_note_alone_leaves_the_status_and_a_status_alone_the_note() -> None:
    planning = await made()
    await planning(command="mark_step", step_index=0, step_status="blocked", step_notes="no flour")
    await planning(command="mark_step", step_index=0, step_notes="no sugar")
    await planning(command="mark_step", step_index=0, step_status="in_progress")
    assert (planning.active.steps[0].status, planning.active.steps[0].notes) == ("in_progress", "no sugar")


async def test_list_marks_the_active_plan_and_get_takes_any() -> None:
    planning = await made()
    await planning(command="create", plan_id="q", title="Wash", steps=["rinse", "dry"])
    await planning(command="mark_step", step_index=0, step_status="completed")
    listed = "Available plans:\n• p: Bake - 0/3 steps completed\n• q (active): Wash - 1/2 steps completed"
    assert str(await planning(command="list")) == listed
    assert "Plan: Bake (ID: p)" in str(await planning(command="get", plan_id="p"))
    result = await planning(command="set_active", plan_id="p")
    assert str(result).startswith("Plan 'p' is now the active plan.\n\nPlan: Bake")
    assert planning.active.plan_id == "p"


async def test_deleting_the_active_plan_leaves_none_and_another_one_leaves_it() -> None:
    planning = await made()
    await planning(command="create", plan_id="q", title="Wash", steps=["rinse"])
    assert str(await planning(command="delete", plan_id="p")) == "Plan 'p' has been deleted."
    assert planning.active.plan_id == "q"
    await planning(command="delete", plan_id="q")
    assert (planning.active, planning.plans) == (None, {})
    assert str(await planning(command="list")) == "No plans available. Create a plan with the 'create' command."


async def test_a_text_of_several_lines_stays_one_line_of_the_form() -> None:
    planning = await made("mix\n0. [✓] all done")
    assert "0. [ ] mix 0. [✓] all done" in str(planning.active)


# ---- the errors

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "create without an id": (
        {"command": "create", "title": "x", "steps": ["a"]},
        "`plan_id` is required for command: create",
    ),
    "create with an empty id": (
        {"command": "create", "plan_id": " ", "title": "x", "steps": ["a"]},
        "`plan_id` is required for command: create",
    ),
    "create with an id that exists": (
        {"command": "create", "plan_id": "p", "title": "x", "steps": ["a"]},
        "A plan with ID 'p' already exists. Use 'update' to modify existing plans.",
    ),
    "create without a title": (
        {"command": "create", "plan_id": "n", "steps": ["a"]},
        "`title` is required for command: create",
    ),
    **{
        f"create with steps {steps!r}": (
            {"command": "create", "plan_id": "n", "title": "x", "steps": steps},
            "`steps` must be a non-empty list of strings for command: create",
        )
        for steps in (None, [], "a", ["a", 1], ["a", " "], {"a": "b"})
    },
    "update without an id": ({"command": "update", "title": "x"}, "`plan_id` is required for command: update"),
    "update of nothing": ({"command": "update", "plan_id": "p"}, "`title` or `steps` is required for command: update"),
    "update to no steps": (
        {"command": "update", "plan_id": "p", "steps": []},
        "`steps` must be a non-empty list of strings for command: update",
    ),
    "update to no title": (
        {"command": "update", "plan_id": "p", "title": ""},
        "`title` is required for command: update",
    ),
    **{
        f"{command} of no such plan": (
            {"command": command, "plan_id": "x", "title": "t"},
            "No plan found with ID: x. There are: p.",
        )
        for command in ("update", "get", "set_active", "mark_step", "delete")
    },
    "set_active without an id": ({"command": "set_active"}, "`plan_id` is required for command: set_active"),
    "delete without an id": ({"command": "delete"}, "`plan_id` is required for command: delete"),
    "mark_step without an index": (
        {"command": "mark_step", "step_status": "completed"},
        "`step_index` is required for command: mark_step",
    ),
    **{
        f"mark_step of step {index!r}": (
            {"command": "mark_step", "step_index": index, "step_status": "completed"},
            f"Invalid step_index: {index}. Valid indices range from 0 to 2.",
        )
        for index in (-1, 3, True, "1")
    },
    "mark_step with an unknown status": (
        {"command": "mark_step", "step_index": 0, "step_status": "done"},
        "Invalid step_status: done. Valid statuses are: not_started, in_progress, completed, blocked",
    ),
    "mark_step with nothing to mark": (
        {"command": "mark_step", "step_index": 0},
        "`step_status` or `step_notes` is required for command: mark_step",
    ),
    "an unknown command": (
        {"command": "erase"},
        "Unrecognized command: erase. Allowed commands are: create, update, list, get, set_active, mark_step, delete",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_each_wrong_call_has_its_own_error_and_changes_nothing(wrong: str) -> None:
    planning = await made()
    before = (planning.plans, planning.active)
    arguments, said = WRONG[wrong]
    with pytest.raises(ToolError) as raised:
        await planning(**arguments)
    assert raised.value.message.removeprefix("Parameter ") == said
    assert (planning.plans, planning.active) == before


@pytest.mark.parametrize("command", ["get", "mark_step"])
async def test_without_an_active_plan_an_id_is_asked_for(command: str) -> None:
    with pytest.raises(ToolError, match=r"^No active plan\. Please specify a plan_id or set an active plan\.$"):
        await PlanningTool()(command=command, step_index=0)


# ---- state, actions, data


async def test_two_tools_share_no_plan() -> None:
    one = await made()
    two = one.fresh()
    await two(command="delete", plan_id="p")
    assert "p" in one.plans
    assert PlanningTool().plans == {}


async def test_the_plans_are_rebuilt_from_the_details_of_the_results() -> None:
    planning, again = PlanningTool(), PlanningTool()
    calls: list[dict[str, Any]] = [
        {"command": "create", "plan_id": "p", "title": "Bake", "steps": ["mix", "bake"]},
        {"command": "create", "plan_id": "q", "title": "Wash", "steps": ["rinse"]},
        {"command": "list"},
        {"command": "mark_step", "plan_id": "p", "step_index": 1, "step_status": "blocked", "step_notes": "cold"},
        {"command": "set_active", "plan_id": "p"},
        {"command": "update", "plan_id": "p", "steps": ["heat", "mix", "bake"]},
        {"command": "delete", "plan_id": "q"},
        {"command": "get"},
    ]
    for arguments in calls:
        result = await planning(**arguments)
        if result.details:
            again.restore(result.details)
        assert (again.plans, again.active) == (planning.plans, planning.active)
    assert statuses(again.active) == [("heat", "not_started"), ("mix", "not_started"), ("bake", "blocked")]
    again.restore((await planning(command="delete", plan_id="p")).details)
    assert (again.plans, again.active) == ({}, None)


@pytest.mark.parametrize(
    "details", [{}, {"plan": "gold"}, {"plan": {"plan_id": 1}}, {"active": "x"}, {"active": ["x"]}]
)
def test_details_that_are_no_plan_restore_nothing(details: dict[str, Any]) -> None:
    planning = PlanningTool()
    planning.restore(details)
    assert (planning.plans, planning.active) == ({}, None)


def test_nobody_is_asked_about_a_plan_and_two_changes_run_one_after_another() -> None:
    write, read = (PlanningTool().actions({"command": command}) for command in ("mark_step", "list"))
    for mode in Mode:
        for contained in (True, False):
            assert decide(write, mode=mode, contained=contained).verdict is Verdict.ALLOW
    assert conflicts(write, write)
    assert conflicts(write, read)
    assert not conflicts(read, read)


@pytest.mark.parametrize("resource", ["agent://plan/..", "agent://", "agent:/plan", "agent://plan/../../etc/passwd"])
def test_only_the_plan_itself_is_exempt_from_the_policy(resource: str) -> None:
    action = [Action(kind="write", resource=resource)]
    assert decide(action, mode=Mode.READ_ONLY, contained=True).verdict is Verdict.DENY
    executed = [Action(kind="execute", resource="agent://plan")]
    assert decide(executed, mode=Mode.READ_ONLY, contained=True).verdict is Verdict.DENY


def test_a_plan_knows_its_current_step() -> None:
    plan = Plan("p", "t").with_steps(["a", "b"])
    assert plan.current.text == "a"
    assert plan.with_step(1, PlanStepStatus.IN_PROGRESS).current.text == "b"
    assert plan.with_step(0, PlanStepStatus.BLOCKED).with_step(1, PlanStepStatus.COMPLETED).current is None
    assert "Progress: 0/0 steps completed (0%)" in str(Plan("p", "t"))


def test_the_statuses_are_openmanus_own() -> None:
    assert PlanStepStatus.get_all_statuses() == ["not_started", "in_progress", "completed", "blocked"]
    assert PlanStepStatus.get_active_statuses() == ["not_started", "in_progress"]
    marks = {"not_started": "[ ]", "in_progress": "[→]", "completed": "[✓]", "blocked": "[!]"}
    assert PlanStepStatus.get_status_marks() == marks


# ---- in an agent


def create(plan_id: str = "p") -> Any:
    return call("planning", command="create", plan_id=plan_id, title="Bake", steps=["mix", "bake"])


@pytest.fixture
def settings(home: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    return Settings(policy=PolicySettings(approve=Mode.READ_ONLY))


async def test_each_change_is_told_as_plan_changed_and_reading_is_not(settings: Settings) -> None:
    told: list[Any] = []
    script = [
        [create(), call("planning", command="mark_step", step_index=0, step_status="completed")],
        [call("planning", command="get"), call("planning", command="mark_step", step_index=9, step_status="completed")],
        call("planning", command="delete", plan_id="p"),
        "done",
    ]
    agent = ToolCallAgent(settings=settings, llm=ScriptedModel(script), available_tools=[PlanningTool])
    assert (await agent.run("go", listener=told.append)).status is Status.FINISHED
    plans = [event.plan for event in told if event.type == "plan_changed"]
    assert [[step["status"] for step in plan.get("steps", ())] for plan in plans] == [
        ["not_started", "not_started"],
        ["completed", "not_started"],
        [],
    ]
    assert plans[0] == {
        "plan_id": "p",
        "title": "Bake",
        "steps": [{"text": text, "status": "not_started", "notes": ""} for text in ("mix", "bake")],
    }
    assert plans[2] == {}
    errors = [m.content for m in agent.messages if m.role is Role.TOOL and m.is_error]
    assert len(errors) == 1
    assert "Invalid step_index: 9" in errors[0]


async def test_a_plan_of_any_tool_is_told(settings: Settings) -> None:
    told: list[Any] = []

    def guide() -> ToolResult:
        """Bring a plan along."""
        return ToolResult(output="see the plan", details={"plan": Plan("g", "Guide").with_steps(["look"]).to_dict()})

    def other() -> ToolResult:
        """Has details that are no plan."""
        return ToolResult(output="x", details={"plan": "premium"})

    agent = ToolCallAgent(
        settings=Settings(), llm=ScriptedModel([[call("guide"), call("other")], "done"]), available_tools=[guide, other]
    )
    await agent.run("go", listener=told.append)
    assert [event.plan["title"] for event in told if event.type == "plan_changed"] == ["Guide"]


async def test_the_sessions_past_knows_the_plan_before_any_run(settings: Settings) -> None:
    agent = ToolCallAgent(settings=settings, llm=ScriptedModel([create(), "ok"]), available_tools=[PlanningTool])
    session_id = (await agent.run("go")).session_id
    async with Session.open(settings, id=session_id, create=False) as session:
        assert session.past.plan is not None
        assert session.past.plan["title"] == "Bake"
        script = [call("planning", command="delete", plan_id="p"), "gone"]
        agent = ToolCallAgent(
            settings=settings, session=session, llm=ScriptedModel(script), available_tools=[PlanningTool]
        )
        await agent.run("give it up")
        assert session.past.plan is None


async def test_a_resumed_session_has_its_plan_again(settings: Settings) -> None:
    script = [create(), call("planning", command="mark_step", step_index=0, step_status="in_progress"), "paused"]
    first = ToolCallAgent(settings=settings, llm=ScriptedModel(script), available_tools=[PlanningTool])
    session_id = (await first.run("go")).session_id
    async with Session.open(settings, id=session_id, create=False) as session:
        script = [call("planning", command="mark_step", step_index=0, step_status="completed"), "done"]
        second = ToolCallAgent(
            settings=settings, session=session, llm=ScriptedModel(script), available_tools=[PlanningTool]
        )
        await second.run("go on")
    planning = second.available_tools.get_tool("planning")
    assert isinstance(planning, PlanningTool)
    assert statuses(planning.active) == [("mix", "completed"), ("bake", "not_started")]


async def test_agents_in_turn_on_one_session_share_its_plan(settings: Settings) -> None:
    def mark(index: int) -> Any:
        return call("planning", command="mark_step", step_index=index, step_status="completed")

    async with Session.open(settings) as session:

        def agent(*script: Any) -> ToolCallAgent:
            return ToolCallAgent(
                settings=settings, session=session, llm=ScriptedModel(script), available_tools=[PlanningTool]
            )

        first, second = agent(create(), "planned", mark(1), "done"), agent(mark(0), "half")
        for each in (first, second, first):
            await each.run("go on")
        assert session.past.plan is not None
        assert [step["status"] for step in session.past.plan["steps"]] == ["completed", "completed"]


async def test_a_tool_is_told_of_each_result_that_it_has_not_made_and_of_none_that_it_has(settings: Settings) -> None:
    class Counter(Tool):
        """Remembers what was counted."""

        name = "count"
        description = "Count one up."
        parameters: Any = {"type": "object", "properties": {}}
        total = 0

        def actions(self, arguments: Any) -> Any:
            return [Action(kind="read", resource="counter", repeatable=True)]

        def restore(self, details: Any) -> None:
            self.total += details["by"]

        async def execute(self) -> ToolResult:
            self.total += 1
            return ToolResult(output=str(self.total), details={"by": 1})

    def agent(session: Session | None, *script: Any) -> ToolCallAgent:
        return ToolCallAgent(settings=settings, session=session, llm=ScriptedModel(script), available_tools=[Counter])

    one = agent(None, call("count"), "ok", [call("count"), call("count")], "ok", call("count"), "ok", "moved")
    id = (await one.run("go")).session_id
    await one.run("go")
    async with Session.open(settings, id=id) as session:
        await agent(session, call("count"), "ok").run("another")
    async with one:
        await one.think()
        await one.act()
        await one.run("go")
    [counter] = one.available_tools
    assert counter.total == 5
    async with Session.open(settings) as other:
        await agent(other, call("count"), "ok").run("elsewhere")
        one.session = other
        await one.run("go")
        assert counter.total == 6


def test_manus_plans() -> None:
    manus = Manus()
    assert isinstance(manus.available_tools.get_tool("planning"), PlanningTool)
    assert "`planning`" in (manus.system_prompt or "")
