from __future__ import annotations

import asyncio
import copy
import functools
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from handwork.errors import ArgumentsError, ToolError
from handwork.schema import Action
from handwork.tool.arguments import prepare
from handwork.tool.base import Tool, ToolContext
from handwork.tool.function import FunctionTool, as_tool, tool


class Color(Enum):
    RED = "red"


class Point(BaseModel):
    x: int
    title: str = "here"


class StrictDay(BaseModel):
    model_config = ConfigDict(strict=True)
    day: date


@dataclass
class Size:
    p0: int


def properties(thing: Any) -> dict[str, Any]:
    found: dict[str, Any] = as_tool(thing).parameters["properties"]
    return found


# ---- the schema


def test_the_signature_is_the_schema_and_the_docstring_the_description() -> None:
    def search(query: str, limit: int = 5, kind: Literal["content", "name"] = "content") -> str:
        """Search in files.

        Args:
            query: what to look for,
                over two lines
            limit (int): how many

        Returns:
            The lines found.
        """
        return query

    made = as_tool(search)
    assert (made.name, made.description) == ("search", "Search in files.\n\nReturns:\n    The lines found.")
    assert made.to_param() == {
        "type": "function",
        "function": {
            "name": "search",
            "description": made.description,
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "what to look for, over two lines"},
                    "limit": {"type": "integer", "default": 5, "description": "how many"},
                    "kind": {"type": "string", "enum": ["content", "name"], "default": "content"},
                },
                "required": ["query"],
                "additionalProperties": False,
            },
        },
    }


def test_annotations_describe_and_bound_parameters() -> None:
    def f(
        a: Annotated[int, Field(description="from Field", ge=1)],
        b: Annotated[int, "from text"],
        c: int = Field(3, description="from the default"),
        d: Annotated[int, Field(alias="from")] = 4,
    ) -> tuple[int, ...]:
        """F.

        Args:
            a: from the docstring
            b: from the docstring
            c: from the docstring
        """
        return a, b, c, d

    assert properties(f) == {
        "a": {"type": "integer", "minimum": 1, "description": "from Field"},
        "b": {"type": "integer", "description": "from text"},
        "c": {"type": "integer", "default": 3, "description": "from the default"},
        "from": {"type": "integer", "default": 4},
    }


async def test_values_become_what_the_annotations_say() -> None:
    async def f(
        path: Path,
        point: Point,
        points: list[Point],
        size: Size,
        color: Color,
        day: date,
        strict: StrictDay,
        maybe: Point | None = None,
        untyped=None,
    ) -> list[Any]:
        return [path, point, points, size, color, day, strict, maybe, untyped]

    raw = (
        '{"path": "/a", "point": {"x": 1}, "points": [{"x": 2}], "size": {"p0": 3}, "color": "red",'
        ' "day": "2026-01-02", "strict": {"day": "2026-01-02"}, "untyped": [1]}'
    )
    made = as_tool(f)
    assert await made.execute(**prepare(made, raw)) == [
        Path("/a"),
        Point(x=1),
        [Point(x=2)],
        Size(3),
        Color.RED,
        date(2026, 1, 2),
        StrictDay(day=date(2026, 1, 2)),
        None,
        [1],
    ]


async def test_names_that_models_reserve_are_ordinary_parameters() -> None:
    async def f(schema: str, copy: int, model_config: str, _hidden: int = 1, json: int = 2, self: int = 3) -> list[Any]:
        return [schema, copy, model_config, _hidden, json, self]

    made = as_tool(f)
    assert list(made.parameters["properties"]) == ["schema", "copy", "model_config", "_hidden", "json", "self"]
    assert await made.execute(schema="s", copy=1, model_config="m", self=9) == ["s", 1, "m", 1, 2, 9]


async def test_further_names_go_into_kwargs() -> None:
    async def f(p0: int, **more: int) -> dict[str, int]:
        return {"p0": p0, **more}

    made = as_tool(f)
    assert made.parameters["additionalProperties"] == {"type": "integer"}
    assert await made.execute(**prepare(made, '{"p0": 1, "p1": 2, "z": 3}')) == {"p0": 1, "p1": 2, "z": 3}
    with pytest.raises(ArgumentsError, match="'z': expected integer"):
        prepare(made, '{"p0": 1, "z": "x"}')


async def test_positional_only_parameters_are_given_by_position() -> None:
    async def f(a: int, b: int = 2, /, *, c: int = 3) -> tuple[int, int, int]:
        return a, b, c

    assert await as_tool(f).execute(a=1, c=9) == (1, 2, 9)


@pytest.mark.parametrize("default", [float("nan"), float("inf"), object(), {1, 2}, Point(x=1), Color.RED, Path("/x")])
async def test_any_default_works_and_the_schema_stays_json(default: Any) -> None:
    import json

    async def f(a: Any = default) -> Any:
        return a

    made = as_tool(f)
    json.dumps(made.parameters, allow_nan=False)
    assert await made.execute() is default or await made.execute() == default


async def test_a_mutable_default_is_not_shared_between_calls() -> None:
    async def f(seen: list[int]) -> list[int]:
        seen.append(1)
        return seen

    f.__defaults__ = ([],)
    made = as_tool(f)
    assert [await made.execute(), await made.execute()] == [[1], [1]]


@pytest.mark.parametrize(
    "docstring",
    [
        "Add.\n\n    Args:\n        a: the first\n        b (int, optional): the second:\n            of two\n",
        "Add.\n\n    Parameters\n    ----------\n    a : int\n        the first\n"
        "    b : int, optional\n        the second:\n        of two\n",
        "Add.\n\n    :param a: the first\n    :type a: int\n    :param int b: the second:\n        of two\n",
    ],
)
def test_three_styles_of_docstrings_are_read(docstring: str) -> None:
    def add(a: int, b: int = 1) -> int:
        return a + b

    add.__doc__ = docstring
    assert as_tool(add).description == "Add."
    assert [rule["description"] for rule in properties(add).values()] == ["the first", "the second: of two"]


def test_no_docstring_is_an_empty_description() -> None:
    assert as_tool(lambda_named).description == ""


def lambda_named(a: int) -> int:
    return a


# ---- what cannot be a tool


def stars(*names: str) -> None: ...


def strange(a: threading.Lock) -> None: ...


def called(a: Literal[1], b: functools.partial[int]) -> None: ...


def generator(a: int) -> Iterator[int]:
    yield a


def unknown(a: int) -> None: ...


unknown.__annotations__["a"] = "NotDefinedAnywhere"


def own_context(context: str) -> None: ...


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (stars, r"\*names must be a list instead"),
        (strange, "JSON Schema"),
        (called, "JSON Schema"),
        (generator, "generator"),
        (unknown, "NotDefinedAnywhere"),
        (own_context, "'context' is the ToolContext"),
        (5, "5 .* is no tool"),
        ("ls", "is no tool"),
        (None, "is no tool"),
        ([stars], "is no tool"),
        (Point, "class Point is no Tool"),
        (int, "class int is no Tool"),
    ],
)
def test_what_cannot_be_a_tool_is_a_type_error_that_says_why(function: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        as_tool(function)


@pytest.mark.parametrize("name", ["", "two words", "ümlaut", "a" * 65, "a.b", "a\n"])
def test_a_name_that_providers_refuse_is_a_value_error(name: str) -> None:
    if name:
        with pytest.raises(ValueError, match="cannot be a tool's name"):
            FunctionTool(lambda_named, name=name)
    with pytest.raises(ValueError, match="cannot be a tool's name"):
        as_tool(lambda a: a)


# ---- the decorator, and what else can be called


def test_a_decorated_function_stays_the_function_that_it_was() -> None:
    @tool
    def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    @tool(name="plus", description="Plus.", actions=[Action(kind="read", resource="numbers")])
    def add_up(a: int, b: int) -> int:
        return a + b

    assert (add(1), add(1, 2), add_up(3, b=4)) == (2, 3, 7)
    assert (as_tool(add).name, as_tool(add).description) == ("add", "Add two numbers.")
    assert (as_tool(add_up).name, as_tool(add_up).description) == ("plus", "Plus.")
    assert as_tool(add_up).actions({}) == [Action(kind="read", resource="numbers")]
    assert FunctionTool(add_up, name="other").name == "other"


def test_the_decorator_refuses_at_once_what_cannot_be_a_tool() -> None:
    with pytest.raises(TypeError, match=r"\*names"):
        tool(stars)
    with pytest.raises(TypeError, match="is no function"):
        tool(Point)


def test_undeclared_actions_are_the_worst_and_declared_ones_see_the_defaults() -> None:
    @tool(actions=lambda arguments: [Action(kind="read", resource=arguments["path"])])
    def read(path: str = "/default") -> str:
        return path

    assert list(as_tool(lambda_named).actions({"a": 1})) == [Action(kind="execute", resource="*")]
    assert as_tool(read).actions({}) == [Action(kind="read", resource="/default")]
    assert as_tool(read).actions({"path": "/x"}) == [Action(kind="read", resource="/x")]


async def test_methods_partials_and_callable_objects_are_tools() -> None:
    class Counter:
        """Counts."""

        def __init__(self) -> None:
            self.count = 0

        @tool(name="count_up")
        async def up(self, by: int) -> int:
            """Count up."""
            self.count += by
            return self.count

        async def __call__(self, by: int) -> int:
            return self.count + by

    counter = Counter()
    up, whole = as_tool(counter.up), as_tool(counter)
    assert (up.name, up.description, list(up.parameters["properties"])) == ("count_up", "Count up.", ["by"])
    assert await up.execute(by=2) == 2
    assert (whole.name, whole.description) == ("Counter", "Counts.")
    assert await whole.execute(by=2) == 4
    partial = as_tool(functools.partial(lambda_named, a=5))
    assert (partial.name, await partial.execute()) == ("lambda_named", 5)


async def test_a_wrapped_function_shows_what_it_wraps() -> None:
    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @logged
    async def add(a: int) -> int:
        return a + 1

    assert properties(add) == {"a": {"type": "integer"}}
    assert await as_tool(add).execute(a=1) == 2


def test_a_tool_stays_and_a_tool_class_is_made_into_one() -> None:
    class Own(Tool):
        name = "own"

        async def execute(self, **kwargs: Any) -> str:
            return "done"

    own = Own()
    assert as_tool(own) is own
    assert isinstance(as_tool(Own), Own)


# ---- running


async def test_sync_functions_run_beside_the_loop_and_together() -> None:
    barrier = threading.Barrier(4, timeout=20)

    def meet(number: int) -> int:
        barrier.wait()
        return number

    made = as_tool(meet)
    assert await asyncio.gather(*(made.execute(number=n) for n in range(4))) == [0, 1, 2, 3]
    assert made.running == 0


async def test_a_cancelled_sync_call_is_left_behind_and_counted() -> None:
    loop, begun, go = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    ended = asyncio.Event()

    def hang() -> None:
        loop.call_soon_threadsafe(begun.set)
        go.wait(30)
        loop.call_soon_threadsafe(ended.set)

    made = FunctionTool(hang)
    call = asyncio.create_task(made.execute())
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert made.running == 1
    assert copy.deepcopy(made).running == 0
    go.set()
    await asyncio.wait_for(ended.wait(), 20)


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_tool_that_exits_does_not_end_the_program(is_async: bool) -> None:
    def leave() -> None:
        raise SystemExit(3)

    async def leave_async() -> None:
        raise SystemExit(3)

    with pytest.raises(ToolError, match="SystemExit"):
        await as_tool(leave_async if is_async else leave).execute()


async def test_the_context_is_given_and_is_no_part_of_the_schema() -> None:
    async def look(a: int, context: ToolContext) -> Any:
        return a, context

    async def look_maybe(context: ToolContext | None = None) -> Any:
        return context

    made = as_tool(look)
    assert made.wants_context
    assert list(made.parameters["properties"]) == ["a"]
    assert await made.execute(a=1, context="the context") == (1, "the context")
    assert await as_tool(look_maybe).execute() is None
    assert not as_tool(lambda_named).wants_context
    with pytest.raises(ArgumentsError, match="unknown parameter 'context'"):
        prepare(made, '{"a": 1, "context": 2}')


async def test_direct_calls_with_misfits_raise_an_arguments_error() -> None:
    with pytest.raises(ArgumentsError, match=r"'a': .*valid integer.*given string \"x\"") as caught:
        await as_tool(lambda_named).execute(a="x")
    assert caught.value.kind == "schema"
    with pytest.raises(ArgumentsError, match="'a': Field required"):
        await as_tool(lambda_named).execute()


async def test_a_copy_is_another_tool_over_the_same_function() -> None:
    made = FunctionTool(lambda_named)
    other = copy.deepcopy(made)
    assert other is not made
    assert other.function is made.function
    assert await other.execute(a=3) == 3
