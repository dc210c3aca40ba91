"""A tool's fields: class attributes are the defaults, the constructor takes the same names, nothing is shared (CONTRACT A1)."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import pytest

from handwork.schema.fields import construct, fields_of
from handwork.tool.base import BaseTool, Tool
from handwork.tool.collection import ToolCollection
from handwork.tool.create_chat_completion import CreateChatCompletion
from handwork.tool.function import FunctionTool


class Counting(Tool):
    name = "counting"
    count = 3
    seen = []  # type of a user who annotates nothing
    limit: int = 5
    shared: ClassVar[list[int]] = []
    secret: str

    async def execute(self, **kwargs: Any) -> Any:
        return self.count

    @property
    def fixed(self) -> int:
        return 1


def test_every_class_attribute_is_a_field_annotated_or_not() -> None:
    tool = Counting(count=5, limit=7, seen=["a"], name="other", secret="s")
    assert (tool.count, tool.limit, tool.seen, tool.name, tool.secret) == (5, 7, ["a"], "other", "s")
    assert (Counting.count, Counting.name) == (3, "counting")
    assert fields_of(Counting) == {"name", "description", "parameters", "sandboxed", "count", "seen", "limit", "secret"}


def test_two_tools_share_no_mutable_default() -> None:
    one, two = Counting(), Counting()
    one.seen.append("x")
    assert (two.seen, Counting.seen) == ([], [])
    assert one.parameters is not two.parameters


@pytest.mark.parametrize("name", ["cuont", "execute", "fixed", "shared", "_private", "wants_context", "actions"])
def test_what_is_no_field_is_refused_by_name(name: str) -> None:
    with pytest.raises(TypeError, match=f"Counting\\(\\) has no field '{name}'"):
        Counting(**{name: 1})


def test_a_misspelt_field_is_answered_with_the_nearest() -> None:
    with pytest.raises(TypeError, match="did you mean 'count'"):
        Counting(cuont=1)


def test_containers_are_copied_all_the_way_down_and_everything_else_is_shared() -> None:
    lock = threading.Lock()

    class Deep(Counting):
        tree = {"a": [{"b": [1]}], "lock": [lock], "pair": ([1], 2)}
        table: Any = defaultdict(list, x=[1])
        queue = deque([[1]])
        data = bytearray(b"a")
        words = {"w"}
        lock_itself = lock

    class Twice(Counting):
        first = second = [1]

    one, two = Deep(), Deep()
    assert one.tree == two.tree
    assert one.tree["a"][0]["b"] is not two.tree["a"][0]["b"]
    assert one.tree["pair"][0] is not two.tree["pair"][0]
    assert one.tree["lock"][0] is one.lock_itself is lock
    assert one.table["new"] == []
    assert one.table["x"] is not two.table["x"]
    assert one.queue[0] is not two.queue[0]
    assert one.data is not two.data
    assert one.words is not two.words
    assert Twice().first is not Twice.first
    alone = Twice()
    assert alone.first is alone.second


def test_a_list_that_holds_itself_is_copied_once() -> None:
    class Round:
        loop: Any = []

    Round.loop.append(Round.loop)
    made = Round()
    construct(made, {})
    assert made.loop is not Round.loop
    assert made.loop[0] is made.loop


def test_an_object_that_knows_how_is_asked_for_a_fresh_one() -> None:
    class Owner:
        tools = ToolCollection(Counting)
        more = [Counting()]
        kind = Counting

    one, two = Owner(), Owner()
    construct(one, {})
    construct(two, {})
    assert one.tools is not two.tools
    assert one.tools.get_tool("counting") is not two.tools.get_tool("counting")
    assert one.more[0] is not two.more[0]
    assert one.kind is Counting


def test_a_method_or_descriptor_is_no_field_even_where_a_subclass_replaced_it() -> None:
    class Replaced(Counting):
        execute = staticmethod(lambda **kwargs: None)
        later: Callable[[], int] = len
        made = cached_property(lambda self: 1)

    assert "later" in fields_of(Replaced)
    assert not {"execute", "made"} & fields_of(Replaced)


def test_a_field_that_became_a_property_cannot_be_given() -> None:
    class Described(Counting):
        @property
        def description(self) -> str:
            return "by code"

    assert Described().description == "by code"
    with pytest.raises(TypeError, match="no field 'description'"):
        Described(description="x")


def test_a_tool_with_a_constructor_of_its_own_that_calls_no_other_works() -> None:
    class Old(BaseTool):
        name = "old"
        description = "as written for OpenManus"

        def __init__(self, size: int) -> None:
            self.size = size

        async def execute(self, **kwargs: Any) -> Any:
            return self.size

    tools = ToolCollection(Old(4))
    assert tools.to_params()[0]["function"]["name"] == "old"
    assert tools.copy().get_tool("old").size == 4


def test_a_function_tool_takes_the_fields_of_a_tool_too() -> None:
    def work(context: Any) -> str:
        """Work."""
        return "done"

    made = FunctionTool(work, sandboxed=True, name="other")
    assert (made.sandboxed, made.name, made.description) == (True, "other", "Work.")
    with pytest.raises(TypeError, match="did you mean 'sandboxed'"):
        FunctionTool(work, sandboxd=True)


def test_the_type_of_an_answer_can_be_a_class_attribute() -> None:
    class Numbers(CreateChatCompletion):
        response_type = list[int]

    assert Numbers().parameters["properties"]["response"]["type"] == "array"
    assert Numbers(response_type=int).parameters["properties"]["response"]["type"] == "integer"
    assert CreateChatCompletion(None).parameters["properties"]["response"]["type"] == "null"
    with pytest.raises(TypeError, match="no field 'reponse_type'"):
        CreateChatCompletion(reponse_type=int)
