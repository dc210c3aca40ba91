"""Putting a question to the human, by whatever way the answer comes."""

from __future__ import annotations

from handwork import events as ev
from handwork.agent.run import Run
from handwork.schema import Question


async def put(run: Run, question: Question) -> str:
    """Ask, or take the answer that came with the run. Raises Waiting when nobody is there; the question then stays open."""
    if question.id not in run.session.past.questions:
        run.emit(ev.QuestionAsked(id=question.id, question=question))
        await run.gate()
    answer = run.answers.pop(question.id, None)
    if answer is None:
        answer = run.session.masked(await run.session.ask(question))
    run.emit(ev.QuestionAnswered(id=question.id, answer=answer))
    return answer
