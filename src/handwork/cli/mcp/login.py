"""`handwork mcp login` and `logout`: a person logs in at a server by their browser; what that brings is kept, or forgotten."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from handwork.cli.clean import show_exactly
from handwork.cli.lines import Screen
from handwork.cli.mcp.browser import can_open, open_browser
from handwork.cli.mcp.configured import configured
from handwork.cli.mcp.named import named_server
from handwork.cli.program import program
from handwork.cli.screen import is_terminal, open_screen
from handwork.cli.workspace import real_folder
from handwork.config import MCPServerSettings, Settings
from handwork.errors import ConfigError
from handwork.mcp.login import Person, log_in, log_out


def run_login(what: str, workspace: Path | None, config: Path | None, *, scope: str = "", browser: bool = True) -> int:
    """Log in at a server, NAME or URL; the exit code. Raises ConfigError and MCPUnavailable.

    Args:
        scope: the rights to ask for ('': those that the server or its entry names).
        browser: open one, if it can be seen.
    """
    name, server, settings = _server(what, workspace, config)
    screen = open_screen(sys.stdout, spins=False)
    opens = browser and is_terminal(sys.stdout) and can_open(os.environ)
    person = _at_the_terminal(name, screen, opens)
    home = settings.home.config / "mcp"
    where = asyncio.run(log_in(name, server, home=home, environ=settings.environ, person=person, scope=scope))
    if where is None:
        screen.line(f"The MCP server {show_exactly(name)} wants no login: there is nothing to do.")
    else:
        screen.line(f"Logged in at the MCP server {show_exactly(name)}; the login is kept in {show_exactly(where)}.")
        screen.line(f"{program()} mcp logout {show_exactly(name)} ends it.")
    return 0


def run_logout(what: str, workspace: Path | None, config: Path | None) -> int:
    """Forget the login at a server, and take it back there; the exit code. Raises ConfigError and MCPUnavailable."""
    name, server, settings = _server(what, workspace, config)
    screen = open_screen(sys.stdout, spins=False)
    home = settings.home.config / "mcp"
    there, still = asyncio.run(log_out(name, server, home=home, environ=settings.environ))
    if not there:
        screen.line(f"There was no login at the MCP server {show_exactly(name)}.")
        return 0
    screen.line(f"Logged out from the MCP server {show_exactly(name)}: its login is forgotten here.")
    if still:
        screen.line(f"It may still be taken there: {show_exactly(still)}")
    return 0


def _server(what: str, workspace: Path | None, config: Path | None) -> tuple[str, MCPServerSettings, Settings]:
    settings, servers = configured(config, real_folder(workspace))
    name, server = named_server(what, {each.name: each.settings for each in servers.values()})
    if server.type == "stdio":
        raise ConfigError(
            f"The MCP server {name} is a program, at which nobody logs in", hint="what it needs goes into its env"
        )
    return name, server, settings


def _at_the_terminal(name: str, screen: Screen, opens: bool) -> Person:
    types = is_terminal(sys.stdin) and os.name == "posix"

    def visit(url: str) -> None:
        screen.line(f"The MCP server {show_exactly(name)} wants you to log in. Open this address in a browser:\n")
        print(f"  {url}\n", flush=True)  # as a whole, whatever the width: it is to be copied
        if opens and open_browser(url):
            screen.line("It was opened in your browser.")
        if types:
            screen.line("Waiting. If your browser runs on another machine, the page at the end will not load there:")
            screen.line("copy its address from the browser, and paste it here.")

    def wrong(expected: str) -> None:
        screen.line(
            f"That is not where this login ends: that address begins with {expected}, and each login has its own."
        )

    return Person(visit, _Typed().line if types else None, wrong)


@dataclass(slots=True)
class _Typed:
    """Lines typed at the terminal, read without a thread that could not be ended."""

    waiting: bytes = field(default=b"")

    async def line(self) -> str:
        """The next line that is not empty; '' at the end of the input."""
        while True:
            while b"\n" not in self.waiting:
                read = await _readable(sys.stdin.fileno())
                if not read:
                    return ""
                self.waiting += read
            line, _, self.waiting = self.waiting.partition(b"\n")
            if text := line.decode(errors="replace").strip():
                return text


async def _readable(descriptor: int) -> bytes:
    loop, came = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, came.set)
    try:
        await came.wait()
        with contextlib.suppress(OSError):
            return os.read(descriptor, 1 << 16)
        return b""
    finally:
        loop.remove_reader(descriptor)
