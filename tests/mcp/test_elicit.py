"""A server asks its user: field by field, cleaned, validated, and never opening anything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from handwork.errors import Waiting
from handwork.mcp.elicit import MOST_FIELDS, elicit


class Human:
    """Answers in turn, and remembers what was asked."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.questions = [*answers], list[str]()

    async def __call__(self, question: str) -> str:
        self.questions.append(question)
        return self.answers.pop(0)


def form(properties: dict[str, Any], *required: str, message: str = "Who are you?") -> Any:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return SimpleNamespace(mode="form", message=message, requested_schema=schema)


def url(address: str, message: str = "Log in.") -> Any:
    return SimpleNamespace(mode="url", message=message, url=address, elicitation_id="1")


async def test_one_field_is_one_question_that_names_the_server() -> None:
    human = Human("Ada")
    assert await elicit("github", form({"name": {"type": "string", "title": "Your name"}}, "name"), human) == (
        "accept",
        {"name": "Ada"},
    )
    (question,) = human.questions
    assert question.startswith("The MCP server github asks:\n> Who are you?\n\nYour name (text)\n")
    assert "answer decline" in question
    assert "answer cancel" in question


async def test_several_fields_are_asked_one_by_one() -> None:
    human = Human("Ada", "36", "")
    answer = await elicit(
        "s", form({"name": {"type": "string"}, "age": {"type": "integer"}, "mail": {"type": "string"}}, "name"), human
    )
    assert answer == ("accept", {"name": "Ada", "age": 36})
    assert ["(2 of 3) age (a whole number)" in question for question in human.questions] == [False, True, False]
    assert all(question.startswith("The MCP server s asks:") for question in human.questions)


@pytest.mark.parametrize(
    ("rule", "answer", "value"),
    [
        ({"type": "string"}, "x = 1", "x = 1"),
        ({"type": "string"}, '"cancel"', "cancel"),
        ({"type": "string", "format": "email"}, "a@b.org", "a@b.org"),
        ({"type": "string", "format": "uri"}, "https://b.org/x", "https://b.org/x"),
        ({"type": "string", "format": "date"}, "2026-02-28", "2026-02-28"),
        ({"type": "string", "format": "date-time"}, "2026-02-28T10:00:00Z", "2026-02-28T10:00:00Z"),
        ({"type": "number"}, "-1.5e3", -1500.0),
        ({"type": "number"}, "2", 2),
        ({"type": "integer", "minimum": 1, "maximum": 3}, "3", 3),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "n", False),
        ({"type": "string", "enum": ["red", "green"]}, "green", "green"),
        ({"type": "string", "enum": ["red", "green"]}, "RED", "red"),
        ({"type": "string", "enum": ["red", "green"]}, "2", "green"),
        ({"type": "string", "enum": ["10", "5", "2"]}, "2", "2"),
        ({"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}, "green", "g"),
        ({"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}, "Red", "r"),
        ({"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}}, "3, a, 3", ["c", "a"]),
        ({"type": "array", "items": {"anyOf": [{"const": "a", "title": "Apple"}]}}, "apple", ["a"]),
        ({"type": "array", "items": {"type": "string", "enum": ["a"]}}, "none", []),
        ({"type": "string", "default": "x"}, "", "x"),
        ({"type": "boolean", "default": False}, "", False),
        ({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "default": ["b"]}, "", ["b"]),
    ],
)
async def test_an_answer_becomes_a_value_of_the_field_s_type(rule: dict[str, Any], answer: str, value: Any) -> None:
    human = Human(answer)
    action, content = await elicit("s", form({"x": rule}, "x"), human)
    assert (action, content) == ("accept", {"x": value})
    assert content is not None
    assert type(content["x"]) is type(value)


@pytest.mark.parametrize(
    ("rule", "answer", "told"),
    [
        ({"type": "string"}, "", "an answer is needed"),
        ({"type": "string", "default": 5}, "", "an answer is needed"),
        ({"type": "string", "minLength": 3}, "ab", "at least 3 characters"),
        ({"type": "string", "maxLength": 3}, "abcd", "at most 3 characters"),
        ({"type": "string", "format": "email"}, "ada", "an e-mail address"),
        ({"type": "string", "format": "uri"}, "no address", "an address"),
        ({"type": "string", "format": "date"}, "2026-02-30", "a date"),
        ({"type": "string", "format": "date-time"}, "2026-02-28", "a date and time"),
        ({"type": "integer"}, "1.5", "a whole number"),
        ({"type": "integer"}, "9" * 5000, "a number is needed"),
        ({"type": "number"}, "nan", "a number is needed"),
        ({"type": "number"}, "1e999", "too large"),
        ({"type": "integer", "maximum": 3}, "4", "at most 3"),
        ({"type": "boolean"}, "perhaps", "yes or no"),
        ({"type": "string", "enum": ["red"]}, "blue", "none of the choices"),
        ({"type": "string", "enum": ["red"]}, "0", "none of the choices"),
        ({"type": "array", "minItems": 2, "items": {"type": "string", "enum": ["a", "b"]}}, "a", "at least 2 items"),
    ],
)
async def test_what_does_not_fit_is_asked_again_three_times_in_all(
    rule: dict[str, Any], answer: str, told: str
) -> None:
    human = Human(answer, answer, answer, "never asked")
    assert await elicit("s", form({"x": rule}, "x"), human) == ("cancel", None)
    assert len(human.questions) == 3
    assert human.questions[1].startswith("That cannot be taken: ")
    assert told in human.questions[1]


async def test_a_better_second_answer_is_taken() -> None:
    assert await elicit("s", form({"x": {"type": "integer"}}), Human("x", "7")) == ("accept", {"x": 7})


@pytest.mark.parametrize(("word", "action"), [("decline", "decline"), ("CANCEL", "cancel"), (" Decline ", "decline")])
async def test_a_person_can_refuse_or_stop_at_any_field(word: str, action: str) -> None:
    human = Human("x", word)
    assert await elicit("s", form({"a": {"type": "string"}, "b": {"type": "string"}}), human) == (action, None)


async def test_a_form_without_fields_is_a_question_of_yes_or_no() -> None:
    assert await elicit("s", form({}), Human("maybe", "yes")) == ("accept", {})
    assert await elicit("s", form({}), Human("no")) == ("decline", None)
    assert await elicit("s", form({}), Human("a", "b", "c")) == ("cancel", None)


async def test_nobody_at_the_door_cancels() -> None:
    async def nobody(question: str) -> str:
        raise Waiting("nobody")

    assert await elicit("s", form({"a": {"type": "string"}}), nobody) == ("cancel", None)
    assert await elicit("s", url("https://example.org"), nobody) == ("cancel", None)


@pytest.mark.parametrize(
    "properties",
    [
        {"password": {"type": "string"}},
        {"x": {"type": "string", "title": "API key"}},
        {"x": {"type": "string", "description": "Your one-time code"}},
        {"x": {"type": "string", "title": "Passwort"}},
    ],
)
async def test_a_field_that_wants_a_secret_is_told_to_be_unwise(properties: dict[str, Any]) -> None:
    human = Human("decline")
    await elicit("s", form(properties), human)
    assert "This looks like a secret." in human.questions[0]


async def test_an_ordinary_field_is_not_called_a_secret() -> None:
    human = Human("decline")
    await elicit("s", form({"city": {"type": "string", "description": "Spinning or shopping?"}}), human)
    assert "secret" not in human.questions[0]


async def test_nothing_that_a_server_says_acts_on_the_terminal_or_passes_for_ours() -> None:
    human = Human("decline")
    rule = {
        "type": "string",
        "title": "a\x1b[2J\nb",
        "description": "c\rd\u202e\nTo refuse",
        "enum": ["\x1b]0;x\x07", "y"],
    }
    await elicit("s\x1b[31m", form({"x\ny": rule}, message="hi\x1b[0m\n\nThe MCP server bank asks:\n> x"), human)
    (question,) = human.questions
    assert not set("\x1b\x07\r\u202e") & set(question)
    assert "\n> The MCP server bank asks:" in question
    assert "\n> To refuse" in question
    assert question.count("\nThe MCP server") == 0


@pytest.mark.parametrize(
    "properties", [{f"f{number}": {"type": "string"} for number in range(MOST_FIELDS + 1)}, None, "x"]
)
async def test_a_form_that_nobody_could_fill_in_is_declined(properties: Any) -> None:
    assert await elicit("s", form(properties), Human()) == ("decline", None)


async def test_a_schema_without_sense_is_taken_for_a_text() -> None:
    assert await elicit("s", form({"x": 5, "y": {"type": ["a"]}}), Human("1", "2")) == ("accept", {"x": "1", "y": "2"})


async def test_halves_of_characters_break_nothing() -> None:
    rule = {"type": ["\ud800"], "title": "\ud800", "enum": ["\ud800", "b"]}
    assert await elicit("s", form({"x": rule}, message="\ud800"), Human("b")) == ("accept", {"x": "b"})
    assert await elicit("s", form({"\ud800": {"type": "string"}}), Human()) == ("decline", None)


async def test_many_choices_are_cut_and_can_all_be_chosen() -> None:
    human = Human("77")
    rule = {"type": "string", "enum": [f"v{number}" for number in range(1, 201)]}
    assert await elicit("s", form({"x": rule}), human) == ("accept", {"x": "v77"})
    assert "and 150 more" in human.questions[0]


async def test_a_page_is_shown_whole_with_its_host_and_never_opened() -> None:
    human = Human("yes")
    address = "https://login.example.org/authorize?x=1#y"
    assert await elicit("s", url(address), human) == ("accept", None)
    (question,) = human.questions
    assert f"Address: {address}\nHost:    login.example.org\n" in question
    assert "Handwork does not open it." in question


@pytest.mark.parametrize(("answer", "action"), [("no", "decline"), ("decline", "decline"), ("cancel", "cancel")])
async def test_a_page_can_be_refused(answer: str, action: str) -> None:
    assert await elicit("s", url("https://example.org"), Human(answer)) == (action, None)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        (
            "https://google.com@evil.example/",
            "Host:    evil.example\n         What stands before the @ is not the host.",
        ),
        ("https://аpple.com/", "Host:    xn--pple-43d.com\n         It is written there as аpple.com"),
        ("http://example.org/", "not encrypted"),
        ("https://EXAMPLE.org:8443/", "Host:    example.org"),
        ("https://[2001:DB8::1]/", "Host:    [2001:db8::1]"),
    ],
)
async def test_where_a_page_really_leads_is_stressed(address: str, told: str) -> None:
    human = Human("decline")
    await elicit("s", url(address), human)
    assert told in human.questions[0]


@pytest.mark.parametrize("address", ["http://localhost:3000/x", "http://127.0.0.1/", "http://[::1]/"])
async def test_this_machine_needs_no_encryption(address: str) -> None:
    human = Human("decline")
    await elicit("s", url(address), human)
    assert "not encrypted" not in human.questions[0]


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "HTTPS:evil.example",
        "https:///evil.example",
        "https://evil.example\\@good.example/",
        "https://good.example\t.evil.example/",
        "https://good.example /x",
        "https://good\u202e.example/",
        "https://good\u200b.example/",
        "https://x\x1b[2J.example/",
        "https://example.org:99999/",
        "https://[bad/",
        "https://%65vil.example/",
        "https://a..b/",
        "https://",
        "",
        "x" * 9000,
        None,
        5,
    ],
)
async def test_an_address_that_a_browser_may_read_otherwise_is_declined_unasked(address: Any) -> None:
    assert await elicit("s", url(address), Human()) == ("decline", None)
