"""Where the real servers run in tests: a workspace in a sandbox, and a person who answers from a list."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from handwork.config import MCPServerSettings, SandboxSettings
from handwork.mcp.connection import Connection
from handwork.mcp.content import Answer, Media, Text
from handwork.mcp.surroundings import Surroundings
from handwork.sandbox.base import Process, Sandbox
from handwork.sandbox.open import open_sandbox


@dataclass
class Person:
    """Is asked, and answers as she was told to beforehand; `asked` holds the questions."""

    answers: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def __call__(self, question: str) -> str:
        self.asked.append(question)
        return self.answers.pop(0)


@dataclass
class Place:
    """`connect` gives a connection that is closed with the place; nothing of it has started yet."""

    workspace: Path
    sandbox: Sandbox
    surroundings: Surroundings
    person: Person
    notices: list[tuple[str, str]]
    opened: list[Connection] = field(default_factory=list)

    def connect(self, name: str, *, root: str = "", alone: bool = False, **settings: object) -> Connection:
        """`root` is what it is told of the workspace; `alone`: nobody is there to be asked."""
        around = replace(self.surroundings, workspace=root or str(self.workspace), ask=None if alone else self.person)
        connection = Connection(name, MCPServerSettings.model_validate(settings), around)
        self.opened.append(connection)
        return connection


@asynccontextmanager
async def place_in(folder: Path, *, readable: Sequence[Path] = ()) -> AsyncIterator[Place]:
    """A place whose sandbox sees `readable` as well."""
    workspace, notices, person = folder / "workspace", list[tuple[str, str]](), Person()
    workspace.mkdir(parents=True)

    def notify(level: str, text: str) -> None:
        notices.append((level, text))

    sandbox = open_sandbox(
        SandboxSettings(),
        workspace=workspace,
        artifacts=folder / "artifacts",
        notify=notify,
        readable=readable,
    )

    async def spawn(argv: Sequence[str], *, cwd: str | None, env: Mapping[str, str], contained: bool) -> Process:
        assert contained
        return await sandbox.spawn(argv, cwd=cwd, env=env, stdin=True, apart=True)

    around = Surroundings(
        spawn=spawn, workspace=str(workspace), home=folder / "home", notify=notify, ask=person, environ={}
    )
    place = Place(workspace, sandbox, around, person, notices)
    try:
        yield place
    finally:
        for connection in place.opened:
            await connection.close()
        await sandbox.close()


def text_of(answer: Answer) -> str:
    """All that it says in words."""
    return "\n".join(part.text for part in answer.parts if isinstance(part, Text))


def pictures_of(answer: Answer) -> list[Media]:
    return [part for part in answer.parts if isinstance(part, Media) and part.kind == "image"]
