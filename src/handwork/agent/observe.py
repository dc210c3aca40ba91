"""What the model sees of a result: head and tail within a limit, and where the whole text is (CONTRACT B8)."""

from __future__ import annotations

from handwork.schema import ToolResult
from handwork.session import Session

STEP_LIMIT = 400_000
"""Characters that all results of one step may have together when the agent sets no max_observe."""
STEP_SHARE = 5
"""With max_observe, the results of one step have together at most this many times as much."""


def limit_for(max_observe: int | None, calls: int) -> int:
    """Characters that one of `calls` results of a step may have."""
    each, together = (max_observe, STEP_SHARE * max_observe) if max_observe else (STEP_LIMIT, STEP_LIMIT)
    return min(each, together // max(calls, 1))


async def observe(text: str, limit: int, session: Session, *, name: str, call_id: str) -> str:
    """The text itself if it is short enough, else its head and tail around a note; the whole goes to the artifacts."""
    if len(text) <= limit:
        return text
    artifact = await session.save_artifact(f"{name}-{call_id}.txt", text.encode(), media_type="text/plain")
    seen_as = f"{session.sandbox.artifacts.rstrip('/')}/{artifact.path.rpartition('/')[2]}"
    note = f"\n\n… [{len(text) - limit:,} of {len(text):,} characters are left out here; the whole text is in {seen_as}] …\n\n"
    room = max(limit - len(note), 2)
    head = (room + 1) // 2
    return text[:head] + note + text[-(room - head) :]


def success_text(name: str, result: ToolResult) -> str:
    """OpenManus's words for a call that returned."""
    shown = str(result)
    return f"Observed output of cmd `{name}` executed:\n{shown}" if shown else f"Cmd `{name}` completed with no output"
