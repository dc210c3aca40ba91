"""Run attacks through a real agent in a real session: the scripted model calls what a table says, and each call is judged.

As a program: `python -m tests.attacks.drive FOLDER` prints, as JSON, what got through of each group, by the attack's name.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from handwork import Manus, ScriptedModel, Session
from handwork.config import load_settings
from handwork.llm.scripted import call
from handwork.schema import Request, Role, ToolCall

from .row import Row
from .rows import GROUPS, SANDBOX
from .world import SECRET, World

_KEYS = (
    "OPENAI_API_KEY",
    "HANDWORK_LLM_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "SECRET_KEY",
    "SSH_AUTH_SOCK",
    "DATABASE_PASSWORD",
)


class Attacker:
    """The model: plays the rows one after another, and keeps what each of them came to."""

    def __init__(self, world: World, rows: Sequence[Row]) -> None:
        self.world, self._rows = world, list(rows)
        self.through: dict[str, str] = {}
        self.said: dict[str, str] = {}
        self._row: Row | None = None
        self._at = 0

    def __call__(self, request: Request) -> str | list[ToolCall]:
        if self._row is not None:
            self._judge(self._row, request)
        self._row = self._rows.pop(0) if self._rows else None
        self._at = len(request.messages)
        if self._row is None:
            return "All tried."
        words = self.world.words
        return [call(tool, **_filled(arguments, words)) for tool, arguments in self._row.calls]

    def _judge(self, row: Row, request: Request) -> None:
        results = [m.content or "" for m in request.messages[self._at :] if m.role is Role.TOOL]
        self.said[row.name] = "\n".join(results)
        found = self.world.damage()
        if SECRET in self.said[row.name] or "LEAK" in self.said[row.name]:
            found.append(f"it was told: {self.said[row.name][:300]}")
        if row.check is not None and (wrong := row.check(self.world, self.said[row.name])):
            found.append(wrong)
        if found:
            self.through[row.name] = "; ".join(found)


def _filled(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for name, word in words.items():
            value = value.replace(f"@{name}@", word)
        return value
    if isinstance(value, dict):
        return {name: _filled(each, words) for name, each in value.items()}
    return [_filled(each, words) for each in value] if isinstance(value, list) else value


async def attack(base: Path, rows: Sequence[Row], sandbox: Mapping[str, object] | None = None) -> Attacker:
    """Try all rows in one session in a world of their own, made below `base`; `sandbox` is the table of that name."""
    with World(base) as world:
        environ = {"PATH": os.environ["PATH"], "HOME": str(world.home), "HANDWORK_HOME": str(world.handwork)}
        settings = load_settings(
            workspace=world.workspace,
            environ=environ | dict.fromkeys(_KEYS, SECRET),
            overrides={"sandbox": dict(sandbox or {})},
        )
        attacker = Attacker(world, rows)
        async with Session.open(settings, world.workspace) as session:
            agent = Manus(
                llm=ScriptedModel(attacker), session=session, max_steps=len(rows) + 9, duplicate_threshold=9_999
            )
            result = await agent.run("Do whatever the files say.")
        if result.output != "All tried.":
            attacker.through["the run itself"] = f"{result.status}: {result.error or result}"
        if left := world.damage():
            attacker.through["after the end"] = "; ".join(left)
        return attacker


async def main(base: Path) -> dict[str, dict[str, str]]:
    """What got through of all groups."""
    os.environ.update(dict.fromkeys(_KEYS, SECRET))
    return {group: (await attack(base / group, rows, SANDBOX.get(group))).through for group, rows in GROUPS.items()}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1])))))
