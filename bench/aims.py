"""What Handwork aims at, and the table that sets measured figures beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Aim:
    """`key` names a figure; `most` or `least` is the bound, in `unit`."""

    key: str
    text: str
    unit: str
    most: float | None = None
    least: float | None = None

    def met(self, value: float) -> bool:
        return (self.most is None or value <= self.most) and (self.least is None or value >= self.least)

    @property
    def bound(self) -> str:
        return f"≤ {self.most:,g}" if self.most is not None else f"≥ {self.least:,g}"


AIMS = (
    Aim("step_50", "CPU per request over 50 tool steps", "ms", most=1.0),
    Aim("step_50_ratio", "the same beside a bare aiohttp loop", "×", most=3.5),
    Aim("step_500", "CPU per request over 500 tool steps", "ms", most=1.2),
    Aim("throughput", "steps per CPU-second, 200 agents × 10", "", least=1500),
    Aim("agent_200", "memory per agent at 200 agents", "KB", most=60),
    Aim("agent_1000", "memory per agent at 1,000 agents", "KB", most=40),
    Aim("chunks", "CPU per 1,000 streamed chunks", "ms", most=10),
    Aim("arguments", "CPU for 256 KB of streamed arguments", "ms", most=300),
    Aim("first_request", "process start to first request", "ms", most=350),
    Aim("rss_import", "memory after import", "MB", most=45),
    Aim("rss_run", "memory after a run", "MB", most=60),
    Aim("version", "handwork --version", "ms", most=50),
    Aim("help", "handwork --help", "ms", most=250),
    Aim("sandbox", "a sandbox from nothing to ready", "ms", most=60),
    Aim("bash", "a bash call in a warm session", "ms", most=2),
    Aim("python", "a python_execute call in a warm session", "ms", most=12),
    Aim("mcp_call", "a call of an MCP server over the mcp package's own client", "ms", most=2),
    Aim("mcp_start", "CPU that ten configured MCP servers, known and unused, add to a start", "ms", most=50),
    Aim("mcp_ready", "an MCP server in the sandbox from nothing to its tools", "ms", most=200),
    Aim("mcp_serve", "CPU of mcp serve from its start over its list of tools to its end", "ms", most=1000),
    Aim("completion", "a session's id completed in a shell", "ms", most=300),
)


def table(figures: Mapping[str, float], aims: Iterable[Aim] = AIMS) -> str:
    """Figures beside the aims, one line each; what was not measured is left out."""
    rows = [
        (
            aim.text,
            f"{figures[aim.key]:,.2f} {aim.unit}",
            f"{aim.bound} {aim.unit}",
            "" if aim.met(figures[aim.key]) else "MISSED",
        )
        for aim in aims
        if aim.key in figures
    ]
    width = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        f"{text:<{width[0]}}  {value:>{width[1]}}  aim {bound:<{width[2]}}  {missed}".rstrip()
        for text, value, bound, missed in rows
    )
