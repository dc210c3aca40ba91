"""`handwork config show`: every setting that holds, where it was set, and which files were read; secrets are hidden."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handwork.cli.clean import clean_for_terminal, json_for_terminal, one_line
from handwork.cli.lines import Screen
from handwork.cli.screen import open_screen
from handwork.cli.workspace import real_folder
from handwork.config.credentials import provider_key
from handwork.config.layers import KeyPath, Origin
from handwork.config.load import Configuration, load_configuration
from handwork.config.masking import VARIABLE, masked, shown
from handwork.config.mcp import MCPServerSettings
from handwork.config.providers import find_provider, provider_name
from handwork.config.settings import LLMSettings, Settings
from handwork.config.table import SettingsTable, holds_named, inner_table
from handwork.config.tables import TABLES
from handwork.errors import ConfigError

_LEAST_VALUE, _WIDEST_VALUE = 16, 40


_ABSENT: Mapping[KeyPath, str] = {
    ("limits", "max_steps"): "each agent's own, as manus has 20",
    ("policy", "approve"): "auto in a sandbox, ask without one",
    ("sandbox", "memory_limit"): "what the machine can spare",
}
"""What holds where a setting is absent and that is neither nothing nor no limit."""


@dataclass(frozen=True)
class Row:
    """One setting: its value as it may be shown, and where it came from (None: it is the default)."""

    key: str
    value: Any
    origin: Origin | None = None
    differs: bool = False
    note: str = ""
    """What stands in the place of an origin, or behind it."""


def print_configuration(config: Path | None, workspace: Path | None, as_json: bool) -> None:
    """Print the configuration as a run in the workspace would have it. Raises ConfigError."""
    configuration = load_configuration(config, workspace=real_folder(workspace))
    if as_json:
        print(json_for_terminal(json.dumps(configuration_json(configuration), ensure_ascii=False, indent=2)))
        return
    screen = open_screen(sys.stdout, spins=False)
    _print_files(screen, configuration)
    for title, rows in _tables(configuration):
        screen.line(f"\n[{one_line(title, 100)}]", "bold")
        _print_rows(screen, rows)
    for notice in configuration.settings.all_notices:
        screen.line(f"\n· {clean_for_terminal(notice)}", "yellow")


def configuration_json(configuration: Configuration) -> dict[str, Any]:
    """The whole of it as JSON, with secrets hidden."""
    return {
        "files": [str(path) for path in configuration.files],
        "unread": [{"file": str(path), "why": why} for path, why in configuration.unread.items()],
        "tables": {title: {row.key: _row_json(row) for row in rows} for title, rows in _tables(configuration)},
        "notices": list(configuration.settings.all_notices),
    }


def _row_json(row: Row) -> dict[str, Any]:
    origin = row.origin
    file = origin.layer.file if origin else None
    return {
        "value": row.value,
        "differs": row.differs,
        "from": origin.layer.kind if origin else "default",
        "place": str(origin) if origin else None,
        "file": str(file) if file else None,
        "line": origin.line if origin else None,
        "note": row.note or None,
    }


# ---- what there is


def _tables(configuration: Configuration) -> Iterator[tuple[str, list[Row]]]:
    """Every table by its title, as a file would name it."""
    settings = configuration.settings
    for name, llm in settings.llm.items():
        title = "llm" if name == "default" else f"llm.{name}"
        yield title, [_with_found_key(row, llm, settings) for row in _rows(llm, ("llm", name), configuration)]
    for name in TABLES:
        if name != "llm":
            yield from _nested(name, getattr(settings, name), (name,), configuration)


def _nested(
    title: str, table: SettingsTable, path: KeyPath, configuration: Configuration
) -> Iterator[tuple[str, list[Row]]]:
    yield title, list(_rows(table, path, configuration))
    for name, field in type(table).model_fields.items():
        value = getattr(table, name)
        if holds_named(field):
            for each, inner in value.items():
                written = (
                    inner.written if isinstance(inner, MCPServerSettings) else inner
                )  # a value may be a key of the user's
                yield from _nested(f"{title}.{name}.{each}", written, (*path, name, each), configuration)
        elif inner_table(field) and isinstance(value, SettingsTable):
            yield from _nested(f"{title}.{name}", value, (*path, name), configuration)


def _rows(table: SettingsTable, path: KeyPath, configuration: Configuration) -> Iterator[Row]:
    """The keys of a table that are no tables of settings themselves; prices are shown as one value."""
    for name, field in type(table).model_fields.items():
        value = getattr(table, name)
        if inner_table(field) and path[0] != "llm":
            continue
        if isinstance(value, SettingsTable):
            value = value.model_dump(exclude_none=True)
        origin = configuration.origins.get((*path, name))
        default = field.get_default(call_default_factory=True)
        note = _from_variable(origin.written, value) if origin and not field.repr else ""
        if origin is None and value is None:
            note = _ABSENT.get((*path, name), "")
        value = value.value if hasattr(value, "value") else value
        yield Row(name, shown(value, secret=not field.repr), origin, bool(value != default), note)


def _from_variable(written: Any, value: Any) -> str:
    """That a secret was looked up in a variable, and whether that is set."""
    if not isinstance(written, str) or not VARIABLE.fullmatch(written):
        return ""
    return f"{masked(written)} is not set" if written == value else masked(written)


def _with_found_key(row: Row, llm: LLMSettings, settings: Settings) -> Row:
    """The row of an API key that is not configured, with the one that is used all the same: the provider's own variable, or
    what `handwork setup` stored."""
    provider = find_provider(provider_name(llm.model, llm.base_url, llm.api_type))
    address = llm.base_url or (provider.address(settings.environ) if provider else "")
    if row.key != "api_key" or row.value or not address:
        return row
    found = provider_key(provider, address, settings.environ) if provider else None
    if provider and found and found.key:
        variable = next(name for name in provider.key_variables if settings.environ.get(name, "").strip())
        return Row(row.key, masked(found.key), None, True, variable)
    try:
        stored = next((entry for entry in settings.keys.entries() if entry.fits(address)), None)
    except ConfigError as error:
        return Row(row.key, row.value, None, False, error.what)
    return Row(row.key, masked(stored.key) or "…", None, True, "stored by handwork setup") if stored else row


# ---- how it is shown


def _print_files(screen: Screen, configuration: Configuration) -> None:
    read = [str(path) for path in reversed(configuration.files)]
    screen.line("Files read, the first over the next ones:" if len(read) > 1 else "File read:", "bold")
    for name in read or ["none: all settings are defaults, or come from variables"]:
        screen.line(f"  {clean_for_terminal(name)}")
    if configuration.unread:
        screen.line("Not read:", "bold")
    for path, why in configuration.unread.items():
        screen.line(f"  {clean_for_terminal(str(path))}: {clean_for_terminal(why)}")


def _print_rows(screen: Screen, rows: list[Row]) -> None:
    """Key, value, origin; what differs from the default is marked and stands out. On a terminal no line is broken."""
    keys = max(len(row.key) for row in rows)
    room = screen.columns - keys - 6 if screen.live else 20_000
    origins = [one_line(_origin(row), room - _LEAST_VALUE) for row in rows]
    values = [one_line(_text(row.value), room - max(map(len, origins))) for row in rows]
    width = min(max(map(len, values)), room if screen.live else _WIDEST_VALUE)
    for row, value, origin in zip(rows, values, origins, strict=True):
        mark = "*" if row.differs else " "
        style = "" if row.differs else "dim"
        screen.line(f"{mark} {row.key:<{keys}}  {value:<{width}}  {origin}".rstrip(), style)


def _origin(row: Row) -> str:
    if row.origin is None:
        return row.note or "default"
    where = str(row.origin).removeprefix("environment variable ")
    if (file := row.origin.layer.file) is not None:
        where = f"{file.name}, line {row.origin.line}"
    return f"{where} ({row.note})" if row.note else where


def _text(value: Any) -> str:
    """A value as TOML would write it; what is not set is said."""
    if value is None or value == "":
        return "not set"
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {_text(inner)}" for name, inner in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
