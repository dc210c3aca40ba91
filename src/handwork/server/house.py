"""What is served and where: the settings, the workspace and the tools, the same for every client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from handwork.config import Settings
from handwork.errors import ConfigError
from handwork.schema import Budget
from handwork.server.task import RunTask
from handwork.session.spending import Purse
from handwork.tool.base import Tool
from handwork.tool.bash import Bash
from handwork.tool.editor import StrReplaceEditor
from handwork.tool.planning import PlanningTool
from handwork.tool.python_execute import PythonExecute
from handwork.tool.search_files import SearchFiles

OFFERED: dict[str, type[Tool]] = {
    tool.name: tool for tool in (Bash, PythonExecute, StrReplaceEditor, SearchFiles, PlanningTool, RunTask)
}
"""Manus's tools that make sense for a caller, and the agent itself. A caller has a human of its own, and ends by itself."""


@dataclass(frozen=True)
class House:
    """See the module. `say` takes a line for whoever looks after the server."""

    settings: Settings
    workspace: Path
    names: tuple[str, ...]
    say: Callable[[str], None]

    @cached_property
    def purse(self) -> Purse:
        """What all tasks of all clients may spend together, as long as the server runs."""
        limits = self.settings.limits
        return Purse(Budget(usd=limits.budget, tokens=limits.max_total_tokens))

    @property
    def tools(self) -> list[Tool]:
        """Fresh ones: two clients never share a tool."""
        return [OFFERED[name]() for name in self.names]


def chosen(names: Sequence[str] | None) -> tuple[str, ...]:
    """The tools that are served; all of them without names. Raises ConfigError for a name that is none."""
    if names is None:
        return tuple(OFFERED)
    wanted = [name.strip() for name in names if name.strip()]
    for name in wanted:
        if name not in OFFERED:
            near = get_close_matches(name.lower(), OFFERED, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(OFFERED)}"
            raise ConfigError(f"--tools: there is no tool named {name!r}", hint=hint)
    if not wanted:
        raise ConfigError("--tools names no tool", hint=f"there are: {', '.join(OFFERED)}")
    return tuple(dict.fromkeys(wanted))
