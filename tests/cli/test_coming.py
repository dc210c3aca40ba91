"""What has a name and is not there yet is said as such, and is never in the way of what is there."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from tests.cli.command import handwork

from handwork.agent.names import ROLES
from handwork.cli.app import app
from handwork.cli.coming import COMING
from handwork.cli.route import route
from handwork.errors import ConfigError

GROUP = typer.main.get_command(app)


@pytest.mark.parametrize("words", COMING, ids=" ".join)
def test_each_is_said_with_what_there_is_today(words: tuple[str, ...]) -> None:
    typed = ["run", "Do it.", *words] if words[0].startswith("-") else [*words, "x"]
    with pytest.raises(ConfigError, match=f"{' '.join(words)}` comes in a later version") as caught:
        route(typed, GROUP)
    assert caught.value.hint.startswith("today: ")


@pytest.mark.parametrize(
    "typed",
    [
        ["flow"],
        ["flow", "--json", "a task"],
        ["a task", "--check", "make"],
        ["--check=make", "a task"],
        ["--agent=BrowserAgent", "a task"],
        ["chat", "--agent", "DataAnalysis"],
        ["sessions", "--config", "f", "resume", "ID"],
    ],
    ids=" ".join,
)
def test_every_way_to_type_it_is_met(typed: list[str]) -> None:
    with pytest.raises(ConfigError, match="comes in a later version"):
        route(typed, GROUP)


@pytest.mark.parametrize(
    "typed",
    [
        ["run", "flow"],
        ["run", "--prompt", "flow"],
        ["--", "flow"],
        ["run", "--", "--check"],
        ["sessions", "list"],
        ["sessions", "show", "resume"],
        ["run", "Do it.", "--agent", "manus", "--sandbox", "bwrap"],
    ],
    ids=" ".join,
)
def test_the_same_words_elsewhere_are_what_they_are(typed: list[str]) -> None:
    assert route(typed, GROUP)[0] in ("run", "sessions")


def test_nothing_that_is_there_is_said_to_come() -> None:
    def words(command: object, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        below = getattr(command, "commands", {})
        options = [(name,) for option in getattr(command, "params", ()) for name in option.opts]
        return [path, *options, *(found for name in below for found in words(below[name], (*path, name)))]

    there = {*words(GROUP, ()), *(("--agent", name) for name in ROLES)}
    assert not there & set(COMING)


async def test_at_the_command_line_it_is_two_lines_and_exit_2(workspace: Path) -> None:
    ended = await handwork("flow", "Do it.", cwd=workspace)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "handwork: `handwork flow` comes in a later version: the name is reserved\n"
        '→ today: handwork "TASK" works with one agent, which plans for itself\n'
    )
