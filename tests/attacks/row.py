"""One attack: what the model calls, and how it is seen that nothing came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from .world import World

Check: TypeAlias = Callable[[World, str], str]
"""What came of it that should not, in words ('' for nothing), by the world and what the model was told."""


@dataclass(frozen=True, slots=True)
class Row:
    """`calls` are made in one reply, with @NAME@ for World.words. An attack got through if anything outside changed or was
    reached, if the model was told one of _SIGNS of drive.py, or if `check` says so, or `after` when the session is over.

    before: what a program outside does just before.
    reason: why this one cannot be stopped; docs/security.md says the same.
    """

    name: str
    calls: tuple[tuple[str, Mapping[str, Any]], ...]
    check: Check | None = None
    reason: str = ""
    before: Callable[[World], None] | None = None
    after: Check | None = None


def shell(
    name: str, command: str, check: Check | None = None, reason: str = "", *, before: Callable[[World], None] | None = None,
    after: Check | None = None,
) -> Row:  # fmt: skip
    """By bash."""
    return Row(name, (("bash", {"command": command, "timeout": 15}),), check, reason, before, after)


def python(name: str, code: str, check: Check | None = None, reason: str = "") -> Row:
    """By python_execute. A traceback shows the line that failed: the mark of success must not stand in it."""
    code = code.replace("'LEAK'", "'LE' + 'AK'")
    return Row(f"python: {name}", (("python_execute", {"code": code, "timeout": 15}),), check, reason)


def edit(name: str, check: Check | None = None, **arguments: Any) -> Row:
    """By str_replace_editor."""
    return Row(f"editor: {name}", (("str_replace_editor", arguments),), check)


def search(name: str, query: str, path: str, check: Check | None = None, **arguments: Any) -> Row:
    """By search_files."""
    return Row(f"search: {name}", (("search_files", {"query": query, "path": path, **arguments}),), check)


def reads(name: str, path: str, check: Check | None = None) -> Iterable[Row]:
    """A path that must not be read, by every way to read."""
    yield edit(f"view {name}", check, command="view", path=path)
    yield edit(f"insert into {name}", check, command="insert", path=path, insert_line=0, new_str="x")
    yield edit(f"replace in {name}", check, command="str_replace", path=path, old_str="sk-", new_str="sk-")
    yield search(name, "words-from|sk-attack|root:", path, check)
    yield shell(f"cat {name}", f"cat {path}", check)
    yield python(f"open {name}", f"import os; print(open(os.path.expanduser({path!r}), 'rb').read())", check)


def writes(name: str, path: str, check: Check | None = None) -> Iterable[Row]:
    """A path that must not be written, by every way to write."""
    yield edit(f"create {name}", check, command="create", path=path, file_text="OWNED\n")
    yield shell(f"redirect to {name}", f"echo OWNED > {path}; echo OWNED >> {path}; echo OWNED | tee {path}", check)
    yield shell(f"copy to {name}", f"cp plain.txt {path}; mv -f copy.txt {path}; ln -f plain.txt {path}", check)
    yield python(f"write {name}", f"import os; open(os.path.expanduser({path!r}), 'w').write('OWNED')", check)


def absent(*names: str) -> Check:
    """None of these is in the workspace."""

    def check(world: World, _said: str) -> str:
        found = [name for name in names if (world.workspace / name).is_symlink() or (world.workspace / name).exists()]
        return f"{found} in the workspace" if found else ""

    return check


def unseen(_world: World, said: str) -> str:
    """No key of ours was masked in what the model was told."""
    return "a key was seen" if "***" in said else ""


def unchanged(world: World, _said: str) -> str:
    """The workspace is as it was at the beginning."""
    return f"changed in the workspace: {changes}" if (changes := world.changes()) else ""
