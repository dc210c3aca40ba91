from __future__ import annotations

import copy
import json
import threading
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

from handwork.errors import ArgumentsError
from handwork.tool.arguments import prepare
from handwork.tool.create_chat_completion import CreateChatCompletion


class City(BaseModel):
    """A town."""

    name: str
    people: int = Field(ge=0)
    founded: date | None = None

    @field_validator("name")
    @classmethod
    def _capital(cls, name: str) -> str:
        if not name[:1].isupper():
            raise ValueError("a name begins with a capital letter")
        return name


class Node(BaseModel):
    children: list[Node] = []


@dataclass
class Size:
    width: int


@pytest.mark.parametrize(
    ("kind", "response", "value", "output"),
    [
        (str, "hello", "hello", "hello"),
        (int, 5, 5, "5"),
        (bool, False, False, "false"),
        (list[int], [1, 2], [1, 2], "[1,2]"),
        (dict[str, float], {"a": 1.5}, {"a": 1.5}, '{"a":1.5}'),
        (int | None, None, None, "null"),
        (Literal["yes", "no"], "no", "no", "no"),
        (Size, {"width": 2}, Size(2), '{"width":2}'),
        (City, {"name": "Ulm", "people": 3}, City(name="Ulm", people=3), '{"name":"Ulm","people":3,"founded":null}'),
        (list[City], [{"name": "Ulm", "people": 3}], [City(name="Ulm", people=3)], None),
        (Node, {"children": [{}]}, Node(children=[Node()]), '{"children":[{"children":[]}]}'),
        (date, "2026-01-02", date(2026, 1, 2), "2026-01-02"),
    ],
)
async def test_the_answer_has_the_asked_type(kind: Any, response: Any, value: Any, output: str | None) -> None:
    tool = CreateChatCompletion(kind)
    arguments = prepare(tool, json.dumps({"response": response}))
    result = await tool.execute(**arguments)
    assert output is None or result.output == output
    assert result.details is not None
    assert tool.value(json.loads(json.dumps(result.details))) == value


@pytest.mark.parametrize(
    ("kind", "raw", "says"),
    [
        (str, "{}", "'response' is missing"),
        (str, '{"response": 5}', "'response': expected string, given integer 5"),
        (int, '{"response": "5"}', "'response': expected integer"),
        (City, '{"response": {"name": "Ulm"}}', "'people' is missing (expected integer) in 'response'"),
        (City, '{"response": {"name": "Ulm", "people": -1}}', "'response.people': expected at least 0"),
        (list[City], '{"response": [{"name": 1, "people": 1}]}', "'response[0].name': expected string"),
    ],
)
def test_what_does_not_fit_the_type_is_refused_before_the_call(kind: Any, raw: str, says: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        prepare(CreateChatCompletion(kind), raw)
    assert says in str(caught.value)


async def test_what_only_the_model_can_check_is_refused_in_the_call() -> None:
    with pytest.raises(ArgumentsError, match=r"'response\.name': .*capital letter.*given string \"ulm\""):
        await CreateChatCompletion(City).execute(response={"name": "ulm", "people": 1})


def test_the_schema_says_what_is_wanted() -> None:
    assert CreateChatCompletion().to_param()["function"] == {
        "name": "create_chat_completion",
        "description": "Give your final answer, in the form that `response` asks for.",
        "parameters": {
            "type": "object",
            "properties": {"response": {"type": "string", "description": "The answer."}},
            "required": ["response"],
            "additionalProperties": False,
        },
    }
    city = CreateChatCompletion(City).parameters["properties"]["response"]
    assert (city["description"], city["required"]) == ("A town.", ["name", "people"])


def test_a_double_encoded_answer_is_opened() -> None:
    raw = json.dumps({"response": json.dumps({"name": "Ulm", "people": 1})})
    assert prepare(CreateChatCompletion(City), raw) == {"response": {"name": "Ulm", "people": 1}}


def test_a_type_without_a_schema_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="JSON Schema"):
        CreateChatCompletion(threading.Lock)


def test_it_ends_the_run_and_can_be_copied_and_described_anew() -> None:
    tool = CreateChatCompletion(City, description="Name a town.")
    assert [action.kind for action in tool.actions({})] == ["end"]
    assert copy.deepcopy(tool).to_param() == tool.to_param()
    assert tool.description == "Name a town."
