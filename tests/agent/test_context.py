"""What the next request would be, and how many tokens it has, about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from handwork.agent.toolcall import ToolCallAgent
from handwork.config import Settings
from handwork.llm.scripted import ScriptedModel, call
from handwork.llm.tokens import TokenMeter
from handwork.schema import Memory, Message, Reply, Request, Usage


def look(what: str) -> str:
    """Look at something."""
    return what * 100


def agent_of(settings: Settings, script: Any, **fields: Any) -> Any:
    return ToolCallAgent(settings=settings, llm=ScriptedModel(script), available_tools=[look], **fields)


async def test_what_a_provider_counts_makes_the_guesses_nearer(settings: Settings) -> None:
    def answer(request: Any) -> Reply:
        true = TokenMeter().estimate(request) * 2
        ends = len(request.messages) > 8
        return Reply(
            content="done" if ends else None,
            tool_calls=() if ends else (call("look", what=str(len(request.messages))),),
            usage=Usage(input=true, output=5),
        )

    agent = agent_of(settings, answer)
    await agent.run("go")
    fresh = TokenMeter().estimate(agent.next_request)
    assert 1.9 < agent.meter.estimate(agent.next_request) / fresh < 2.1


async def test_a_provider_that_does_not_count_changes_no_guess(settings: Settings) -> None:
    agent = agent_of(settings, [call("look", what="a"), "done"])
    await agent.run("go")
    assert agent.meter.factor == 1.0


async def test_the_next_request_is_what_is_sent_next(settings: Settings, tmp_path: Path) -> None:
    agent = agent_of(
        settings, ["hello", "again"], system_prompt="In {directory}.", next_step_prompt="Go on in {directory}."
    )
    await agent.run("go")
    agent.update_memory("user", "more")
    wanted = agent.next_request
    assert wanted.system == f"In {tmp_path}."
    shown = (list(wanted.messages), wanted.system, wanted.tools, wanted.tail)
    await agent.run()
    sent = agent.llm.requests[1]
    assert shown == (list(sent.messages), sent.system, sent.tools, sent.tail)


def test_a_history_that_grows_or_is_rewritten_is_counted_as_if_it_were_new() -> None:
    meter, memory = TokenMeter(), Memory()

    def same() -> bool:
        request = Request(messages=memory.messages, system="s")
        return meter.estimate(request) == TokenMeter().estimate(Request(messages=list(memory.messages), system="s"))

    assert same()
    for number in range(3):
        memory.add_message(Message.user_message("x" * 400 * (number + 1)))
        assert same()
    memory.messages[0] = Message.user_message("y" * 9000)
    assert same()
    del memory.messages[1:]
    assert same()
    memory.messages = [Message.user_message("z" * 50)]
    assert same()
    memory.clear()
    assert same()
