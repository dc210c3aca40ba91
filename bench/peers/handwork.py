"""Handwork as one of the peers of the shared harness: the plain tool-calling agent, its journal on, in a home of its own."""

from __future__ import annotations

import os
import tempfile

from handwork import LLM, LLMSettings, Settings, ToolCallAgent, ToolCollection, tool

PYTHON = ".venv/bin/python"
PKGS = ["handwork", "aiohttp", "pydantic"]

os.environ["HANDWORK_HOME"] = tempfile.mkdtemp(prefix="handwork-bench-")
WORKSPACE = tempfile.mkdtemp(prefix="handwork-bench-")
"""Empty: the requests hold what those of the others hold, and no AGENTS.md of where the benchmark is started."""


@tool
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@tool
def note(text: str) -> int:
    """Store a note and return its length."""
    return len(text)


def model(name: str) -> tuple[LLM, Settings]:
    llm = LLMSettings(model=f"openai:{name}", base_url=os.environ["BASE"], api_key="sk-mock")
    settings = Settings(llm={"default": llm})
    return LLM(settings=settings), settings


def agent(made: tuple[LLM, Settings], tool: str = "add", steps: int = 100) -> ToolCallAgent:
    llm, settings = made
    return ToolCallAgent(
        llm=llm,
        settings=settings,
        workspace=WORKSPACE,
        system_prompt="You are a helpful assistant.",
        available_tools=ToolCollection(add if tool == "add" else note),
        max_steps=steps,
    )


async def run(agent: ToolCallAgent, prompt: str) -> str:
    return (await agent.run(prompt)).output


async def run_stream(agent: ToolCallAgent, prompt: str) -> int:
    seen = 0
    async for _ in agent.stream(prompt):
        seen += 1
    return seen
