"""What the commands of a chat show: cost, context, tools, plan, and what was undone."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import Any

from handwork.agent.base import BaseAgent
from handwork.agent.toolcall import ToolCallAgent
from handwork.cli.chat.conversation import Conversation
from handwork.cli.chat.costs import Costs, Spent
from handwork.cli.chat.status import dollars
from handwork.cli.clean import clean_for_terminal, one_line
from handwork.cli.lines import Screen
from handwork.cli.undo.undo import Undone
from handwork.mcp.tool import MCPClientTool
from handwork.schema import Request, Usage
from handwork.tool.base import Tool

_MARKS = {"completed": "[✓]", "in_progress": "[→]", "blocked": "[!]"}


def cost(screen: Screen, costs: Costs) -> None:
    """Tokens and dollars, by model and in total."""
    if not costs.models:
        screen.line("Nothing was spent yet.", "dim")
        return
    rows = [(one_line(name or "unknown model", 50), spent) for name, spent in costs.models.items()]
    if len(rows) > 1:
        requests = sum(spent.requests for spent in costs.models.values())
        rows.append(("in total", Spent(requests, costs.usage, costs.cost, costs.unknown)))
    width = max(len(name) for name, _ in rows)
    for name, spent in rows:
        usage = spent.usage
        cached = f" ({usage.cached:,} cached)" if usage.cached else ""
        times = f"{spent.requests} request{'' if spent.requests == 1 else 's'}"
        tokens = f"{usage.input:,}{cached} + {usage.output:,} tokens"
        screen.line(f"  {name:<{width}}  {times} · {tokens} · {price(name, spent)}")


def price(model: str, spent: Spent) -> str:
    """What is known of a price."""
    if model.startswith("local:"):
        return "free (local model)"
    if spent.unknown and spent.unknown == spent.requests:
        return "cost unknown"
    more = f" + {spent.unknown} of unknown cost" if spent.unknown else ""
    return dollars(spent.cost) + more


def context(screen: Screen, conversation: Conversation) -> None:
    """What fills the model's window."""
    agent, last, window = conversation.agent, conversation.costs.last, conversation.window
    if not isinstance(agent, ToolCallAgent):
        screen.line(f"The conversation has {len(agent.messages)} messages.")
        return
    request, meter = agent.next_request, agent.meter
    bare = Request(messages=())
    parts = [
        ("system prompt", meter.estimate(replace(bare, system=request.system)), ""),
        ("tools", meter.estimate(replace(bare, tools=request.tools)), f"{len(request.tools)} tools"),
        ("conversation", meter.estimate_messages(request.messages), f"{len(request.messages)} messages"),
    ]
    for name, tokens, detail in parts:
        screen.line(
            f"  {name:<14} about {tokens:>9,} tokens{f'  ({detail})' if detail else ''}{_share(tokens, window)}"
        )
    if last is not None:
        size = _size(last)
        screen.line(f"  {'last request':<14}       {size:>9,} tokens, as the provider counted{_share(size, window)}")
    screen.line(f"  {'window':<14}       {f'{window:>9,} tokens' if window else '  unknown for this model'}")


def _size(usage: Usage) -> int:
    return usage.input + usage.output


def _share(tokens: int, window: int | None) -> str:
    return f"  {100 * tokens / window:.0f} %" if window else ""


def tools(screen: Screen, agent: BaseAgent) -> None:
    """The tools of the agent, with the first line of what they are for."""
    if not isinstance(agent, ToolCallAgent) or not list(agent.available_tools):
        screen.line("This agent has no tools.", "dim")
        return
    found = sorted(agent.available_tools, key=lambda tool: (_server(tool), tool.name))
    for server, those in groupby(found, _server):
        if server:
            screen.line(f"Of the MCP server {one_line(server, 60)}:", "bold")
        group = list(those)
        width = min(max(len(tool.name) for tool in group), 44)
        for tool in group:
            first = next(iter((tool.description or "").strip().splitlines()), "")
            screen.line(one_line_kept(f"  {one_line(tool.name, 64):<{width}}  {first}", screen.columns - 1))


def _server(tool: Tool) -> str:
    """Whose tool it is; '' for ours, which come first."""
    return tool.server if isinstance(tool, MCPClientTool) else ""


def one_line_kept(text: str, columns: int) -> str:
    """The text cut to one line, with the blanks that align it."""
    indent = len(text) - len(text.lstrip(" "))
    name, gap, rest = text[indent:].partition("  ")
    blanks = " " * (len(rest) - len(rest.lstrip(" ")))
    head = f"{' ' * indent}{name}{gap}{blanks}"
    return head + one_line(rest, max(columns - len(head), 10))


def plan(screen: Screen, found: dict[str, Any] | None) -> None:
    """The plan with each step's mark and notes."""
    steps = (found or {}).get("steps") or []
    if not found or not steps:
        screen.line("There is no plan.", "dim")
        return
    done = sum(1 for step in steps if step.get("status") == "completed")
    screen.line(f"  {one_line(str(found.get('title') or 'Plan'), 200)} – {done}/{len(steps)} done", "bold")
    for step in steps:
        mark = _MARKS.get(str(step.get("status")), "[ ]")
        screen.line(f"  {mark} {one_line(str(step.get('text') or ''), 500)}")
        for note in clean_for_terminal(str(step.get("notes") or "")).splitlines():
            screen.line(f"      {note}", "dim")


def undone(screen: Screen, found: Undone) -> None:
    """What /undo did, and what it left alone."""
    for name in found.files:
        screen.line(f"  ↶ {one_line(name, 300)}")
    for name, why in found.skipped:
        screen.line(f"  ! {one_line(name, 300)} was left alone: {one_line(why, 200)}", "yellow")
    if found.files:
        count = len(found.files)
        screen.line(
            f"Taken back: {count} file{'' if count == 1 else 's'}. The agent is told with your next message.", "dim"
        )
    elif found.why:
        screen.line(one_line(found.why[0].upper() + found.why[1:], 500), "yellow")
    elif not found.skipped:
        screen.line("There is nothing to take back.", "dim")
