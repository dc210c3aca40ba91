"""What every agent sends: CONTRACT B2 and DESIGN "The request to the model", byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from handwork.agent.manus import Manus
from handwork.agent.swe import SWEAgent
from handwork.agent.toolcall import ToolCallAgent
from handwork.config import LLMSettings, Settings
from handwork.schema import Status
from tests.support.strict_server import StrictServer, tool

STEPS = 20


def note(text: str) -> str:
    """Keep a text."""
    return f"kept {text}"


def counting(request: dict[str, Any]) -> Any:
    done = sum(message["role"] == "tool" for message in request["messages"])
    if done == STEPS - 1:
        return "the answer"
    names = {offered["function"]["name"] for offered in request["tools"]}
    return tool("bash", command=f"echo {done}") if "bash" in names else tool("note", text=str(done))


def settings_for(url: str) -> Settings:
    return Settings(llm={"default": LLMSettings(model="openai:any", base_url=url)})


@pytest.mark.parametrize("role", [ToolCallAgent, Manus, SWEAgent])
async def test_each_request_begins_with_the_stored_bytes_of_the_one_before_and_ends_with_the_prompt_once(
    role: type[ToolCallAgent], tmp_path: Path
) -> None:
    prompt = f"NEXT STEP of {role.__name__}" if role is not SWEAgent else ""
    async with StrictServer(counting) as server:
        agent = role(settings=settings_for(server.url), workspace=tmp_path, next_step_prompt=prompt, max_steps=STEPS)
        if role is ToolCallAgent:
            agent.available_tools.add_tool(note)
        result = await agent.run("work through twenty steps")
    assert (result.status, result.output) == (Status.FINISHED, "the answer")
    assert server.refused == []
    assert len(server.bodies) == STEPS
    if prompt:
        for request in server.requests:
            assert request["messages"][-1] == {"role": "user", "content": prompt}
        assert all(body.count(prompt.encode()) == 1 for body in server.bodies)
    for before, after in zip(server.bodies, server.bodies[1:], strict=False):
        stored = stored_part(before, prompt)
        assert after.startswith(stored)


def stored_part(body: bytes, prompt: str) -> bytes:
    """The body up to the end of its last stored message."""
    text = body.decode("latin-1")  # a character a byte
    start = text.index('"messages":') + len('"messages":')
    _, end = json.JSONDecoder().raw_decode(text, start)
    stored = text[: end - 1]
    return (stored[: stored.rindex(',{"role":"user"')] if prompt else stored).encode("latin-1")


async def test_the_answer_is_in_the_last_event_and_the_run_costs_one_request_for_a_question(tmp_path: Path) -> None:
    async with StrictServer(["It is 42."]) as server:
        agent = Manus(settings=settings_for(server.url), workspace=tmp_path)
        events = [event async for event in agent.stream("what is 6*7?")]
    assert events[-1].output == "It is 42."
    assert len(server.requests) == 1
