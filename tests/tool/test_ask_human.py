from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from handwork.errors import ArgumentsError, Waiting
from handwork.schema import Action
from handwork.tool.arguments import prepare
from handwork.tool.ask_human import AskHuman


def context(ask: Any) -> Any:
    return SimpleNamespace(ask=ask)


async def test_the_question_goes_through_the_door_and_the_answer_comes_back() -> None:
    asked = []

    async def ask(question: str) -> str:
        asked.append(question)
        return "blue"

    assert await AskHuman().execute(inquire="Which colour?", context=context(ask)) == "blue"
    assert asked == ["Which colour?"]


async def test_without_a_human_the_run_waits() -> None:
    async def ask(question: str) -> str:
        raise Waiting("nobody is there")

    with pytest.raises(Waiting):
        await AskHuman().execute(inquire="?", context=context(ask))


def test_asking_declares_itself_and_may_be_repeated() -> None:
    assert AskHuman().actions({}) == [Action(kind="ask", resource="human", repeatable=True)]
    assert AskHuman().wants_context


@pytest.mark.parametrize("raw", ["{}", '{"inquire": ""}', '{"inquire": 5}', '{"inquire": "a", "context": {}}'])
def test_a_question_is_needed(raw: str) -> None:
    with pytest.raises(ArgumentsError):
        prepare(AskHuman(), raw)
