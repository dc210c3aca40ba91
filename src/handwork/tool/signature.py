"""From a function's signature to a JSON Schema, and from JSON arguments to the values that the signature asks for."""

from __future__ import annotations

import functools
import inspect
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import PydanticSerializationError, SchemaError, to_json, to_jsonable_python

from handwork.errors import ArgumentsError
from handwork.schema import JSON
from handwork.tool.base import ToolContext
from handwork.tool.wording import given, spot

_EMPTY = inspect.Parameter.empty
_SHOWN = 3
_NO_SCHEMA = (PydanticUserError, PydanticUndefinedAnnotation, SchemaError, TypeError, NameError)


class Arguments:
    """A function's parameters: `schema` is what the model reads, `convert` makes the values.

    The `context` parameter is left out; it is ours. Raises TypeError for a signature that no JSON object can call.
    """

    def __init__(self, function: Callable[..., Any], descriptions: Mapping[str, str]) -> None:
        parameters = dict(inspect.signature(function).parameters)
        self._namespace: dict[str, Any] = getattr(_plain(function), "__globals__", {})
        self.takes_context = "context" in parameters
        if self.takes_context:
            self._check_context(parameters.pop("context"))
        self._names: list[tuple[str, str]] = []
        self._positional: list[str] = []
        self._model = self._build(parameters, descriptions)
        self.schema: dict[str, JSON] = _schema_of(self._model)
        self.defaults = {name: rule["default"] for name, rule in self.schema["properties"].items() if "default" in rule}

    def convert(self, arguments: Mapping[str, JSON]) -> tuple[list[Any], dict[str, Any]]:
        """The positional and keyword arguments of the call; ArgumentsError names what does not fit."""
        validator = self._model.__pydantic_validator__
        try:
            made = validator.validate_python(arguments)
        except ValidationError as error:
            try:  # strict types take a date or an enum from JSON, not from a string
                made = validator.validate_json(to_json(arguments))
            except (ValidationError, ValueError):
                raise ArgumentsError("schema", problems_of(error)) from None
        values = made.__dict__
        named = {name: values[field] for field, name in self._names}
        if made.__pydantic_extra__:
            named.update(made.__pydantic_extra__)
        return [named.pop(name) for name in self._positional], named

    def _build(self, parameters: Mapping[str, inspect.Parameter], descriptions: Mapping[str, str]) -> type[BaseModel]:
        fields: dict[str, Any] = {}
        further: list[Any] = []
        for index, (name, parameter) in enumerate(parameters.items()):
            hint = self._hint(parameter)
            if parameter.kind is parameter.VAR_KEYWORD:
                further.append(hint)
                continue
            if parameter.kind is parameter.POSITIONAL_ONLY:
                self._positional.append(name)
            field = f"p{index}"  # names of parameters may be no names for a model's fields (copy, schema, _x)
            self._names.append((field, name))
            fields[field] = (_annotated(hint, name, descriptions.get(name)), _default(parameter.default))
        try:
            return create_model("Arguments", __base__=_base(further), __module__=__name__, **fields)
        except _NO_SCHEMA as error:
            raise TypeError(f"its parameters have no JSON Schema: {_first_line(error)}") from error

    def _hint(self, parameter: inspect.Parameter) -> Any:
        annotation = Any if parameter.annotation is _EMPTY else parameter.annotation
        holder = types.SimpleNamespace(__annotations__={"it": annotation})
        try:
            return typing.get_type_hints(holder, globalns=self._namespace, include_extras=True)["it"]
        except NameError as error:
            raise TypeError(
                f"the type of {parameter.name!r} is not known here ({error}); define it at the top of its module"
            ) from error

    def _check_context(self, parameter: inspect.Parameter) -> None:
        try:
            hint = self._hint(parameter)
        except TypeError:
            return  # written as text and imported for type checkers only
        if hint is Any or hint is object or hint is ToolContext or ToolContext in typing.get_args(hint):
            return
        raise TypeError(f"the parameter 'context' is the ToolContext, not {hint!r}; give the parameter another name")


def _base(further: Sequence[Any]) -> type[BaseModel]:
    """What the model derives from: closed, or open for any further name with values of a type (`**kwargs`)."""
    body: dict[str, Any] = {"__module__": __name__, "__annotations__": {}}
    if further:
        body["__annotations__"] = {"__pydantic_extra__": types.GenericAlias(dict, (str, further[0]))}
    extra: Literal["allow", "forbid"] = "allow" if further else "forbid"
    body["model_config"] = ConfigDict(extra=extra)
    return types.new_class("Base", (BaseModel,), exec_body=lambda names: names.update(body))


def _annotated(hint: Any, name: str, description: str | None) -> Any:
    """The type under its name with a description: the docstring's, unless Annotated holds a bare string or a Field's."""
    inner, notes = hint, []
    if typing.get_origin(hint) is Annotated:
        inner, *notes = typing.get_args(hint)
        description = next((note for note in notes if isinstance(note, str)), description)
    first = Field(alias=name, description=description) if description else Field(alias=name)
    return functools.reduce(lambda made, note: Annotated[made, note], [first, *notes], inner)


def _default(default: Any) -> Any:
    """What the model's field gets: a default that JSON cannot say is made by a factory, which no schema shows."""
    if default is _EMPTY:
        return ...
    if isinstance(default, FieldInfo):
        return default
    try:
        json.dumps(to_jsonable_python(default), allow_nan=False)
    except (PydanticSerializationError, ValueError):
        return Field(default_factory=lambda: default)
    return default


class _Generator(GenerateJsonSchema):
    """Without titles, which repeat the names and cost tokens."""

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """A default that JSON cannot say is left out, without a word."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _schema_of(model: type[BaseModel]) -> dict[str, JSON]:
    try:
        schema = model.model_json_schema(schema_generator=_Generator)
    except _NO_SCHEMA as error:
        raise TypeError(f"its parameters have no JSON Schema: {_first_line(error)}") from error
    return {"type": "object", "properties": {}, **_without_titles(schema)}


def _without_titles(schema: dict[str, JSON]) -> dict[str, JSON]:
    for part in (schema, *schema.get("$defs", {}).values()):
        part.pop("title", None)
    return schema


def json_schema_of(kind: Any) -> dict[str, JSON]:
    """The JSON Schema of a Python type, without titles; TypeError if it has none."""
    try:
        schema = TypeAdapter(kind).json_schema(schema_generator=_Generator)
    except _NO_SCHEMA as error:
        raise TypeError(f"{kind!r} has no JSON Schema: {_first_line(error)}") from error
    return _without_titles(schema)


def problems_of(error: ValidationError, *path: str) -> str:
    """At most three of pydantic's problems, each with the place (below `path`) and what was given."""
    problems = error.errors(include_url=False, include_context=False)
    texts = [f"{spot((*path, *problem['loc']))}: {problem['msg']}{_given(problem)}" for problem in problems[:_SHOWN]]
    more = len(problems) - _SHOWN
    return "; ".join(texts) + (f"; and {more} more" if more > 0 else "")


def _given(problem: Mapping[str, Any]) -> str:
    return "" if problem["type"] == "missing" else f", given {given(problem['input'])}"


def callee(function: Any) -> Any:
    """What really runs: the function inside partials, an object's `__call__`."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else function.__call__


def _plain(function: Any) -> Any:
    """The function at the bottom of partials, wrappers and methods: its globals are where its annotations are understood."""
    function = inspect.unwrap(callee(function))
    return getattr(function, "__func__", function)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
