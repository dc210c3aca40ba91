"""A server that answers only after its user has opened a page (JSON-RPC error -32042)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from handwork.errors import MCPRefused, Waiting
from handwork.mcp.content import Answer, Text

from .place import Place, opened


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with opened(tmp_path) as place:
        yield place


class Human:
    def __init__(self, *answers: str) -> None:
        self.answers, self.questions = [*answers], list[str]()

    async def __call__(self, question: str) -> str:
        self.questions.append(question)
        return self.answers.pop(0)


def words(answer: Answer) -> str:
    return ", ".join(part.text for part in answer.parts if isinstance(part, Text))


async def test_each_page_is_put_to_the_person_and_the_call_is_made_once_more(place: Place) -> None:
    human = Human("yes", "yes")
    connection = place.connect(ask=human)
    assert words(await connection.call("page", {})) == "now it goes"
    first, second = human.questions
    assert first.startswith("The MCP server stub wants you to open a page:\n> Log in.\n")
    assert "Host:    login.example" in first
    assert "answer yes when you are done there" in first
    assert "Host:    pay.example" in second


@pytest.mark.parametrize(("answer", "why"), [("decline", "that was declined"), ("cancel", "that was cancelled")])
async def test_a_page_that_is_not_opened_is_a_refusal_that_says_so_and_nothing_is_asked_again(
    place: Place, answer: str, why: str
) -> None:
    human = Human(answer)
    connection = place.connect(ask=human)
    with pytest.raises(MCPRefused) as error:
        await connection.call("page", {})
    assert error.value.what == (
        f"The MCP server stub answers this only after a page of login.example is opened, and {why}"
    )
    assert error.value.code == -32042
    assert len(human.questions) == 1
    assert words(await connection.call("heard", {})).count("tools/call") == 2


async def test_where_nobody_is_there_a_page_is_a_refusal_that_names_its_host(place: Place) -> None:
    async def nobody(question: str) -> str:
        raise Waiting("nobody")

    for ask in (None, nobody):
        with pytest.raises(MCPRefused, match="a page of login.example is opened, and nobody is there to open it"):
            await place.connect(ask=ask).call("page", {})


async def test_a_server_that_wants_its_pages_once_more_is_not_asked_a_third_time(place: Place) -> None:
    human = Human("yes", "yes")
    with pytest.raises(MCPRefused, match="A page first"):
        await place.connect(ask=human).call("page", {"times": 5})
    assert len(human.questions) == 2


async def test_an_address_that_may_be_read_otherwise_is_declined_unasked(place: Place) -> None:
    human = Human()
    data = {"elicitations": [{"url": "https://a.example\\@b.example/", "message": "x"}]}
    with pytest.raises(MCPRefused, match="its address is none that can be shown to a person"):
        await place.connect(ask=human).call("page", {"data": data})
    assert human.questions == []


@pytest.mark.parametrize(
    "data",
    [None, 5, [], {}, {"elicitations": 5}, {"elicitations": []}, {"elicitations": [5]}, {"elicitations": [{"url": 5}]},
     {"elicitations": [{"url": "https://a.example/"}] * 6}],
)  # fmt: skip
async def test_an_error_that_names_no_page_is_an_error_like_any_other(place: Place, data: Any) -> None:
    human = Human()
    with pytest.raises(MCPRefused, match="A page first"):
        await place.connect(ask=human).call("page", {"data": data})
    assert human.questions == []
