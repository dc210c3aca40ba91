"""What a tool's declared actions say about it in MCP's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from handwork.config import SandboxSettings, Settings
from handwork.schema import JSON, Action
from handwork.server.hints import Hints, hints
from handwork.tool.base import Tool
from handwork.tool.bash import Bash
from handwork.tool.editor import StrReplaceEditor
from handwork.tool.planning import PlanningTool
from handwork.tool.search_files import SearchFiles


class Switch(Tool):
    """Reads or writes, as it is told."""

    name = "switch"
    parameters: Mapping[str, JSON] = {
        "type": "object",
        "properties": {"way": {"type": "string", "enum": ["in", "out"]}, "what": {"type": "string"}},
        "required": ["way", "what"],
    }

    def actions(self, arguments: Mapping[str, JSON]) -> Sequence[Action]:
        return [Action(kind="read" if arguments["way"] == "in" else "write", resource="a", repeatable=True)]

    async def execute(self, way: str, what: str) -> str:
        return ""


class Undeclared(Tool):
    name = "undeclared"

    async def execute(self) -> str:
        return ""


def test_the_worst_of_all_commands_counts() -> None:
    assert hints(Switch(), Settings()) == Hints(read_only=False, destructive=True, idempotent=True, open_world=False)
    assert hints(StrReplaceEditor(), Settings()).destructive


def test_what_reads_only_is_said_to() -> None:
    assert hints(SearchFiles(), Settings()) == Hints(
        read_only=True, destructive=False, idempotent=True, open_world=False
    )


def test_ones_own_plan_is_nobodys_loss() -> None:
    told = hints(PlanningTool(), Settings())
    assert (told.read_only, told.destructive) == (False, False)


def test_what_is_not_declared_is_the_worst() -> None:
    told = hints(Undeclared(), Settings())
    assert (told.read_only, told.destructive, told.idempotent) == (False, True, False)


def test_programs_meet_the_world_where_the_sandbox_has_a_network() -> None:
    assert not hints(Bash(), Settings()).open_world
    for place in (SandboxSettings(network=True), SandboxSettings(backend="host"), SandboxSettings(backend="docker")):
        assert hints(Bash(), Settings(sandbox=place)).open_world
