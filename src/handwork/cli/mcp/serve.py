"""`handwork mcp serve`: our tools, and an agent, for other programs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from handwork.cli.clean import clean_for_terminal
from handwork.cli.mcp.standard_error import nobody_need_read
from handwork.cli.options import RunOptions
from handwork.cli.trust.glance import carries_something
from handwork.cli.workspace import make_folder
from handwork.config import Settings
from handwork.errors import ConfigError
from handwork.sandbox.open import check_workspace
from handwork.sandbox.ready import check_backend
from handwork.server.house import House, chosen
from handwork.server.signals import stopped_by_signals

_Serving: TypeAlias = Callable[[House, asyncio.Event], Awaitable[None]]
HOST = "127.0.0.1"
_TOKEN = "mcp-serve.token"


def serve(
    options: RunOptions,
    *,
    transport: Literal["stdio", "http"] = "stdio",
    tools: str | None = None,
    host: str | None = None,
    port: int | None = None,
    token_file: Path | None = None,
) -> int:
    """Serve until standard input ends or a signal comes; returns the exit code.

    Args:
        options: of a run: workspace, sandbox, net, allow_net, approve, config, model, base_url, the limits.
        tools: names with commas between them; None: all.
        host, port, token_file: for http. Port 0, as if left out: a free one. A file that is not there is made.

    Raises HandworkError for what is wrong before it begins.
    """
    names = chosen(tools.split(",") if tools is not None else None)
    if transport == "stdio" and (host, port, token_file) != (None, None, None):
        raise ConfigError("--host, --port and --token-file belong to --transport http")
    if transport == "http" and carries_something(options.workspace):
        from dataclasses import replace

        from handwork.cli.trust.question import ask_about  # most folders carry nothing

        options = replace(options, trusted=ask_about(options.workspace, options.config))
    settings, workspace = options.settings(), options.folder
    check_workspace(settings.sandbox, workspace)
    make_folder(workspace)
    house = House(settings, workspace, names, _say)
    serving: _Serving = _over_stdio
    if transport == "http":
        serving = partial(_over_http, (host or HOST, port or 0, token_file or settings.home.config / _TOKEN))
    with nobody_need_read():
        for text in settings.notices:
            _say(text)
        asyncio.run(_serve(house, serving, settings))
    return 0


async def _serve(house: House, serving: _Serving, settings: Settings) -> None:
    await check_backend(settings.sandbox, settings.daytona, settings.environ)
    with stopped_by_signals() as stop:
        await serving(house, stop)


async def _over_stdio(house: House, stop: asyncio.Event) -> None:
    from handwork.server.over_stdio import serve_stdio  # each imports what the other does not need

    await serve_stdio(house, stop)


async def _over_http(address: tuple[str, int, Path], house: House, stop: asyncio.Event) -> None:
    from handwork.server.over_http import Address, serve_http

    await serve_http(house, Address(*address), stop)


def _say(text: str) -> None:
    """A line for whoever looks after the server; standard output is the client's."""
    sys.stderr.write(f"handwork: {clean_for_terminal(text)}\n")
