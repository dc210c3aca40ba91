"""Installs what a server's runner would fetch, after asking: which package, which version, from where, into which folder."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from handwork.cli.mcp.fetching import Found, already, install, look_up
from handwork.cli.screen import is_terminal, open_screen
from handwork.cli.setup.talk import Left, Talk
from handwork.config.settings import Home
from handwork.errors import ConfigError
from handwork.mcp.programs import Installed, Package, folder_for

R = TypeVar("R")


def installed_for(
    name: str, package: Package, home: Home, *, yes: bool, scripts: bool, anew: bool = False
) -> Installed:
    """What is installed of a package, now if it was not before. Raises ConfigError if it cannot be, or may not.

    yes: nobody is asked. anew: another version may have come since.
    """
    if not anew and (found := already(package, home)):
        return found
    if scripts and not yes and package.kind == "python":
        _agree_to_a_look(name, package)
    wanted = _waiting(look_up(package, home, scripts=scripts), f"looking for {package.requirement}")
    screen = open_screen(sys.stderr, spins=False)
    same = already(Package(package.kind, package.name, wanted.version, package.extras, package.more), home)
    if same and same.asked == package.version:
        return same
    for line in _words(wanted, home, scripts):
        screen.line(line)
    if not yes:
        _agree(name, package)
    done = _waiting(install(wanted, home, scripts=scripts), f"installing {package.name} {wanted.version}")
    screen.line(f"Installed: {package.name} {wanted.version}.", "green")
    return done


def _words(found: Found, home: Home, scripts: bool) -> list[str]:
    package = found.package
    by = "npm" if package.kind == "npm" else "pip"
    source = f"{package.origin} ({found.host})" if found.host else package.origin
    kept = (
        "what they bring along for their installation is run"
        if scripts
        else "nothing that they bring along is run for that"
    )
    more = f" with {', '.join(package.more)}" if package.more else ""
    return [
        f"{package.name}{package.extras} {found.version}{more} has to be installed before the server can start in the sandbox:",
        f"  {by} fetches it, and what it needs, from {source}; {kept}",
        f"  into {folder_for(package, found.version, home)}",
    ]


def _agree_to_a_look(name: str, package: Package) -> None:
    """Which version a source package is, only its own code tells pip: that must not run before somebody was asked."""
    line = open_screen(sys.stderr, spins=False).line
    line(
        f"{package.requirement} may run code of its own as soon as it is looked at, outside of the sandbox: --scripts allows it."
    )
    _agree(name, package, "Look at it?")


def _agree(name: str, package: Package, question: str = "Install it?") -> None:
    refused = ConfigError(f"{package.name} is not installed, so {name} was not added")
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise ConfigError(refused.what, hint="nobody is there to be asked: --yes says that it may be installed")
    try:
        if Talk(open_screen(sys.stderr, spins=False), sys.stdin).agree(question):
            return
    except Left:
        pass
    raise refused


def _waiting(work: Coroutine[Any, Any, R], what: str) -> R:
    """The result of work for which somebody waits at the terminal."""

    async def done() -> R:
        screen = open_screen(sys.stderr)
        screen.wait(what)
        try:
            return await work
        finally:
            screen.wait("")

    return asyncio.run(done())
