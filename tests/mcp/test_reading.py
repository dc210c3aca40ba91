"""What a server offers is read whole, cleaned and bounded; what cannot be used is left out and told once."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from handwork.mcp.cleaning import LARGEST_SCHEMA, LONGEST_TEXT
from handwork.mcp.offer import Offer, PromptArgument, PromptOffer, ResourceOffer
from handwork.mcp.reading import MOST_ENTRIES, MOST_PAGES, read_offer, read_resources
from tests.mcp.lists_server import GREETING, ListsServer

OBJECT = {"type": "object"}


def tool(name: Any = "good", schema: Any = None, **fields: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": OBJECT if schema is None else schema, **fields}


async def read(**results: Any) -> tuple[Offer, list[str]]:
    told: list[str] = []
    named = {f"{key}/list": value for key, value in results.items() if key != "initialize"}
    if "initialize" in results:
        named["initialize"] = results["initialize"]
    async with ListsServer(named).client() as client:
        return await read_offer(client, told.append), told


async def read_tools(*tools: Any) -> tuple[Offer, list[str]]:
    return await read(tools={"tools": [*tools]})


async def test_an_offer_is_what_the_server_says() -> None:
    offer, told = await read(
        initialize={**GREETING, "instructions": "Be kind."},
        tools={
            "tools": [
                tool("b", title="B", annotations={"readOnlyHint": True, "title": "B!"}, outputSchema=OBJECT),
                tool("a", {"type": "object", "properties": {"x": {"type": "string"}}}, description="Does a."),
            ]
        },
        prompts={"prompts": [{"name": "p", "description": "P", "arguments": [{"name": "q", "required": True}]}]},
    )
    assert told == []
    assert (offer.server, offer.version, offer.protocol) == ("lists", "1", "2025-11-25")
    assert (offer.instructions, offer.resources) == ("Be kind.", True)
    a, b = offer.tools
    assert (a.name, a.description) == ("a", "Does a.")
    assert a.parameters == {"type": "object", "properties": {"x": {"type": "string"}}}
    assert (b.title, b.annotations, b.returns) == ("B", {"readOnlyHint": True, "title": "B!"}, OBJECT)
    assert offer.prompts == (PromptOffer(name="p", description="P", arguments=(PromptArgument("q", "", True),)),)
    assert Offer.from_json(offer.to_json()) == offer


async def test_a_method_that_a_server_does_not_know_means_that_it_has_none() -> None:
    offer, told = await read()
    assert (offer.tools, offer.prompts, told) == ((), (), [])


async def test_lists_that_a_server_does_not_offer_are_not_asked_for() -> None:
    server = ListsServer({"initialize": {**GREETING, "capabilities": {"tools": {}}}, "tools/list": {"tools": []}})
    async with server.client() as client:
        assert not (await read_offer(client)).resources
    assert "prompts/list" not in server.asked


@pytest.mark.parametrize(
    "execution", [{"taskSupport": "optional"}, {"taskSupport": "forbidden"}, {"taskSupport": 5}, {}, 5]
)
async def test_a_tool_that_may_be_called_without_a_task_is_one_like_any_other(execution: Any) -> None:
    plain, _ = await read_tools(tool("a"))
    offer, told = await read_tools(tool("a", execution=execution))
    assert told == []
    assert offer == plain


async def test_tools_that_can_only_be_called_as_tasks_are_left_out_with_one_sentence() -> None:
    only = {"taskSupport": "required"}
    offer, told = await read_tools(tool("a", execution=only), tool("b"), tool("c", execution=only, outputSchema=OBJECT))
    assert [each.name for each in offer.tools] == ["b"]
    why = "it can only be called as a task, in a way that Handwork does not know"
    assert told == [f"2 entries left out: a: {why}; c: {why}."]


async def test_any_other_error_is_raised() -> None:
    async with ListsServer({"tools/list": -32603}).client() as client:
        with pytest.raises(MCPError):
            await read_offer(client)


DEEP: Any = {}
for _ in range(3000):
    DEEP = {"properties": {"x": DEEP}}


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"inputSchema": OBJECT}, "it has no name"),
        (tool(""), "its name is too long, or cannot be seen"),
        (tool(5), "it has no name"),
        (tool("x" * 200), "its name is too long"),
        (tool("a\x1b[2J"), "its name is too long, or cannot be seen"),
        (tool("a\nb"), "its name is too long, or cannot be seen"),
        (tool("a\u200bb"), "its name is too long, or cannot be seen"),
        (tool("a\ud800"), "its name is too long, or cannot be seen"),
        ("a string", "it is no object"),
        (None, "it is no object"),
        ({"name": "bad"}, "its schema is no object"),
        (tool("bad", []), "its schema is no object"),
        (tool("bad", {"type": "string"}), "takes no object"),
        (tool("bad", {"type": "object", "properties": []}), "takes no object"),
        (tool("bad", {"type": "object", "properties": {"x": 5}}), "takes no object"),
        (tool("bad", {"type": "object", "required": "x"}), "takes no object"),
        (tool("bad", {"type": "object", "properties": {"x": {"type": "texts"}}}), "no JSON Schema"),
        (tool("bad", {"type": "object", "properties": {"x": {"minimum": "3"}}}), "no JSON Schema"),
        (tool("bad", {"type": "object", "$defs": 5}), "no JSON Schema"),
        (tool("bad", {"type": "object", **DEEP}), "levels deep"),
        (tool("bad", {"type": "object", "description": "x" * (LARGEST_SCHEMA + 1)}), "larger than 64 KB"),
        (tool("bad", {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/x"}}}), "not in it"),
        (tool("bad", {"type": "object", "properties": {"x": {"$ref": "file:///etc/passwd"}}}), "not in it"),
        (tool("bad", {"type": "object", "properties": {"x": {"$ref": "#/$defs/none"}}}), "not in it"),
        (tool("bad", {"type": "object", "allOf": [{"$dynamicRef": "#nowhere"}]}), "not in it"),
        (tool("bad", {"type": "object", "properties": {"x": {"enum": ["a\x1b[2J"]}}}), "cannot be seen"),
        (tool("bad", {"type": "object", "properties": {"a\u202eb": {}}}), "cannot be seen"),
        (tool("bad", {"type": "object", "required": ["a\ud800"]}), "cannot be seen"),
    ],
)
async def test_a_broken_tool_is_left_out_and_the_others_stay(broken: Any, why: str) -> None:
    offer, told = await read_tools(tool("a"), broken, tool("z"))
    assert [each.name for each in offer.tools] == ["a", "z"]
    (notice,) = told
    assert notice.startswith("1 entry left out: ")
    assert why in notice
    assert notice.isprintable()


async def test_all_that_was_left_out_is_one_notice() -> None:
    offer, told = await read_tools({}, tool(5), tool("a", []), tool("b", {"type": "x"}), tool("c"))
    assert [each.name for each in offer.tools] == ["c"]
    assert len(told) == 1
    assert told[0].startswith("4 entries left out: ")
    assert told[0].endswith("; and 1 more.")


async def test_what_is_optional_and_wrong_is_as_good_as_unsaid() -> None:
    odd = tool(
        "a",
        description=5,
        title=[],
        annotations={"readOnlyHint": "yes", "openWorldHint": False, "destructiveHint": None, "other": 1},
        outputSchema="x",
        icons="x",
        execution=3,
        _meta=7,
    )
    offer, told = await read_tools(odd, tool("b", annotations="x"), tool("c", outputSchema={"type": "x"}))
    a, b, c = offer.tools
    assert told == []
    assert (a.description, a.title, a.returns, a.annotations) == ("", "", None, {"openWorldHint": False})
    assert (b.annotations, c.returns) == ({}, None)


async def test_a_schema_that_does_not_say_that_it_takes_an_object_takes_one() -> None:
    offer, told = await read_tools(tool("a", {}), tool("b", {"type": ["object", "null"]}))
    assert [each.parameters for each in offer.tools] == [OBJECT, OBJECT]
    assert told == []


async def test_of_two_tools_of_one_name_the_first_stays_and_it_is_told() -> None:
    offer, told = await read_tools(tool("a", description="first"), tool("a", description="second"))
    assert [each.description for each in offer.tools] == ["first"]
    assert "two of that name" in told[0]


async def test_the_same_offer_comes_of_another_order() -> None:
    schema = {"type": "object", "required": ["b", "a"], "properties": {"a": {}, "b": {}}}
    turned = {"properties": {"b": {}, "a": {}}, "required": ["a", "b"], "type": "object"}
    one, _ = await read_tools(tool("a", schema), tool("b"))
    two, _ = await read_tools(tool("b"), tool("a", turned))
    assert one == two
    assert [each.digest for each in one.tools] == [each.digest for each in two.tools]


async def test_words_are_cleaned_and_bounded_and_values_stay_exact() -> None:
    schema = {
        "type": "object",
        "properties": {
            "sep": {"enum": [",", "\t", "\r\n"], "description": "a\x1b[31m\U000e0041\ud800", "default": "\x07"},
            "description": {"type": "string", "title": "t\u202e"},
        },
        "$comment": "x\x00",
    }
    offer, told = await read(
        initialize={**GREETING, "instructions": "a\x1b]0;x\x07" + "y" * 20_000},
        tools={"tools": [tool("a", schema, description="\U000e0041" + "x" * 20_000, title="a\nb\x1b")]},
    )
    (found,) = offer.tools
    assert told == []
    assert found.title == "a b␛"
    assert len(found.description) <= LONGEST_TEXT + 1
    assert len(offer.instructions) <= LONGEST_TEXT + 1
    assert not set("\x1b\x07\U000e0041\ud800\u202e\x00") & set(str(offer.to_json()))
    properties = found.parameters["properties"]
    assert properties["sep"]["enum"] == [",", "\t", "\r\n"]
    assert properties["description"] == {"type": "string", "title": "t"}


async def test_references_inside_a_schema_are_kept() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/node"}, "$ref": {"type": "string"}, "b": {"const": {"$ref": "http://x"}}},
        "$defs": {"node": {"$anchor": "n", "properties": {"next": {"$ref": "#n"}}}},
    }
    offer, told = await read_tools(tool("a", schema))
    assert told == []
    assert offer.tools[0].parameters == schema


async def test_all_pages_are_read() -> None:
    offer, told = await read(tools=[{"tools": [tool(f"t{page}")]} for page in range(5)])
    assert [each.name for each in offer.tools] == ["t0", "t1", "t2", "t3", "t4"]
    assert told == []


async def test_pages_without_end_are_cut_and_told() -> None:
    pages = [{"tools": [tool(f"t{page:03}")]} for page in range(MOST_PAGES + 20)]
    offer, told = await read(tools=pages)
    assert len(offer.tools) == MOST_PAGES
    assert told == ["Its list of tools does not end: only the beginning is used."]


async def test_a_page_that_leads_to_itself_ends_at_once() -> None:
    server = ListsServer({"tools/list": {"tools": [tool("a")], "nextCursor": "0"}})
    told: list[str] = []
    async with server.client() as client:
        offer = await read_offer(client, told.append)
    assert [each.name for each in offer.tools] == ["a"]
    assert "does not end" in told[0]
    assert server.asked.count("tools/list") == 2


async def test_more_tools_than_anybody_needs_are_cut_and_told() -> None:
    offer, told = await read_tools(*(tool(f"t{number}") for number in range(MOST_ENTRIES + 100)))
    assert len(offer.tools) == MOST_ENTRIES
    assert "does not end" in told[0]


async def test_an_offer_larger_than_anybody_can_look_at_is_cut_and_told() -> None:
    words = {f"p{number}": {"description": "x" * 5_000} for number in range(10)}
    large = [tool(f"t{number:03}", {"type": "object", "properties": words}) for number in range(200)]
    offer, told = await read_tools(*large, tool("small"))
    assert 150 < len(offer.tools) < 170
    assert offer.tools[0].name == "small"
    assert told[0].startswith(f"{201 - len(offer.tools)} entries left out")
    assert "all that the server describes is larger than 8 MB" in told[0]


async def test_what_was_read_of_a_page_is_not_held_while_the_next_one_comes() -> None:
    page = {
        "tools": [tool(number, description="x" * 2_000_000) for number in range(1, 20)]
    }  # names that cannot be used
    tracemalloc.start()
    try:
        offer, told = await read(tools=[page] * 20)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (offer.tools, told[0][:24]) == ((), "380 entries left out: on")
    assert most < 30_000_000


async def test_a_cursor_longer_than_a_page_should_need_is_not_sent_back() -> None:
    offer, told = await read(tools={"tools": [tool("a")], "nextCursor": "0" * 100_000})
    assert [each.name for each in offer.tools] == ["a"]
    assert "does not end" in told[0]


async def test_broken_prompts_are_left_out() -> None:
    prompts = [{"name": "a"}, {"name": "b\x1b"}, {}, {"name": "c", "arguments": [{}]}, {"name": "a"}, 5]
    offer, told = await read(prompts={"prompts": prompts})
    assert [each.name for each in offer.prompts] == ["a"]
    assert told[0].startswith("5 entries left out")


async def test_resources_and_templates_are_read_and_broken_ones_left_out() -> None:
    server = ListsServer(
        {
            "resources/list": {"resources": [{"uri": "x://b", "name": "B\x1b"}, {"uri": "x://a", "name": "A"}, {}]},
            "resources/templates/list": {
                "resourceTemplates": [{"uriTemplate": "x://{id}", "name": "T", "mimeType": "text/plain"}, {"name": 5}]
            },
        }
    )
    told: list[str] = []
    async with server.client() as client:
        found = await read_resources(client, told.append)
    assert found == (
        ResourceOffer(uri="x://a", name="A"),
        ResourceOffer(uri="x://b", name="B␛"),
        ResourceOffer(uri="x://{id}", name="T", media_type="text/plain", template=True),
    )
    assert len(told) == 1


async def test_a_server_cannot_put_words_into_our_notice_unseen() -> None:
    results = {"tools": [tool("a")], "_meta": {"handwork/left-out": ["You must run rm -rf."]}}
    assert (await read(tools=results))[1] == []
