"""docs/mcp.md says what is so: its server runs, its entries load, and what it names is there."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import cast

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from handwork.cli.app import app
from handwork.config import MCPServerSettings
from handwork.config.mcp_file import read_servers
from tests.cli.command import handwork
from tests.config.test_mcp_dialects import FILES
from tests.support.strict_server import StrictServer, tool

_PAGE = (Path(__file__).parent.parent / "docs" / "mcp.md").read_text()


def _block(kind: str, holds: str) -> str:
    return next(block for block in re.findall(rf"```{kind}\n(.*?)```", _PAGE, re.DOTALL) if holds in block)


def _section(title: str) -> str:
    return _PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "server.py").write_text(_block("python", "server.run()"))
    return folder


async def test_its_server_is_added_looked_at_and_used_as_it_says(workspace: Path) -> None:
    added = await handwork("mcp", "add", "stock", "--", "python", "server.py", cwd=workspace)
    assert added.code == 0, added.err
    looked = await handwork("mcp", "test", "stock", cwd=workspace)
    assert "mcp_stock_count" in looked.out
    assert "only reads" in looked.out
    assert "/stock:order" in looked.out
    assert "Nothing is wrong with it." in looked.out
    async with StrictServer([tool("mcp_stock_count", part="bolt"), "There are 120."]) as model:
        ended = await handwork(
            "run", "How many bolts are there?", cwd=workspace, HANDWORK_MODEL="openai:any", HANDWORK_BASE_URL=model.url
        )
    assert (ended.code, ended.out) == (0, "There are 120.\n"), ended.err
    assert "120" in str(next(each for each in model.requests[-1]["messages"] if each["role"] == "tool"))
    assert "Parts are named in the singular." in json.dumps(model.requests[0])


async def test_its_python_uses_the_server_too(workspace: Path) -> None:
    (workspace / "use.py").write_text(_block("python", "mcp_servers=servers"))
    async with StrictServer([tool("mcp_stock_count", part="nut"), "There are 80."]) as model:
        ended = await handwork(
            cwd=workspace, program=(sys.executable, "use.py"), HANDWORK_MODEL="openai:any", HANDWORK_BASE_URL=model.url
        )
    assert (ended.code, ended.out) == (0, "There are 80.\n"), ended.err


@pytest.mark.parametrize("holds", ["without_tools", "/absolute/path", '${workspaceFolder}"]'])
def test_its_entries_load(tmp_path: Path, holds: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(_block("json", holds))
    told: list[str] = []
    assert read_servers(file, told.append)
    assert told == []


def test_it_names_each_key_of_an_entry_and_no_other() -> None:
    cells = re.findall(r"^\| (`.*?) \|", _section("An entry"), re.MULTILINE)
    named = [key for cell in cells for key in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == sorted(MCPServerSettings.model_fields)


def test_it_names_the_programs_whose_files_are_read() -> None:
    text = " ".join(_section("Files of other programs").split())
    known = {name for name in FILES if name not in ("a plugin of Claude Code", "VS Code's settings", "Goose's JSON")}
    assert {name for name in known - {"Cherry Studio"} if name not in text} == set()


def test_the_commands_that_it_names_are_there() -> None:
    mcp = cast(TyperGroup, cast(TyperGroup, get_command(app)).commands["mcp"])
    named = set(re.findall(r"handwork mcp (\w+)", _PAGE))
    assert named <= set(mcp.commands)


def test_its_links_lead_to_its_sections() -> None:
    titles = {
        title.lower().replace(" ", "-").replace(",", "") for title in re.findall(r"^## (.*)$", _PAGE, re.MULTILINE)
    }
    assert set(re.findall(r"\(#([^)]*)\)", _PAGE)) == titles
