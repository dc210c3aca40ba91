"""What the conformance suite drives as a client: our connection at the address that it gives, with a person who answers at once."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.request import urlopen

from handwork.config import MCPServerSettings
from handwork.errors import MCPServerError
from handwork.mcp.connection import Connection
from handwork.mcp.content import Answer
from handwork.mcp.login import Person, log_in
from handwork.mcp.surroundings import Surroundings
from handwork.sandbox.base import Process

_LOGINS = 3
"""How often a person would log in again for one call."""
_VALUES = {"number": 2, "integer": 2, "string": "two", "boolean": True}


async def _no_program(argv: Sequence[str], *, cwd: str | None, env: Mapping[str, str], contained: bool) -> Process:
    raise AssertionError("the suite gives addresses only")


async def _defaults(question: str) -> str:
    """A person who takes what is proposed."""
    return ""


def _open(address: str) -> None:
    """The person's browser: it goes where it is sent, back to us at the end."""
    threading.Thread(target=lambda: urlopen(address, timeout=60).close(), daemon=True).start()


async def _log_in(settings: MCPServerSettings, home: Path, scope: str) -> None:
    where = await log_in("suite", settings, home=home, environ={}, person=Person(visit=_open), scope=scope, patience=60)
    print(f"logged in: {where}", file=sys.stderr)


async def _call_all(connection: Connection) -> list[Answer]:
    """Every tool once, with any values that its schema takes."""
    answers = []
    for tool in (await connection.ready()).tools:
        properties = tool.parameters.get("properties")
        given = {}
        for name, schema in (properties if isinstance(properties, dict) else {}).items():
            kind = schema.get("type") if isinstance(schema, dict) else None
            given[name] = _VALUES.get(str(kind), "two")
        answers.append(await connection.call(tool.name, given))
    return answers


async def _drive(url: str, settings: MCPServerSettings, home: Path) -> int:
    around = Surroundings(
        spawn=_no_program,
        workspace=str(home),
        home=home,
        notify=lambda level, text: print(f"{level}: {text}", file=sys.stderr),
        ask=_defaults,
        environ={},
    )
    for _ in range(_LOGINS + 1):
        connection = Connection("suite", settings, around)
        try:
            for answer in await _call_all(connection):
                print(answer)
            return 0
        except MCPServerError as error:
            said = f"{error.what} → {error.hint}"
            print(said, file=sys.stderr)
            if "handwork mcp login" not in said:
                return 1
            await _log_in(settings, home, next(iter(shlex.split(said.partition("--scope ")[2])), ""))
        finally:
            await connection.close()
    return 1


def main(url: str) -> int:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    known = {name: context[name] for name in ("client_id", "client_secret") if name in context}
    if os.environ.get("MCP_CONFORMANCE_SCENARIO") == "auth/client-credentials-basic":
        known["grant"] = "client_credentials"
    settings = MCPServerSettings.model_validate({"type": "http", "url": url, "timeout": 60, "oauth": known})
    with tempfile.TemporaryDirectory() as home:
        try:
            return asyncio.run(_drive(url, settings, Path(home)))
        except MCPServerError as error:
            print(f"{type(error).__name__}: {error.what} → {error.hint}", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
