"""Test your own agent and tools without a model: a scripted one says what you write down, and records what it was asked."""

import asyncio

from handwork import ScriptedModel, Terminate, ToolCallAgent
from handwork.llm.scripted import call


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper() + "!"


async def main() -> None:
    model = ScriptedModel([call("shout", text="hello"), "It said HELLO!"])
    result = await ToolCallAgent(llm=model, available_tools=[shout, Terminate]).run("Shout hello.")
    assert "HELLO!" in model.requests[1].messages[-1].content
    print(result.output)


asyncio.run(main())
