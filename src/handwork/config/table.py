"""What every table of the configuration is: frozen, strict about its keys, and able to tell what may stand in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo


class SettingsTable(BaseModel):
    """One table. A field that `repr` does not show holds a secret: nothing else shows it either (`config.masking`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def inner_table(field: FieldInfo) -> type[SettingsTable] | None:
    """The table that a key holds: its own, or each of its named ones (`holds_named`)."""
    return next((kind for kind in _types(field.annotation) if issubclass(kind, SettingsTable)), None)


def holds_named(field: FieldInfo) -> bool:
    """Whether a key holds any number of tables, each under a name."""
    return get_origin(field.annotation) is Mapping and inner_table(field) is not None


def takes_table(field: FieldInfo) -> bool:
    """Whether a key's value may be a table, one of settings or one of free names."""
    return inner_table(field) is not None or "Mapping" in str(field.annotation)


def takes_list(field: FieldInfo) -> bool:
    """Whether a key's value is a list."""
    return get_origin(field.annotation) is tuple


def fields_at(kind: type[SettingsTable], path: tuple[str, ...]) -> Mapping[str, FieldInfo]:
    """What may stand in the table at `path` in a table of `kind`; {} where there is no table."""
    named = False
    for part in path:
        if named:
            named = False
            continue
        field = kind.model_fields.get(part)
        inner = inner_table(field) if field else None
        if field is None or inner is None:
            return {}
        kind, named = inner, holds_named(field)
    return {} if named else kind.model_fields


def given(table: SettingsTable) -> dict[str, Any]:
    """The keys that were given to a table, and to the tables in it, with their values."""
    return {name: _plain(getattr(table, name)) for name in type(table).model_fields if name in table.model_fields_set}


def secrets(table: SettingsTable) -> Iterator[tuple[str, str]]:
    """Every secret in a table and in the tables in it, with the name of its key; of a table of free names, with the name there."""
    for name, field in type(table).model_fields.items():
        value = getattr(table, name)
        inner = list(value.items()) if isinstance(value, Mapping) else [(name, value)]
        for each, found in inner:
            if isinstance(found, SettingsTable):
                yield from secrets(found)
            elif not field.repr and isinstance(found, str):
                yield each, found


def _plain(value: Any) -> Any:
    if isinstance(value, SettingsTable):
        return given(value)
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return value


def _types(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        yield annotation
    for argument in get_args(annotation):
        yield from _types(argument)
