from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from handwork.errors import ToolError
from handwork.schema import ToolResult
from handwork.tool.base import Tool, ToolContext
from handwork.tool.collection import ToolCollection
from handwork.tool.terminate import Terminate


class Echo(Tool):
    name = "echo"
    description = "Say it again."
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.said: list[str] = []

    async def execute(self, text: str) -> str:
        self.said.append(text)
        return text


class Rude(Tool):
    name = "rude"

    async def execute(self, **kwargs: Any) -> str:
        raise ToolError("no")


class Curious(Tool):
    name = "curious"

    async def execute(self, context: ToolContext) -> str:
        return str(context)


def double(n: int) -> int:
    """Twice as much."""
    return 2 * n


def test_tools_classes_and_functions_are_taken_and_kept_in_order() -> None:
    echo = Echo()
    tools = ToolCollection(echo, Terminate, double)
    assert [tool.name for tool in tools] == ["echo", "terminate", "double"]
    assert len(tools) == 3
    assert tools.tools[0] is echo is tools.tool_map["echo"] is tools.get_tool("echo")
    assert "echo" in tools
    assert echo in tools
    assert Echo() not in tools
    assert tools.get_tool("none") is None
    assert repr(tools) == "ToolCollection(echo, terminate, double)"


def test_params_are_sorted_by_name_whatever_the_order_of_adding() -> None:
    one = ToolCollection(Echo(), Terminate(), double).to_params()
    other = ToolCollection(double, Terminate(), Echo()).to_params()
    assert [param["function"]["name"] for param in one] == ["double", "echo", "terminate"]
    assert json.dumps(one) == json.dumps(other)


def test_params_are_the_same_object_until_something_changes() -> None:
    tools = ToolCollection(Echo(), double)
    first = tools.to_params()
    assert tools.to_params() is first
    tools.add_tool(Terminate)
    assert len(tools.to_params()) == 3
    assert len(first) == 2
    tools.remove_tool("terminate")
    assert tools.to_params() == first
    before = tools.to_params()
    tools.tool_map["echo"].description = "Say it twice."
    assert tools.to_params() is not before
    assert tools.to_params()[1]["function"]["description"] == "Say it twice."
    tools.remove_tool("echo")
    tools.add_tool(Echo())
    assert tools.to_params()[1]["function"]["description"] == "Say it again."


def test_two_tools_of_one_name_are_refused_at_construction_and_later() -> None:
    with pytest.raises(ValueError, match="Two tools are named 'echo'"):
        ToolCollection(Echo(), Echo())
    tools = ToolCollection(Echo())
    with pytest.raises(ValueError, match="Two tools are named 'echo'"):
        tools.add_tools(Terminate, Echo)
    assert len(tools) == 1  # all or none


@pytest.mark.parametrize("name", ["", "two words", "ü", "a" * 65, "a\n"])
def test_a_name_that_providers_refuse_is_refused(name: str) -> None:
    tool = Echo()
    tool.name = name
    with pytest.raises(ValueError, match="cannot be a tool's name"):
        ToolCollection(tool)
    assert ToolCollection(Echo(name="a-Z_9" + "x" * 59)).tools


@pytest.mark.parametrize("thing", ["bash", None, 5, [Echo()], {}])
def test_what_is_no_tool_is_refused(thing: Any) -> None:
    with pytest.raises(TypeError, match="is no tool"):
        ToolCollection(thing)


def test_removing_gives_the_tool_back() -> None:
    echo = Echo()
    tools = ToolCollection(echo)
    assert tools.remove_tool("echo") is echo
    assert len(tools) == 0
    with pytest.raises(KeyError):
        tools.remove_tool("echo")


def test_the_map_cannot_be_changed_from_outside() -> None:
    with pytest.raises(TypeError):
        ToolCollection().tool_map["x"] = Echo()


def test_near_names_are_found_in_any_case() -> None:
    tools = ToolCollection(Echo(), Terminate)
    assert tools.nearest("Terminat") == ["terminate"]
    assert tools.nearest("ECHO") == ["echo"]
    assert tools.nearest("zzz") == []


async def test_execute_runs_the_tool_and_makes_a_result_of_what_it_returns() -> None:
    tools = ToolCollection(Echo(), double, Rude, Curious)
    assert await tools.execute("echo", {"text": "a"}) == ToolResult(output="a")
    assert await tools.execute("double", {"n": 2}) == ToolResult(output="4")
    assert await tools.execute(name="double", tool_input={"n": 0}) == ToolResult(output="0")


async def test_execute_gives_the_models_faults_back_as_errors() -> None:
    tools = ToolCollection(Echo(), double, Rude, Curious)
    assert (await tools.execute("none", {})).error == "Tool none is invalid"
    assert (await tools.execute("rude")).error == "no"
    assert (await tools.execute("double", {"n": "x"})).error == "'n': expected integer, given string \"x\""
    assert (
        await tools.execute("echo", {"text": "a", "more": 1})
    ).error == "unknown parameter 'more' (expected only 'text')"
    assert (await tools.execute("curious")).error == "curious needs a ToolContext, as an agent's run gives it"


async def test_execute_passes_the_context_on_and_lets_other_errors_out() -> None:
    def fail() -> None:
        raise ZeroDivisionError("by zero")

    tools = ToolCollection(Curious, fail)
    assert str(await tools.execute("curious", context="the context")) == "the context"
    with pytest.raises(ZeroDivisionError):
        await tools.execute("fail")


async def test_a_copy_shares_no_tool_and_no_state() -> None:
    first = ToolCollection(Echo(description="mine"), double)
    second = first.copy()
    second.add_tool(Terminate)
    await second.execute("echo", {"text": "a"})
    echo, copied = first.tool_map["echo"], second.tool_map["echo"]
    assert isinstance(echo, Echo)
    assert isinstance(copied, Echo)
    assert (echo.said, copied.said, copied.description) == ([], ["a"], "mine")
    assert len(first) == 2


def test_what_two_tools_share_they_share_in_the_copy() -> None:
    one, two = Echo(), Echo(name="echo2")
    two.said = one.said
    a, b = ToolCollection(one, two).copy().tools
    assert isinstance(a, Echo)
    assert isinstance(b, Echo)
    assert a.said is b.said is not one.said


def test_a_tool_that_cannot_be_copied_is_a_clear_type_error() -> None:
    tool = Echo()
    tool.lock = threading.Lock()
    with pytest.raises(TypeError, match=r"'echo' cannot be copied .*constructor"):
        ToolCollection(tool).copy()
