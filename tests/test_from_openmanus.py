"""CONTRACT J: each row of docs/from-openmanus.md that says `today` works, and each that says `coming` is not here yet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

import handwork
from handwork.agent.roles import load_role
from handwork.cli.app import app
from handwork.errors import ConfigError

PAGE = Path(__file__).parent.parent / "docs" / "from-openmanus.md"
_CODE = re.compile(r"`([^`]+)`")


def rows(heading: str) -> Iterator[tuple[str, list[str], str]]:
    """(what it was, the code of what it is now, today or coming) of the table below a heading."""
    section = PAGE.read_text(encoding="utf-8").split(f"## {heading}")[1].split("\n## ")[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 3 and (status := cells[2].strip(" |")) in ("today", "coming"):
            yield cells[0], _CODE.findall(cells[1]), status


COMMANDS = list(rows("What you typed"))
NAMES = list(rows("What you imported"))


def test_the_page_has_every_row_of_the_contract() -> None:
    typed = " ".join(before for before, _, _ in COMMANDS)
    for script in (
        "main.py",
        "run_flow.py",
        "run_mcp.py",
        "run_mcp_server.py",
        "sandbox_main.py",
        "a2a",
        "BROWSER_USE",
    ):
        assert script in typed
    imported = " ".join(before for before, _, _ in NAMES)
    for module in (
        "agent.base",
        "agent.browser",
        "schema",
        "app.tool",
        "exceptions",
        "flow",
        "app.llm",
        "SANDBOX_CLIENT",
    ):
        assert module in imported


@pytest.mark.parametrize(("before", "names", "status"), NAMES, ids=[before for before, _, _ in NAMES])
def test_a_name_of_openmanus_can_be_imported_from_handwork_as_soon_as_the_page_says_so(
    before: str, names: list[str], status: str
) -> None:
    if "SANDBOX_CLIENT" in before:
        assert isinstance(handwork.Session.sandbox, property)
        return
    there = [name for name in names if name in handwork.__all__ and getattr(handwork, name)]
    assert there == (names if status == "today" else [])


@pytest.mark.parametrize(("before", "commands", "status"), COMMANDS, ids=[before for before, _, _ in COMMANDS])
def test_a_command_of_openmanus_has_its_like_as_soon_as_the_page_says_so(
    before: str, commands: list[str], status: str
) -> None:
    known = [command for command in commands if _is_known(command)]
    assert known == (commands if status == "today" else [])


def _is_known(command: str) -> bool:
    """Whether the command line knows a command with its options and the agent that it names."""
    program, *words = [word.strip('"') for word in command.split()]
    name = "chat" if not words else "run" if words[0] == "S" else words.pop(0)
    found = get_command(app).commands.get(name) if program == "handwork" else None
    if found is None:
        return False
    options = {option for parameter in found.params for option in parameter.opts}
    known = all(word in options for word in words if word.startswith("--"))
    return known and ("--agent" not in words or _is_role(words[words.index("--agent") + 1]))


def _is_role(name: str) -> bool:
    try:
        load_role(name)
    except ConfigError:
        return False
    return True
