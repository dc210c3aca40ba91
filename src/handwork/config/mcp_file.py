"""A file with MCP servers as a layer: our mcp.json, and those of other programs as they write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handwork.config.files import LARGEST, read_text
from handwork.config.json_text import parse_json
from handwork.config.key_lines import KeyLines
from handwork.config.layers import KeyPath, Layer, nearest
from handwork.config.mcp import MCPServerSettings, MCPSettings
from handwork.config.mcp_dialects import Entry, in_our_words
from handwork.errors import ConfigError

_TABLES: tuple[KeyPath, ...] = (("mcpServers",), ("servers",), ("context_servers",), ("mcp", "servers"), ("mcp",))
"""Where the servers stand: for most programs; in VS Code's mcp.json; for Zed; in VS Code's settings; for OpenCode."""
_BESIDE = {"$schema", "inputs"}
"""Keys beside them that need no word: a server that needs one of VS Code's inputs says so itself."""
_STARTS = ("command", "url", "httpUrl", "serverUrl")
_FAILED = "Failed to load MCP server config: "
LARGEST_OF_OTHERS = 16_000_000
"""Bytes of another program's file, which may hold much besides."""
_NAMED = 12
"""Keys, and servers, of which something is said."""
_NOTHING = object()


def servers_layer(file: Path, data: bytes | None = None) -> tuple[Layer, list[str]]:
    """The file (whose content may have been read already) as a layer of [mcp], and what the user should be told of it.
    Raises ConfigError."""
    found = _read(file, data)
    return found.layer(), found.told(found.others)


def read_servers(
    file: Path, tell: Callable[[str], None] = lambda text: None, folder: Path | None = None
) -> Mapping[str, MCPServerSettings]:
    """The servers in any program's file, by their names, in our words; `${NAME}` and `env:NAME` stand as they were written.
    `tell` gets what the user should know of them. A file that keeps those of projects apart gives those of `folder`, too, in the
    place of its others of that name. Raises ConfigError."""
    found = _read(file, folder=str(folder) if folder else None, largest=LARGEST_OF_OTHERS)
    layer = found.layer()
    table = layer.checked(MCPSettings, layer.tables["mcp"], ("mcp",))
    for text in found.told():
        tell(text)
    return MCPSettings.model_validate(table).servers


def servers_place(data: dict[str, Any]) -> KeyPath | None:
    """Where in a file the servers stand: () if it holds nothing else, None if it has no place for them yet."""
    return next((path for path in _TABLES if _in(data, path) is not _NOTHING), () if _is_flat(data) else None)


@dataclass
class _Found:
    """What a file holds: its servers, where each stands in it by its name, and the keys beside them."""

    file: Path
    lines: KeyLines
    places: Mapping[str, KeyPath]
    entries: list[Entry] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def told(self, others: Sequence[str] = ()) -> list[str]:
        """What the user should know of the entries; `others` are further keys without meaning."""
        passed = [*others, *(f"{entry.name}.{key}" for entry in self.entries for key in entry.passed)]
        told = [f"without meaning here: {', '.join(passed[:_NAMED])}{_more(passed)}"] if passed else []
        said = [text for entry in self.entries for text in entry.told]
        told += said[:_NAMED]
        if len(said) > _NAMED:
            told.append(f"the same is to be said of {len(said) - _NAMED:,} more MCP servers")
        return [f"{self.file}: {text}" for text in told]

    def layer(self) -> Layer:
        servers = {entry.name: entry.keys for entry in self.entries if entry.keys is not None}
        return Layer(
            "servers", {"mcp": {"servers": servers}}, self.where, self.file, self.line, strict=True, prefix=_FAILED
        )

    def line(self, path: KeyPath) -> int:
        """The line of a key of [mcp], however it is called in the file."""
        _, _, *rest = path  # mcp, servers, the name …
        written = next((entry.written for entry in self.entries if rest[:1] == [entry.name]), {})
        rest[1:2] = [written.get(key, key) for key in rest[1:2]]
        at = self.places.get(rest[0] if rest else "") or next(iter(self.places.values()), ())
        return self.lines.line((*at, *rest))

    def where(self, path: KeyPath) -> str:
        return f"{self.file}, line {self.line(path)}"


def _read(file: Path, data: bytes | None = None, *, folder: str | None = None, largest: int = LARGEST) -> _Found:
    try:
        text = read_text(file, data, largest=largest)
        parsed, lines = parse_json(text, file, lambda data: [*_tables(data, folder).values()] if folder else data)
        return _found(parsed, lines, file, folder)
    except ConfigError as error:
        raise ConfigError(f"{_FAILED}{error.what}", hint=error.hint) from None


def _found(data: dict[str, Any], lines: KeyLines, file: Path, folder: str | None) -> _Found:
    tables = _tables(data, folder)
    beside = {path[0] for path in tables if path} | _BESIDE
    others = [key for key in data if key not in beside and () not in tables]
    if others and not tables and not (folder and _has_projects(data)):
        at = f"{file}, line {lines.line((others[0],))}"
        raise ConfigError(f"{at}: unknown key {others[0]}", hint=nearest(others[0], {"mcpServers": None}))
    entries: dict[str, Entry] = {}
    places: dict[str, KeyPath] = {}
    for place, servers in tables.items():
        _check(servers, lambda *path, place=place: f"{file}, line {lines.line((*place, *path))}", ".".join(place))
        entries |= {name: in_our_words(name, entry) for name, entry in servers.items()}
        places |= dict.fromkeys(servers, place)
    return _Found(file, lines, places, list(entries.values()), others)


def _tables(data: Any, folder: str | None) -> dict[KeyPath, Any]:
    """Where servers stand in a file, with what stands there: those of the folder last."""
    place = next((path for path in _TABLES if _in(data, path) is not _NOTHING), () if _is_flat(data) else None)
    places = [] if place is None else [place]
    if folder and _has_projects(data):
        places.append(("projects", folder, "mcpServers"))
    return {path: found for path in places if (found := _in(data, path)) is not _NOTHING}


def _has_projects(data: Any) -> bool:
    """Whether a file keeps the servers of folders apart, as Claude Code's does."""
    return isinstance(_in(data, ("projects",)), dict)


def _check(servers: Any, at: Callable[..., str], title: str) -> None:
    """Raises ConfigError for what is no table of servers; `at` says where a name stands."""
    if not isinstance(servers, dict):
        raise ConfigError(f"{at()}: {title} must be an object: servers by their names")
    for name, entry in servers.items():
        if not name.strip():
            raise ConfigError(f"{at(name)}: a server has no name, and it must")
        if not isinstance(entry, dict):
            raise ConfigError(f"{at(name)}: the server {name!r} must be an object")


def _more(named: Sequence[str]) -> str:
    return f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""


def _in(data: Any, path: KeyPath) -> Any:
    """What stands at a path; `_NOTHING` if nothing does."""
    for key in path:
        data = data.get(key, _NOTHING) if isinstance(data, dict) else _NOTHING
    return data


def _is_flat(data: Any) -> bool:
    """Whether a file holds nothing but servers by their names, as that of a plugin does."""
    entries = list(data.values()) if isinstance(data, dict) else []
    return bool(entries) and all(isinstance(each, dict) and any(key in each for key in _STARTS) for each in entries)
