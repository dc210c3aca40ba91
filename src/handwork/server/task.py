"""run_task: an agent works on a client's task, in a session of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handwork import events as ev
from handwork.agent.base import BaseAgent
from handwork.agent.roles import load_role
from handwork.config import Settings
from handwork.errors import ConfigError, ToolError
from handwork.llm.llm import LLM
from handwork.schema import JSON, Approve, Artifact, Ask, RunResult, Status, scrub
from handwork.schema.visible import seen
from handwork.server.answer import Answer
from handwork.server.exchange import Exchange
from handwork.session import Session
from handwork.session.spending import Purse
from handwork.tool.base import Tool

_SHORT = 200
"""Characters of a call's arguments in the progress."""


class RunTask(Tool):
    """Declared as a tool; the guest runs it, since an agent's run is no call within another session."""

    name = "run_task"
    description = (
        "Give a whole task in words to an autonomous agent with Python, a shell, files and a plan; it works until the task is "
        "done and returns its answer. Name the session of an earlier answer to go on with its conversation, or to answer what "
        "it asked."
    )
    parameters: Mapping[str, JSON] = {
        "type": "object",
        "properties": {
            "task": {"type": "string", "description": "What to do, in words.", "minLength": 1},
            "agent": {"type": "string", "description": "Who does it (default: manus)."},
            "max_steps": {
                "type": "integer",
                "minimum": 1,
                "description": "End after so many steps, or earlier, if the server allows fewer.",
            },
            "timeout": {"type": "number", "exclusiveMinimum": 0, "description": "End after so many seconds."},
            "session": {"type": "string", "description": "The session of an earlier answer, to go on with it."},
        },
        "required": ["task"],
        "additionalProperties": False,
    }

    async def execute(self, **arguments: Any) -> None:
        """Is run by the guest that it belongs to."""
        raise ToolError("run_task is run by the server")


@dataclass(frozen=True, slots=True)
class Task:
    """What a client wants done, and where."""

    settings: Settings
    workspace: Path
    purse: Purse
    task: str
    agent: str = "manus"
    max_steps: int | None = None
    timeout: float | None = None
    session: str | None = None

    async def run(self, ask: Ask | None, approve: Approve | None, exchange: Exchange) -> Answer:
        """Run it to its end. Raises HandworkError for what keeps it from beginning; being cancelled ends the run."""
        task = seen(scrub(self.task)).text
        if not task.strip():
            raise ConfigError("The task holds no character that can be seen", hint="say in words what is to be done")
        self.purse.check()
        agent_class = load_role(self.agent)
        notices: list[tuple[str, str]] = []
        llm = LLM(agent_class.name, self.settings, notify=lambda level, text: notices.append((level, text)))
        await llm.ready()
        listener = Progress(exchange)
        async with Session.open(
            self.settings, self.workspace, self.session, ask, approve, [listener, self.purse], create=False
        ) as session:
            session.purse = self.purse
            for level, text in notices:
                session.notify(level, text)
            agent = agent_class(session=session, settings=self.settings, llm=llm, **self._limits(agent_class))
            result = await agent.run(task)
        return _answer(result, agent.current_step)

    def _limits(self, agent_class: type[BaseAgent]) -> dict[str, Any]:
        """The client may ask for less than is configured, never for more; where nothing is, a role's own number of steps holds."""
        limits = self.settings.limits
        steps = _least(self.max_steps, limits.max_steps or agent_class.max_steps)
        timeout = _least(self.timeout, limits.timeout)
        given = {"max_steps": steps, "timeout": timeout}
        return {name: value for name, value in given.items() if value is not None}


def _least(*limits: float | None) -> float | None:
    return min((limit for limit in limits if limit is not None), default=None)


class Progress:
    """Tells a client how far an agent's run is: its steps and calls, what it says and what is to be known."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def __call__(self, event: ev.Event) -> None:
        if text := _line(event):
            self._exchange.tell(f"{text}\n")


def _line(event: ev.Event) -> str:
    match event:
        case ev.StepStarted():
            return f"Step {event.step}"
        case ev.ToolCallStarted():
            function = event.call.function
            return f"▸ {function.name} {function.arguments[:_SHORT]}"
        case ev.ToolCallFinished() if event.is_error:
            return f"⎿ error: {event.observation[:_SHORT]}"
        case ev.Notice():
            return f"{event.level}: {event.text}"
    return ""


def _answer(result: RunResult, steps: int) -> Answer:
    done = result.status is Status.FINISHED
    structured: dict[str, JSON] = {
        "status": result.status.value,
        "answer": result.output,
        "session": result.session_id,
        "steps": steps,
    }
    if result.detail:
        structured["detail"] = result.detail
    text = result.output if done else _unfinished(result)
    return Answer(text, not done, artifacts=_files(result.artifacts), structured=structured)


def _unfinished(result: RunResult) -> str:
    """How a run ended that has not finished, what it came to, and how to go on."""
    parts = [f"Status: {result.status.value}" + (f" – {result.detail}" if result.detail else "")]
    if result.output:
        parts.append(result.output)
    if result.status is Status.BUDGET:
        return "\n\n".join(parts)
    said = "the answer" if result.status is Status.WAITING else "what to do next"
    parts.append(f'To go on: run_task with session "{result.session_id}" and {said} as the task.')
    return "\n\n".join(parts)


def _files(artifacts: tuple[Artifact, ...]) -> tuple[Artifact, ...]:
    return tuple(dict.fromkeys(artifacts))
