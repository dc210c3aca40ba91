"""The line below the prompt: model, workspace, plan, context, cost and what may run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prompt_toolkit.utils import get_cwidth

from handwork.cli.clean import clean_for_terminal, one_line


def status_line(parts: list[tuple[int, str]], columns: int) -> str:
    """The parts (rank, text) in one line; where there is no room the highest ranks are left out first."""
    kept = [(rank, text) for rank, text in parts if text]
    while len(kept) > 1 and get_cwidth(_joined(kept)) > columns:
        worst = max(rank for rank, _ in kept)
        kept = [part for part in kept if part[0] != worst]
    return one_line(_joined(kept), columns)


def _joined(parts: list[tuple[int, str]]) -> str:
    return " · ".join(text for _, text in parts)


def shortened(path: Path, limit: int = 40) -> str:
    """A folder's path for people: ~ for the home folder, and the middle left out if it is long."""
    home = str(Path.home())
    text = str(path)
    if text == home or text.startswith(f"{home}/"):
        text = "~" + text[len(home) :]
    text = clean_for_terminal(text).replace("\n", "?")
    if get_cwidth(text) <= limit:
        return text
    parts = text.split("/")
    while len(parts) > 3 and get_cwidth("/".join(parts)) > limit - 2:
        del parts[1 if parts[0] else 2]
    head = parts[0] or f"/{parts[1]}"
    rest = "/".join(parts[1 if parts[0] else 2 :])
    return one_line(f"{head}/…/{rest}", limit)


def plan_progress(plan: dict[str, Any] | None) -> str:
    """`plan 2/5`; '' without a plan."""
    steps = (plan or {}).get("steps") or []
    if not steps:
        return ""
    done = sum(1 for step in steps if isinstance(step, dict) and step.get("status") == "completed")
    return f"plan {done}/{len(steps)}"


def dollars(cost: float) -> str:
    return f"${cost:.2f}" if cost >= 1 or cost == 0 else f"${cost:.4f}"
