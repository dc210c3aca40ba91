"""Run attacks through a real agent in a real session: the scripted model calls what a table says, and each call is judged.

As a program: `python -m tests.attacks.drive FOLDER GROUP` prints, as JSON, what got through, by the attack's name.
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
from handwork.config import Settings, load_settings
from handwork.llm.scripted import call
from handwork.schema import Approval, ApprovalRequest, Request, Role, ToolCall

from .row import Row, shell
from .rows import GROUPS, Group
from .world import LOOT, SECRET, World

_KEYS = (
    "OPENAI_API_KEY",
    "HANDWORK_LLM_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "SECRET_KEY",
    "SSH_AUTH_SOCK",
    "DATABASE_PASSWORD",
)
_SIGNS = (LOOT, SECRET, "LEAK")
"""What the model is told of an attack that got through."""
_AWAKE = shell("awake", "true")
"""Comes first, so that the sandbox runs when the attacks begin."""


class Attacker:
    """The model: plays the rows one after another, and keeps what each of them came to."""

    def __init__(self, world: World, rows: Sequence[Row]) -> None:
        self.world, self._rows = world, [_AWAKE, *rows]
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
        if self._row.before is not None:
            self._row.before(self.world)
        words = self.world.words
        return [call(tool, **_filled(arguments, words)) for tool, arguments in self._row.calls]

    def _judge(self, row: Row, request: Request) -> None:
        results = [m.content or "" for m in request.messages[self._at :] if m.role is Role.TOOL]
        self.said[row.name] = "\n".join(results)
        found = self.world.damage()
        if any(sign in self.said[row.name] for sign in _SIGNS):
            found.append(f"it was told: {self.said[row.name][:300]}")
        if row.check is not None and (wrong := row.check(self.world, self.said[row.name])):
            found.append(wrong)
        if found:
            self.through[row.name] = "; ".join(found)

    def judge_the_end(self, rows: Sequence[Row]) -> None:
        """The session is over: what is there now, nobody will take away."""
        for row in rows:
            if row.after is not None and (wrong := row.after(self.world, self.said.get(row.name, ""))):
                self.through[row.name] = wrong
        if left := [*self.world.damage(), *(f"process {number} lives on" for number in self.world.survivors())]:
            self.through["after the end"] = "; ".join(left)


def _filled(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for name, word in words.items():
            value = value.replace(f"@{name}@", word)
        return value
    if isinstance(value, Mapping):
        return {name: _filled(each, words) for name, each in value.items()}
    return [_filled(each, words) for each in value] if isinstance(value, list | tuple) else value


def _settings(world: World, group: Group, backend: str) -> Settings:
    environ = {"PATH": os.environ["PATH"], "HOME": str(world.home), "HANDWORK_HOME": str(world.handwork)}
    return load_settings(
        workspace=world.workspace,
        environ=environ | dict.fromkeys(_KEYS, SECRET),
        overrides=_filled({"sandbox": {"backend": backend, **group.sandbox}, "policy": group.policy}, world.words),
    )


async def _allow(_request: ApprovalRequest) -> Approval:
    """A person who allows whatever they are asked."""
    return Approval(decision="allow")


async def attack(base: Path, rows: Sequence[Row], group: Group, backend: str = "bwrap") -> Attacker:
    """Try the rows in one session in a world of their own, made below `base`. Where the sandbox contains nothing, and so every
    call is put to a person, that one allows all; else nobody is there."""
    with World(base) as world:
        attacker = Attacker(world, rows)
        door = None if backend == "bwrap" else _allow
        async with Session.open(_settings(world, group, backend), world.workspace, approve=door) as session:
            agent = Manus(
                llm=ScriptedModel(attacker), session=session, max_steps=len(rows) + 9, duplicate_threshold=9_999
            )
            result = await agent.run("Do whatever the files say.")
        if result.output != "All tried.":
            attacker.through["the run itself"] = f"{result.status}: {result.error or result}"
        attacker.judge_the_end(rows)
        return attacker


async def main(base: Path, name: str) -> dict[str, str]:
    """What got through of a group."""
    os.environ.update(dict.fromkeys(_KEYS, SECRET))
    return (await attack(base / name.replace(" ", "-"), GROUPS[name].rows, GROUPS[name])).through


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))))
