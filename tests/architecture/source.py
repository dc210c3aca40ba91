"""The package as data: its modules, and who imports what from where."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "handwork"


@dataclass(frozen=True)
class Import:
    """One imported module. `name` is the full dotted name; `taken` the names taken out of it; `function` where it stands."""

    name: str
    taken: tuple[str, ...]
    function: str
    line: int


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    tree: ast.Module = field(repr=False)
    siblings: frozenset[str] = field(repr=False)
    """The names of all modules of the package."""

    @property
    def part(self) -> str:
        """The first name below the package: `llm`, `errors`; '' for the package itself."""
        return self.name.partition(".")[2].partition(".")[0]

    def at(self, line: int) -> str:
        return f"{self.name}:{line}"

    @cached_property
    def nodes(self) -> list[tuple[ast.AST, str]]:
        """Every node with the dotted name of the function or class around it."""
        return list(_walk(self.tree, ""))

    @cached_property
    def imports(self) -> list[Import]:
        return [found for node, function in self.nodes for found in self._read(node, function)]

    def _read(self, node: ast.AST, function: str) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, (), function, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = self._absolute(node)
            plain = []
            for alias in node.names:
                if f"{base}.{alias.name}" in self.siblings:
                    yield Import(f"{base}.{alias.name}", (), function, node.lineno)
                else:
                    plain.append(alias.name)
            if plain:
                yield Import(base, tuple(plain), function, node.lineno)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".") if self.path.stem == "__init__" else self.name.split(".")[:-1]
        base = parts[: len(parts) - node.level + 1]
        return ".".join([*base, node.module] if node.module else base)


def _walk(node: ast.AST, function: str) -> Iterator[tuple[ast.AST, str]]:
    for child in ast.iter_child_nodes(node):
        inner = function
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{function}.{child.name}".lstrip(".")
        yield child, inner
        yield from _walk(child, inner)


def read_package(source: Path) -> list[Module]:
    """All modules below `source`/handwork."""
    paths = {_dotted(path.relative_to(source)): path for path in sorted((source / PACKAGE).rglob("*.py"))}
    names = frozenset(paths)
    return [Module(name, path, ast.parse(path.read_bytes()), names) for name, path in paths.items()]


@cache
def our_package() -> list[Module]:
    """The modules of this checkout, read once for all rules: reading them takes longer than all rules do."""
    return read_package(ROOT / "src")


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def in_function(module: Module, found: Import) -> bool:
    """Whether an import waits for a call (a class body runs at import)."""
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= found.line <= (node.end_lineno or 0)
        for node in ast.walk(module.tree)
    )
