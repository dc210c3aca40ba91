"""ToolCallAgent: CONTRACT B."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from handwork.agent.toolcall import ToolCallAgent
from handwork.config import Settings
from handwork.errors import TokenLimitExceeded
from handwork.llm.scripted import ScriptedModel, call
from handwork.schema import Action, Function, Message, Reply, Role, Status, ToolCall, ToolChoice, ToolResult
from handwork.tool.collection import ToolCollection
from handwork.tool.create_chat_completion import CreateChatCompletion
from handwork.tool.function import tool
from handwork.tool.terminate import Terminate
from tests.agent.conftest import Seen


@tool(actions=[Action(kind="read", resource="sums", repeatable=True)])
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def agent_of(settings: Settings, script: Any, *tools: Any, **fields: Any) -> ToolCallAgent:
    fields.setdefault("available_tools", ToolCollection(*(tools or (add,)), Terminate))
    return ToolCallAgent(settings=settings, llm=ScriptedModel(script), **fields)


def tool_messages(agent: ToolCallAgent) -> list[Message]:
    return [message for message in agent.messages if message.role is Role.TOOL]


# ---- endings


async def test_a_plain_question_answered_in_text_ends_in_one_request(settings: Settings) -> None:
    agent = agent_of(settings, ["42"])
    result = await agent.run("what is 6*7?")
    assert (result.status, result.output, str(result)) == (Status.FINISHED, "42", "Step 1: 42")
    assert len(agent.llm.requests) == 1


async def test_text_does_not_end_the_run_when_text_ends_run_is_off(settings: Settings) -> None:
    agent = agent_of(settings, ["thinking aloud", call("terminate", status="success")], text_ends_run=False)
    assert len((await agent.run("go")).steps) == 2


async def test_terminate_ends_the_run_with_the_text_beside_it_as_the_answer(settings: Settings) -> None:
    ending = Reply(content="All done.", tool_calls=(call("terminate", status="success"),), finish_reason="tool_calls")
    result = await agent_of(settings, [ending]).run("go")
    assert (result.status, result.output) == (Status.FINISHED, "All done.")
    assert "The interaction has been completed with status: success" in str(result)


async def test_a_failing_terminate_ends_the_run_as_failed(settings: Settings) -> None:
    assert (await agent_of(settings, [call("terminate", status="failure")]).run("go")).status is Status.FAILED


async def test_after_terminate_alone_the_answer_is_the_last_text_of_the_run(settings: Settings) -> None:
    script = [Reply(content="It is 3.", tool_calls=(call("add", a=1, b=2),)), call("terminate", status="success")]
    assert (await agent_of(settings, script).run("go")).output == "It is 3."


async def test_the_calls_after_a_terminate_are_not_executed(settings: Settings) -> None:
    calls = [call("add", a=1, b=1), call("TERMINATE", status="success"), call("add", a=2, b=2)]
    agent = agent_of(settings, [calls])
    agent.available_tools.add_tool(Terminate(name="TERMINATE"))
    await agent.run("go")
    assert [m.content for m in tool_messages(agent)][2] == "Not executed: the run has ended"
    assert "2" in (tool_messages(agent)[0].content or "")


async def test_the_value_of_create_chat_completion_is_the_answer(settings: Settings) -> None:
    script = [call("create_chat_completion", response="forty-two"), call("terminate", status="success")]
    agent = agent_of(settings, script, CreateChatCompletion)
    assert (await agent.run("go")).output == "forty-two"


async def test_a_text_cut_off_by_the_token_limit_is_no_answer_and_the_model_is_told(settings: Settings) -> None:
    agent = agent_of(settings, [Reply(content="The answer is", finish_reason="length"), "42"])
    result = await agent.run("go")
    assert (result.status, result.output) == (Status.FINISHED, "42")
    assert "cut off" in agent.llm.requests[1].tail.text


async def test_three_empty_replies_in_a_row_end_as_stuck_and_nothing_is_stored(settings: Settings) -> None:
    agent = agent_of(settings, [Reply(), Reply(content="  "), Reply()])
    result = await agent.run("go")
    assert result.status is Status.STUCK
    assert result.steps[0] == "Step 1: Thinking complete - no action needed"
    assert [m.role for m in agent.messages] == [Role.USER]
    assert agent.llm.requests[1].tail is not None


async def test_a_model_that_repeats_one_call_ends_as_stuck_within_eight_requests(settings: Settings) -> None:
    agent = agent_of(settings, lambda request: call("add", a=1, b=1))
    result = await agent.run("go")
    assert result.status is Status.STUCK
    assert len(agent.llm.requests) <= 8
    nudges = ["repeating" in (request.tail.text if request.tail else "") for request in agent.llm.requests]
    assert nudges.count(True) == 1


async def test_the_same_call_written_differently_is_the_same_call(settings: Settings) -> None:
    spellings = ['{"a": 1, "b": 1}', '{"b":1,"a":1}']

    def script(request: Any) -> ToolCall:
        return ToolCall(id="", function=Function(name="add", arguments=spellings[len(request.messages) % 2]))

    assert (await agent_of(settings, script).run("go")).status is Status.STUCK


async def test_polling_that_makes_progress_is_not_stuck(settings: Settings) -> None:
    progress = iter(range(100))

    def poll() -> int:
        """Look again."""
        return next(progress)

    result = await agent_of(settings, lambda request: call("poll"), poll, max_steps=12).run("go")
    assert result.status is Status.MAX_STEPS


async def test_five_replies_in_a_row_with_bad_arguments_end_as_stuck(settings: Settings) -> None:
    number = iter(range(100))

    def script(request: Any) -> ToolCall:
        return ToolCall(id="", function=Function(name="add", arguments="{" * (1 + next(number))))

    result = await agent_of(settings, script).run("go")
    assert (result.status, len(result.steps)) == (Status.STUCK, 5)


async def test_a_context_overflow_ends_as_token_limit_however_it_is_wrapped(settings: Settings) -> None:
    def overflow(request: Any) -> Any:
        try:
            raise TokenLimitExceeded("too long")
        except TokenLimitExceeded as error:
            raise RuntimeError("retries are exhausted") from error

    agent = agent_of(settings, overflow)
    result = await agent.run("go")
    assert result.status is Status.TOKEN_LIMIT
    assert agent.messages[-1].content.startswith("Maximum token limit reached, cannot continue execution:")


async def test_running_out_of_steps_is_max_steps(settings: Settings) -> None:
    number = iter(range(100))
    result = await agent_of(settings, lambda request: call("add", a=next(number), b=0), max_steps=4).run("go")
    assert (result.status, len(result.steps)) == (Status.MAX_STEPS, 5)


async def test_a_spent_token_budget_ends_the_run_before_the_next_request(settings: Settings) -> None:
    from handwork.schema import Budget, Usage

    number = iter(range(100))

    def script(request: Any) -> Reply:
        return Reply(tool_calls=(call("add", a=next(number), b=0),), usage=Usage(input=60, output=10))

    agent = agent_of(settings, script, budget=Budget(tokens=100))
    result = await agent.run("go")
    assert result.status is Status.BUDGET
    assert len(agent.llm.requests) == 2
    assert result.usage.total == 140


# ---- the request


async def test_next_step_prompt_is_sent_last_and_not_stored(settings: Settings) -> None:
    agent = agent_of(settings, [call("add", a=1, b=1), "done"], next_step_prompt="What next?")
    await agent.run("go")
    assert [request.tail.text for request in agent.llm.requests] == ["What next?", "What next?"]
    assert all("What next?" not in (message.content or "") for message in agent.messages)


async def test_the_workspace_is_filled_into_the_prompts(settings: Settings, tmp_path: Any) -> None:
    agent = agent_of(settings, ["ok"], system_prompt="Work in {directory}, say {}.", workspace=tmp_path)
    await agent.run("go")
    assert agent.llm.requests[0].system == f"Work in {tmp_path}, say {{}}."


async def test_each_request_begins_with_the_stored_part_of_the_one_before(settings: Settings) -> None:
    number = iter(range(5))

    def script(request: Any) -> Any:
        return call("add", a=n, b=0) if (n := next(number, None)) is not None else "done"

    agent = agent_of(settings, script)
    await agent.run("go")
    for before, after in zip(agent.llm.requests, agent.llm.requests[1:], strict=False):
        assert after.messages[: len(before.messages)] == before.messages
        assert after.tools == before.tools


# ---- tool_choice


async def test_none_ignores_calls_with_a_warning(settings: Settings, seen: Seen) -> None:
    agent = agent_of(settings, [Reply(content="text", tool_calls=(call("add", a=1, b=1),))], tool_choices="none")
    result = await agent.run("go", listener=seen)
    assert (result.status, result.output) == (Status.FINISHED, "text")
    assert [event.level for event in seen.of("notice")] == ["warning"]
    assert agent.tool_calls == []


async def test_required_corrects_once_and_then_ends_with_that_error(settings: Settings) -> None:
    agent = agent_of(settings, ["text", "text again"], tool_choices=ToolChoice.REQUIRED)
    result = await agent.run("go")
    assert result.status is Status.ERROR
    assert isinstance(result.error, ValueError)
    assert str(result.error) == "Tool calls required but none provided"
    assert len(agent.llm.requests) == 2


async def test_required_goes_on_when_the_correction_helps(settings: Settings) -> None:
    script = ["text", call("add", a=1, b=1), "text", call("terminate", status="success")]
    result = await agent_of(settings, script, tool_choices="required").run("go")
    assert result.status is Status.FINISHED


def test_an_unknown_tool_choice_is_refused() -> None:
    with pytest.raises(ValueError, match="^Invalid tool_choice: sometimes$"):
        ToolCallAgent(tool_choices="sometimes")


async def test_act_without_anything_says_so(settings: Settings) -> None:
    assert await agent_of(settings, []).act() == "No content or commands to execute"


# ---- faults of the model


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("", "{}", "Error: Invalid command format"),
        ("ad", "{}", "Error: Unknown tool 'ad'; did you mean add?"),
        ("add", "{oops", "Error: Error parsing arguments for add: Invalid JSON format"),
        ("add", '{"a": "x", "b": 1}', "a"),
        ("add", '{"a": NaN, "b": 1}', "Error: Error parsing arguments for add: Invalid JSON format"),
        ("add", "[" * 3000 + "]" * 3000, "Error"),
        ("add", '{"a": ' + "9" * 5000 + ', "b": 1}', "Error"),
        ("add", '{"a": 1, "a": 2, "b": 1}', "Error"),
    ],
)
async def test_faults_of_the_model_are_answered_and_the_run_goes_on(
    settings: Settings, name: str, arguments: str, text: str
) -> None:
    bad = ToolCall(id="x", function=Function(name=name, arguments=arguments))
    agent = agent_of(settings, [[bad], "recovered"])
    result = await agent.run("go")
    assert result.output == "recovered"
    [message] = tool_messages(agent)
    assert message.content.startswith(text) or text in message.content
    assert message.is_error


async def test_arguments_cut_off_by_the_token_limit_are_never_run(settings: Settings) -> None:
    ran = []

    def note(text: str) -> str:
        """Keep a text."""
        ran.append(text)
        return "kept"

    cut = Reply(tool_calls=(call("note", text="whole JSON all the same"),), finish_reason="length")
    agent = agent_of(settings, [cut, "ok"], note)
    await agent.run("go")
    assert ran == []
    assert "cut off" in tool_messages(agent)[0].content


async def test_duplicate_and_empty_ids_are_made_unique_and_each_call_runs_once(settings: Settings) -> None:
    ran = []

    def note(text: str) -> str:
        """Keep a text."""
        ran.append(text)
        return text

    same = [ToolCall(id=id, function=Function(name="note", arguments=json.dumps({"text": t}))) for id, t in IDS]
    agent = agent_of(settings, [same, [*same], "ok"], note)
    await agent.run("go")
    ids = [m.tool_call_id for m in tool_messages(agent)]
    assert len(set(ids)) == len(ids) == 8
    assert all(ids)
    assert ran == ["1", "2", "3", "4"] * 2


IDS = [("a", "1"), ("a", "2"), ("", "3"), ("", "4")]


async def test_a_tool_that_raises_is_an_observation(settings: Settings) -> None:
    def broken() -> None:
        """Break."""
        raise ZeroDivisionError("division by zero")

    agent = agent_of(settings, [call("broken"), "ok"], broken)
    assert (await agent.run("go")).status is Status.FINISHED
    [message] = tool_messages(agent)
    assert message.content == "Error: ⚠️ Tool 'broken' encountered a problem: division by zero"
    assert message.is_error


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError()])
async def test_a_tool_that_wants_to_end_the_program_does_not(settings: Settings, error: BaseException) -> None:
    async def leaving() -> None:
        """Leave."""
        raise error

    agent = agent_of(settings, [call("leaving"), "ok"], leaving)
    assert (await agent.run("go")).output == "ok"


async def test_a_returned_error_gives_the_success_text_with_the_output_kept(settings: Settings) -> None:
    async def half() -> ToolResult:
        """Half."""
        return ToolResult(output="so far", error="then it broke")

    agent = agent_of(settings, [call("half"), "ok"], half)
    await agent.run("go")
    [message] = tool_messages(agent)
    assert message.content == "Observed output of cmd `half` executed:\nError: then it broke\nso far"
    assert message.is_error


async def test_no_output_is_said(settings: Settings) -> None:
    async def quiet() -> None:
        """Nothing."""

    agent = agent_of(settings, [call("quiet"), "ok"], quiet)
    await agent.run("go")
    assert tool_messages(agent)[0].content == "Cmd `quiet` completed with no output"


async def test_execute_tool_can_be_called_alone(settings: Settings) -> None:
    agent = agent_of(settings, [])
    text = await agent.execute_tool(call("add", a=1, b=2))
    assert text == "Observed output of cmd `add` executed:\n3"
    await agent.cleanup()


# ---- observations


async def test_a_long_result_keeps_head_and_tail_and_names_the_whole(settings: Settings) -> None:
    async def long() -> ToolResult:
        """Long."""
        return ToolResult(output="HEAD" + "z" * 50_000 + "TAIL", system="a note of the tool")

    agent = agent_of(settings, [call("long"), "ok"], long, max_observe=2000)
    result = await agent.run("go")
    content = tool_messages(agent)[0].content
    assert "HEAD" in content
    assert "TAIL" in content
    assert content.endswith("(a note of the tool)")
    assert len(content) < 2100
    [path] = (settings.home.artifacts / result.session_id).iterdir()
    assert path.read_text() == "HEAD" + "z" * 50_000 + "TAIL"
    assert str(path) in content


async def test_the_results_of_one_step_are_bounded_together(settings: Settings) -> None:
    async def long() -> str:
        """Long."""
        return "z" * 50_000

    agent = agent_of(settings, [[call("long") for _ in range(20)], "ok"], long, max_observe=2000)
    await agent.run("go")
    assert sum(len(m.content) for m in tool_messages(agent)) <= 5 * 2000


async def test_our_own_keys_are_masked_in_results(settings: Settings) -> None:
    settings = settings.model_copy(update={"environ": {"SOME_API_KEY": "sk-very-secret-key"}})

    async def leak() -> str:
        """Leak."""
        return "key: sk-very-secret-key"

    agent = agent_of(settings, [call("leak"), "ok"], leak)
    await agent.run("go")
    assert "secret" not in tool_messages(agent)[0].content


# ---- concurrency


async def test_calls_of_read_only_tools_run_together(settings: Settings) -> None:
    barrier = threading.Barrier(4, timeout=20)

    @tool(actions=[Action(kind="read", resource="*", repeatable=True)])
    def look(n: int) -> int:
        """Look."""
        barrier.wait()
        return n

    agent = agent_of(settings, [[call("look", n=n) for n in range(4)], "ok"], look)
    assert (await agent.run("go")).output == "ok"
    assert [m.content[-1] for m in tool_messages(agent)] == ["0", "1", "2", "3"]


async def test_calls_that_share_a_resource_run_one_after_another_in_order(settings: Settings) -> None:
    log = []

    async def work(n: int) -> int:
        """Work."""
        log.append(("in", n))
        await asyncio.sleep(0)
        log.append(("out", n))
        return n

    agent = agent_of(settings, [[call("work", n=n) for n in range(4)], "ok"], work)
    await agent.run("go")
    assert log == [(what, n) for n in range(4) for what in ("in", "out")]


async def test_every_call_gets_exactly_one_message_in_order_whatever_ends_first(settings: Settings) -> None:
    second_done = asyncio.Event()

    @tool(actions=[Action(kind="read", resource="a", repeatable=True)])
    async def slow() -> str:
        """Wait for the other."""
        await second_done.wait()
        return "slow"

    @tool(actions=[Action(kind="read", resource="b", repeatable=True)])
    async def fast() -> str:
        """Go first."""
        second_done.set()
        return "fast"

    agent = agent_of(settings, [[call("slow"), call("fast")], "ok"], slow, fast)
    await agent.run("go")
    assert [m.name for m in tool_messages(agent)] == ["slow", "fast"]


# ---- hooks


async def test_handle_special_tool_is_awaited_once_after_each_executed_call(settings: Settings) -> None:
    class Watching(ToolCallAgent):
        handled: list[str] = []

        async def _handle_special_tool(self, name: str, result: Any, **kwargs: Any) -> None:
            self.handled.append(f"{name}: {result.output}")
            await super()._handle_special_tool(name, result, **kwargs)

    script = [[call("add", a=1, b=1), call("nothing")], call("terminate", status="success")]
    agent = Watching(settings=settings, llm=ScriptedModel(script), available_tools=[add, Terminate])
    await agent.run("go")
    assert agent.handled == ["add: 2", "terminate: The interaction has been completed with status: success"]
    assert Watching.handled == []


async def test_should_finish_execution_decides_whether_a_special_tool_ends(settings: Settings) -> None:
    class Twice(ToolCallAgent):
        calls: int = 0

        def _should_finish_execution(self, **kwargs: Any) -> bool:
            self.calls += 1
            return self.calls == 2

    script = [call("terminate", status="success"), call("terminate", status="success")]
    agent = Twice(settings=settings, llm=ScriptedModel(script))
    assert len((await agent.run("go")).steps) == 2


async def test_own_special_tools_end_the_run(settings: Settings) -> None:
    async def hand_over() -> str:
        """Hand over."""
        return "handed over"

    result = await agent_of(settings, [call("hand_over")], hand_over, special_tool_names=["Hand_Over"]).run("go")
    assert result.status is Status.FINISHED


async def test_overriding_execute_tool_changes_just_the_text(settings: Settings) -> None:
    class Own(ToolCallAgent):
        async def execute_tool(self, command: ToolCall) -> str:
            return f"own {command.function.name}"

    agent = Own(settings=settings, llm=ScriptedModel([call("whatever"), "ok"]))
    await agent.run("go")
    assert tool_messages(agent)[0].content == "own whatever"


async def test_agents_share_no_tools(settings: Settings) -> None:
    first, second = ToolCallAgent(settings=settings), ToolCallAgent(settings=settings)
    assert first.available_tools is not second.available_tools
    assert first.available_tools.get_tool("terminate") is not second.available_tools.get_tool("terminate")
    first.available_tools.add_tool(add)
    assert second.available_tools.get_tool("add") is None


async def test_plain_functions_can_be_given_as_a_list(settings: Settings) -> None:
    def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    agent = ToolCallAgent(
        settings=settings, llm=ScriptedModel([call("shout", text="hi"), "ok"]), available_tools=[shout]
    )
    await agent.run("go")
    assert "HI" in tool_messages(agent)[0].content


async def test_an_image_in_a_result_follows_all_tool_messages(settings: Settings) -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

    async def draw() -> ToolResult:
        """Draw."""
        return ToolResult(output="drawn", base64_image=pixel)

    agent = agent_of(settings, [[call("draw"), call("add", a=1, b=1)], "ok"], draw, add)
    await agent.run("go")
    assert [m.role for m in agent.messages[2:5]] == [Role.TOOL, Role.TOOL, Role.USER]
    assert agent.messages[4].content == "Image returned by draw:"
    assert agent.messages[4].images[0].media_type == "image/png"


async def test_the_cost_of_a_run_is_unknown_if_that_of_one_request_is(settings: Settings) -> None:
    script = [Reply(tool_calls=(call("add", a=1, b=1),), cost_usd=0.5), Reply(content="ok", cost_usd=None)]
    assert (await agent_of(settings, script).run("go")).cost is None
    script = [Reply(tool_calls=(call("add", a=1, b=1),), cost_usd=0.5), Reply(content="ok", cost_usd=0.25)]
    assert (await agent_of(settings, script).run("go")).cost == 0.75


async def test_a_budget_in_usd_without_a_known_price_is_said_once(settings: Settings, seen: Seen) -> None:
    agent = agent_of(settings, [call("add", a=1, b=1), "ok"], budget=1)
    await agent.run("go", listener=seen)
    assert [("budget in USD" in event.text) for event in seen.of("notice")] == [True]
