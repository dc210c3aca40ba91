"""What a removed server leaves behind that no other one needs: what was approved of it, its login, its installed program."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from handwork.cli.mcp.configured import Configured
from handwork.cli.mcp.fetching import folder_of_installed, uninstall
from handwork.config import MCPServerSettings, Settings
from handwork.errors import ConfigError, MCPUnavailable
from handwork.mcp.address import Address, address_of
from handwork.mcp.approved import Approved
from handwork.mcp.login import log_out
from handwork.mcp.programs import Installed, find, package_of
from handwork.mcp.tokens import TokenStore


@dataclass(frozen=True, slots=True)
class Leftover:
    """`what` it is; `take` takes it away, and returns what is to be said of that. It raises HandworkError if it stays."""

    what: str
    take: Callable[[], Awaitable[str]]


def leftovers(gone: Configured, rest: Mapping[str, Configured], settings: Settings) -> list[Leftover]:
    """What `gone` needed and the servers that are still configured do not; those of other folders are not known here."""
    others = [each.settings for each in rest.values()]
    same = rest[gone.name].settings if gone.name in rest else None
    home = settings.home.config / "mcp"
    return [
        *_record(gone, same, Approved(home)),
        *_login(gone, same, home, settings),
        *_program(gone.settings, others, settings),
    ]


def _record(gone: Configured, same: MCPServerSettings | None, approved: Approved) -> Iterator[Leftover]:
    with suppress(ConfigError):  # one that is damaged is of no use to anybody
        record = approved.record(gone.name, gone.settings)
        if record is None or not record.is_about(gone.settings) or (same and record.is_about(same)):
            return

    async def take() -> str:
        await asyncio.to_thread(approved.forget, gone.name, gone.settings)
        return "What was approved of its tools is forgotten"

    yield Leftover("what was approved of its tools", take)


def _login(gone: Configured, same: MCPServerSettings | None, home: Path, settings: Settings) -> Iterator[Leftover]:
    address = _address(gone.name, gone.settings, settings)
    if address is None or _is_there(_address(gone.name, same, settings), address):
        return
    with suppress(MCPUnavailable):  # what cannot be read is told when it is to be forgotten
        if TokenStore(home, address).state() == "none":
            return

    async def take() -> str:
        plain = _plain(gone.settings)
        there, still = await log_out(gone.name, plain, home=home, environ=settings.environ)
        if not there:
            return "Its login was forgotten already"
        return f"Its login is forgotten here; it may still be taken there: {still}" if still else "Its login is ended"

    yield Leftover("its login", take)


def _program(gone: MCPServerSettings, others: list[MCPServerSettings], settings: Settings) -> Iterator[Leftover]:
    found = _installed(gone, settings)
    if found is None or found in [_installed(each, settings) for each in others]:
        return
    program, folder = f"{found.name} {found.version}", folder_of_installed(found, settings.home)

    async def take() -> str:
        await asyncio.to_thread(uninstall, found, settings.home)
        return f"Its program is deleted: {program}, in {folder}"

    yield Leftover(f"its program {program}", take)


# ---- parts


def _plain(server: MCPServerSettings) -> MCPServerSettings:
    """Without its headers, whose variables need not be set any more for its login to be found."""
    return server.model_copy(update={"headers": {}})


def _address(name: str, server: MCPServerSettings | None, settings: Settings) -> Address | None:
    """Where a login would be made; None for a program, and for what cannot be asked."""
    if server is None or server.type == "stdio":
        return None
    with suppress(MCPUnavailable):
        return address_of(name, _plain(server), settings.environ)
    return None


def _is_there(one: Address | None, other: Address) -> bool:
    return one is not None and (one.origin, one.resource) == (other.origin, other.resource)


def _installed(server: MCPServerSettings, settings: Settings) -> Installed | None:
    with suppress(MCPUnavailable):
        package = package_of(server)
        return find(package, settings.home) if package else None
    return None
