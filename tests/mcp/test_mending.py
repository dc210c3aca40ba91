"""One bad entry of what a server sends does not cost the whole message."""

from __future__ import annotations

from typing import Any

import pytest

from handwork.mcp.answers import answer_of, messages_of
from handwork.mcp.content import Text
from handwork.mcp.mending import mend
from tests.mcp.lists_server import ListsServer


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"type": "hologram", "data": "x"}, "[a part of an unknown kind (hologram) is left out]"),
        ({"type": "ho\x1b[2Jlo\n"}, "[a part of an unknown kind (ho␛[2Jlo) is left out]"),
        ({"type": 5}, "[a part of an unknown kind is left out]"),
        ("text", "[a part of an unknown kind is left out]"),
        (None, "[a part of an unknown kind is left out]"),
        ({"type": "text"}, "[a broken part of kind text is left out]"),
        ({"type": "text", "text": ["a"]}, "[a broken part of kind text is left out]"),
        ({"type": "image", "data": "x"}, "[a broken part of kind image is left out]"),
        ({"type": "audio", "data": 5, "mimeType": "a/b"}, "[a broken part of kind audio is left out]"),
        ({"type": "resource_link", "uri": "x://a"}, "[a broken part of kind resource_link is left out]"),
        ({"type": "resource"}, "[a broken part of kind resource is left out]"),
        ({"type": "resource", "resource": {"uri": "x://a"}}, "[a broken part of kind resource is left out]"),
    ],
)
async def test_a_part_that_cannot_be_read_is_told_beside_the_others(part: Any, words: str) -> None:
    server = ListsServer(
        {
            "tools/list": {"tools": []},
            "tools/call": {"content": [{"type": "text", "text": "a"}, part, {"type": "text", "text": "b"}]},
        }
    )
    async with server.client() as client:
        answer = answer_of(await client.call_tool("x", {}))
    assert answer.parts == (Text("a"), Text(words), Text("b"))


async def test_a_prompt_with_a_strange_message_is_still_a_prompt() -> None:
    messages = [{"role": "system", "content": {"type": "text", "text": "a"}}, {"role": "assistant"}, 5]
    async with ListsServer({"prompts/get": {"messages": messages}}).client() as client:
        found = messages_of(await client.get_prompt("x"))
    assert [(message.role, message.part) for message in found] == [
        ("user", Text("a")),
        ("assistant", Text("[a part of an unknown kind is left out]")),
    ]


def test_what_is_in_order_is_passed_on_as_it_is() -> None:
    for result in ({}, {"contents": [{"uri": "x", "text": "y"}]}, {"tools": 5}, {"content": "x"}):
        assert mend(result) is result


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "required": ["other"]},
        {"type": "object", "properties": {"x": {"pattern": "^(a+)+$"}}},
        {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/"}}},
        {"type": "object", "properties": {"x": {"type": "no type"}}},
    ],
)
async def test_a_result_that_does_not_fit_its_own_schema_is_still_a_result(schema: dict[str, Any]) -> None:
    """The effect has happened: what came of it is not thrown away, and no pattern of a server's is run on it."""
    told = {"name": "x", "inputSchema": {"type": "object"}, "outputSchema": schema}
    result = {"content": [{"type": "text", "text": "done"}], "structuredContent": {"x": "a" * 40 + "!"}}
    async with ListsServer({"tools/list": {"tools": [told]}, "tools/call": result}).client() as client:
        answer = answer_of(await client.call_tool("x", {}))
    assert answer.parts == (Text("done"),)
    assert answer.structured == {"x": "a" * 40 + "!"}
