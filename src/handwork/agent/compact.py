"""Compacting a conversation: the human's own words stay, a summary by the model takes the place of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from handwork import events as ev
from handwork.agent.asking import Asker, token_limit
from handwork.agent.history import open_at_end
from handwork.agent.prompt import read_prompt
from handwork.agent.run import Run
from handwork.agent.toolcall import ToolCallAgent
from handwork.agent.transcript import human_words, is_summary, kept_words, summary_message, transcript_of
from handwork.errors import HandworkError
from handwork.llm.tokens import TokenMeter
from handwork.schema import AgentState, Memory, Message, Request, RunResult, Status, scrub
from handwork.tool.planning import PlanningTool

_LEAST = 200
"""Tokens besides the human's words, about, from which on there is something to compact."""
_DEMO = "local:"
"""How the names of models begin that are too small to write one: they answer with a sentence about what they can do."""
_SIZES = ((4_000, 240_000), (800, 60_000), (160, 12_000))
"""Characters of one result and of the whole conversation that the model is shown; the next when it cannot take so much."""


class Compacted(NamedTuple):
    """Tokens of the agent's next request before and after, about."""

    before: int
    after: int


async def compact(agent: ToolCallAgent, focus: str = "") -> Compacted:
    """Replace the agent's memory by the human's own words, word for word, and a summary that the agent's model writes.

    Calls that still wait for their result stay. Whatever fails leaves memory and journal as they were.

    Args:
        agent: one that is not running; its model is asked without tools, and what that costs counts as any request.
        focus: what the summary must not lose, in the human's words.

    Raises:
        RuntimeError: the agent is running.
        HandworkError: there is too little to compact, the summary is none, or it was cancelled.
        ModelError, BudgetExceeded, JournalError: as in a run.
    """
    await agent._at_work.stopped()
    if agent.state is AgentState.RUNNING or agent._at_work:
        raise RuntimeError(f"Cannot compact agent in state: {agent.state.value}")
    work = _Compacting(agent, focus)
    result = await agent._at_work.end_of(agent._occupy(work.live(agent.state)))
    if result.error is not None:
        raise result.error
    if work.compacted is None:
        how = "took too long" if result.status is Status.TIMEOUT else "was cancelled"
        raise HandworkError(f"Compacting {how}; the conversation is as it was")
    return work.compacted


class _Compacting:
    """One agent's memory on its way to a shorter one; `compacted` is there when it has come to it."""

    def __init__(self, agent: ToolCallAgent, focus: str) -> None:
        self._agent, self._focus = agent, scrub(focus).strip()
        self.compacted: Compacted | None = None

    async def live(self, stood: AgentState) -> RunResult:
        """The work's own task, in the agent's session; the agent is left in the state in which it stood."""
        agent = self._agent
        try:
            async with agent._opened() as session, session.taken(agent._at_work.stop):
                run = agent._run = agent._begin(session)
                await agent._make_ready(session)
                agent._meet(session)
                agent._journal_memory(run)
                before = list(agent.memory.messages)
                result = await run.drive(self._work(run), _nothing)
                if result.status is not Status.FINISHED and self.compacted is not None:  # it never came to the disk
                    agent.memory.messages, self.compacted = before, None
                return result
        finally:
            agent.state = stood

    async def _work(self, run: Run) -> None:
        agent = self._agent
        if agent._model.name.startswith(_DEMO):
            raise HandworkError(f"{agent._model.name} is too small to write a summary", hint="choose another model")
        told = agent.memory.messages
        open_from = open_at_end(told)
        settled, waiting = (told, []) if open_from is None else (told[:open_from], told[open_from:])
        words = human_words(settled)
        said = {id(word) for word in words}
        rest = [message for message in settled if id(message) not in said]
        size = TokenMeter().estimate_messages([message for message in rest if not is_summary(message)])
        if size < _LEAST:
            raise HandworkError(f"There is too little to compact: about {size} tokens besides your own words")
        summary = await self._summary(run, settled)
        kept = kept_words(words)
        short = [*kept, summary_message(summary, self._plan(), len(words) - len(kept)), *waiting]
        before, after = self._tokens(told), self._tokens(short)
        if after >= before:
            raise HandworkError("The summary would be longer than the conversation, which stays as it was")
        run.go_on()
        agent.memory.messages = short  # from here to the end nothing waits, so nobody sees half of it
        self.compacted = Compacted(before, after)
        agent._journal_memory(run)
        run.emit(ev.ContextFitted(before=before, after=after, how="compacted"))

    def _tokens(self, messages: Sequence[Message]) -> int:
        return self._agent.meter.estimate(replace(self._agent.next_request, messages=tuple(messages)))

    def _plan(self) -> str:
        """The agent's active plan, which the model would otherwise lose sight of."""
        tools = (tool for tool in self._agent.available_tools if isinstance(tool, PlanningTool))
        return next((str(tool.active) for tool in tools if tool.active is not None), "")

    async def _summary(self, run: Run, messages: Sequence[Message]) -> str:
        """Ask the model; with less of the conversation if so much does not fit."""
        asker = Asker(self._agent.meter, quiet=True)
        for each, together in _SIZES:
            text = transcript_of(messages, each, together)
            if self._focus:
                text += f"\n\nThe user asks for this above all: {self._focus}"
            request = Request(
                messages=[Message.user_message(text)], system=read_prompt("compact"), deadline=run.deadline
            )
            try:
                reply = await asker.ask(run, self._agent._model, request, Memory(request.messages))
            except Exception as error:
                if token_limit(error) is None or (each, together) == _SIZES[-1]:
                    raise
                continue
            if reply.finish_reason == "length":
                raise HandworkError(
                    "The summary was cut off by the token limit",
                    hint="allow longer replies ([llm] max_tokens), or say what matters: /compact WHAT",
                )
            if reply.content and reply.content.strip():
                return reply.content.strip()
            raise HandworkError("The model wrote no summary", hint="try again, or begin a new conversation")
        raise AssertionError("unreachable")


def _nothing(run: Run, result: RunResult) -> None:
    """There is no more to tell when it is over."""
