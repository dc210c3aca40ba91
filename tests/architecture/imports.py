"""Who may import whom: the table of the design, cycles, and where heavy dependencies may come in."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from tests.architecture.source import PACKAGE, Import, Module, in_function

_LOW = {"schema", "errors", "config"}
_BELOW_SESSION = {*_LOW, "events", "llm", "sandbox", "policy", "tool", "mcp", "store"}

MAY_IMPORT: Mapping[str, set[str]] = {
    "errors": set(),
    "schema": {"errors"},
    "config": {"errors", "schema"},
    "events": {"schema"},
    "llm": _LOW,
    "sandbox": _LOW,
    "policy": _LOW,
    "tool": {*_LOW, "sandbox"},
    "mcp": {*_LOW, "sandbox", "tool"},
    "store": {*_LOW, "events"},
    "session": _BELOW_SESSION,
    "agent": {*_BELOW_SESSION, "session"},
    "flow": {*_BELOW_SESSION, "session", "agent"},
}
ENTRIES = {"", "__main__", "cli", "server"}
"""They may import anything, and nobody imports them."""

LIGHT = {"pydantic", "pydantic_core", "typing_extensions"}
"""What any module may import at its top."""

HEAVY: Mapping[str, set[str]] = {
    "aiohttp": {"llm", "sandbox"},
    "multidict": {"llm"},
    "genai_prices": {"llm"},
    "xllamacpp": {"llm"},
    "ipykernel": {"tool"},
    "jsonschema": {"tool"},
    "jupyter_client": {"tool"},
    "referencing": {"tool"},
    "zmq": {"tool"},
    "PIL": {"tool"},
    "daytona": {"sandbox"},
    "docker": {"sandbox"},
    "keyring": {"config"},
    "prompt_toolkit": {"cli"},
    "rich": {"cli"},
    "typer": {"cli"},
    "anyio": {"mcp", "server"},
    "httpx2": {"mcp"},
    "mcp": {"mcp", "server"},
    "mcp_types": {"mcp", "server"},
    "starlette": {"server"},
    "uvicorn": {"server"},
}
"""The folders that may import a heavy or optional dependency, inside functions only. A new one gets its row here."""

TOP_IN_CLI = {"prompt_toolkit", "rich", "typer"}
"""Commands are declared with these, and cli/chat is made of them; `handwork --version` is answered before cli is imported, no
command but chat imports cli/chat, and tests hold both."""

LAZY_OWN = {PACKAGE, f"{PACKAGE}.__main__", f"{PACKAGE}.tool"}
"""Modules that may import our own modules inside functions: the lazy public names and the way into the command line."""

BY_NAME = {PACKAGE, f"{PACKAGE}.agent.roles"}
"""Modules that may import by a name in a string."""


def breaches_of_table(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        for found in _own(module):
            part = found.name.partition(".")[2].partition(".")[0]
            if part == module.part or (module.part in ENTRIES and part not in {"", "__main__"}):
                continue
            if module.part in ENTRIES and part == "" and found.taken:
                continue
            if module.part not in {*MAY_IMPORT, *ENTRIES}:
                yield f"{module.name}: {module.part!r} has no row in the table of who may import whom"
            elif part not in MAY_IMPORT.get(module.part, set()):
                yield f"{module.at(found.line)}: {module.part} may not import {found.name}"


def cycles(modules: list[Module]) -> Iterator[str]:
    """Cycles of modules, and of the parts directly below the package; imports inside functions count as well."""
    graph = {module.name: {found.name for found in _own(module)} for module in modules}
    parts: dict[str, set[str]] = {}
    for module in modules:
        targets = {found.name.partition(".")[2].partition(".")[0] for found in _own(module)}
        parts.setdefault(module.part, set()).update(targets - {module.part})
    for kind, edges in (("module", graph), ("folder", parts)):
        for name in edges:
            if path := _way_back(name, edges):
                yield f"{kind} cycle: {' → '.join(path)}"
                break


def _way_back(start: str, edges: Mapping[str, set[str]]) -> list[str]:
    paths, seen = [[start]], set[str]()
    while paths:
        path = paths.pop()
        for following in sorted(edges.get(path[-1], ())):
            if following == start:
                return [*path, start]
            if following not in seen:
                seen.add(following)
                paths.append([*path, following])
    return []


def lazy_imports_of_our_own(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        if module.name in LAZY_OWN or module.part == "cli":
            continue
        for found in _own(module):
            if in_function(module, found):
                yield f"{module.at(found.line)}: {found.name} is imported inside {found.function}, not at the top"


def imports_by_name(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        for found in module.imports:
            if found.name == "importlib" and "import_module" in found.taken and module.name not in BY_NAME:
                yield f"{module.at(found.line)}: only {sorted(BY_NAME)} import by a name in a string"


def type_checking_imports(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        for found in module.imports:
            if found.name == "typing" and "TYPE_CHECKING" in found.taken:
                yield f"{module.at(found.line)}: no TYPE_CHECKING imports: they hide a cycle"


def misplaced_dependencies(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        for found in module.imports:
            package = found.name.partition(".")[0]
            if package in {PACKAGE, *LIGHT, *sys.stdlib_module_names}:
                continue
            if package not in HEAVY:
                yield f"{module.at(found.line)}: {package} is on no list of dependencies (tests/architecture/imports.py)"
            elif module.part not in HEAVY[package]:
                yield f"{module.at(found.line)}: {package} belongs into {sorted(HEAVY[package])}"
            elif not in_function(module, found) and not (module.part == "cli" and package in TOP_IN_CLI):
                yield f"{module.at(found.line)}: {package} is heavy: import it inside a function"


def private_imports(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        for found in _own(module):
            part = found.name.partition(".")[2].partition(".")[0]
            private = [name for name in (*found.name.split("."), *found.taken) if _is_private(name)]
            if private and part != module.part:
                yield f"{module.at(found.line)}: {', '.join(private)} of {found.name} is private"


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _own(module: Module) -> list[Import]:
    return [found for found in module.imports if found.name.partition(".")[0] == PACKAGE]
