"""What is wrong with a server, as far as a look at it tells, and how each is mended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from handwork.cli.mcp.look import Looked
from handwork.cli.mcp.visible import hidden_program, is_visible
from handwork.config import MCPServerSettings, Settings
from handwork.errors import MCPLoginNeeded, MCPUnavailable
from handwork.llm.tokens import TokenMeter
from handwork.mcp.actions import WORST, actions_of
from handwork.mcp.own_command import own_command
from handwork.mcp.programs import package_of, program_paths
from handwork.mcp.tool import MCPClientTool
from handwork.schema import Request
from handwork.tool.wording import counted

_SLOW = 5.0
"""Seconds from which on a start is slow."""
_LARGE = 5_000
"""Tokens of all tools together that are felt in each request."""
_NO_NETWORK = re.compile(
    r"ENOTFOUND|EAI_AGAIN|getaddrinfo|gaierror|name resolution|Could not resolve host|Name or service not known"
    r"|ENETUNREACH|Network is unreachable|no such host"
)
_HOST = re.compile(
    r"(?:https?://|ENOTFOUND |EAI_AGAIN |resolve host:? |host=')([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?\.[a-z]{2,})", re.I
)
_PATH = re.compile(r"(?<![\w/.:])(/[^\s'\"<>|:;,()\[\]{}]+)")
_ENGINES = {"docker", "podman", "nerdctl"}
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


@dataclass(frozen=True, slots=True)
class Problem:
    """`what` is wrong, and what mends it ('': that is said already, or nobody here can)."""

    what: str
    mend: str = ""


def problems(looked: Looked, settings: Settings, workspace: Path) -> list[Problem]:
    """All that is wrong; why it does not connect comes first."""
    found = [*_failure(looked), *_in_the_sandbox(looked, settings, workspace), *_said(looked), *_offered(looked)]
    return list(dict.fromkeys(found))


def tokens_of(tools: list[MCPClientTool]) -> int:
    """About how many tokens the definitions take in each request."""
    return TokenMeter().estimate(Request(messages=(), tools=tuple(tool.to_param() for tool in tools))) if tools else 0


def effect(tool: MCPClientTool) -> str:
    """What a call does, by the server's own word, as a policy sees it."""
    action, *_ = actions_of(tool.server, tool.offer.annotations)
    if action == WORST:
        says = any(isinstance(tool.offer.annotations.get(hint), bool) for hint in _HINTS)
        return "may change anything" if says else "may change anything: it does not say what it does"
    if action.kind == "network":
        return "only reads, from any place"
    return "only reads" if action.kind == "read" else "adds or changes, destroys nothing"


def _failure(looked: Looked) -> Iterator[Problem]:
    if (error := looked.error) is None:
        return
    hint = own_command("login", looked.name) if isinstance(error, MCPLoginNeeded) and not error.hint else error.hint
    yield Problem(error.what, hint)


def _in_the_sandbox(looked: Looked, settings: Settings, workspace: Path) -> Iterator[Problem]:
    """What the sandbox does not have that the server seems to need."""
    server = looked.settings
    if server.type != "stdio":
        return
    if not server.sandbox:
        yield Problem("It runs beside the sandbox, with your rights and your network: its entry says sandbox = false")
        return
    text = looked.error.what if looked.error else ""
    if looked.error and PurePath(server.command).name in _ENGINES:
        yield Problem(
            "The sandbox has no container engine",
            _add(
                looked, settings, '"sandbox": false', ["--no-sandbox"], "runs it beside the sandbox, with your rights"
            ),
        )
    elif looked.error and _is_plain(server) and (hidden := hidden_program(server, workspace)):
        paths = json.dumps([*server.paths, *hidden.paths])
        words = [word for path in hidden.paths for word in ("--path", path)]
        yield Problem(
            f"Its program {hidden.command} is here, but not to be seen in the sandbox",
            _add(looked, settings, f'"paths": {paths}', words, "shows it"),
        )
    if _NO_NETWORK.search(text) and not settings.sandbox.network:
        host = found[1] if (found := _HOST.search(text)) else "HOST"
        yield Problem(
            "It looks for the network, which the sandbox does not have",
            _add(looked, settings, f'"allow_net": ["{host}"]', ["--allow-net", host], "opens it to one host"),
        )
    shown = (*server.paths, *program_paths(server, settings.home))
    named = [*server.args, *(match[1] for match in _PATH.finditer(text))]
    for path in dict.fromkeys(each for each in named if each.startswith("/") and _is_hidden(each, shown, workspace)):
        yield Problem(
            f"{path} is here, but not to be seen in the sandbox",
            _add(looked, settings, f'"paths": {json.dumps([path])}', ["--path", path], "shows it, read-only"),
        )


def _is_plain(server: MCPServerSettings) -> bool:
    """Whether it is a program of its own, not one that is installed for it."""
    try:
        return package_of(server) is None
    except MCPUnavailable:
        return False


def _is_hidden(path: str, shown: tuple[str, ...], workspace: Path) -> bool:
    try:
        return Path(path).exists() and not is_visible(path, shown, workspace)
    except (OSError, ValueError):
        return False


def _add(looked: Looked, settings: Settings, text: str, options: Sequence[str], does: str) -> str:
    """What opens something for a server: a command for one that is configured and all of which can be typed, else what its entry
    has to say."""
    if options and looked.name in settings.mcp.servers:
        return f"{own_command('add', looked.name, *options)} {does}"
    return f"{text} in its entry {does}"


def _said(looked: Looked) -> Iterator[Problem]:
    """What was told while it connected."""
    for level, text in looked.notices:
        if level in ("warning", "error"):
            yield Problem(text)
    yield from map(Problem, looked.left_out)
    if looked.banners and looked.offer:
        lines = counted(looked.banners, "line")
        yield Problem(
            f"It wrote {lines} on its standard output that are no messages: skipped",
            "its log belongs on standard error",
        )
    if looked.offer and looked.seconds > _SLOW:
        yield Problem(f"It took {looked.seconds:.0f} s to be there")
    yield from (
        Problem(f"It logged {line}") for line in looked.log if not line.startswith(("info:", "debug:", "notice:"))
    )


def _offered(looked: Looked) -> Iterator[Problem]:
    """What is odd about its tools."""
    if looked.offer is None:
        return
    if not looked.tools:
        everything = "It has no tools" if not looked.offer.tools else "Its entry takes none of its tools"
        yield Problem(everything, "" if not looked.offer.tools else 'look at "tools" and "without_tools" in its entry')
    if odd := [tool for tool in looked.tools if not tool.name.endswith(f"_{tool.original_name}")]:
        named = ", ".join(f"{tool.original_name} → {tool.name}" for tool in odd[:3]) + (" …" if len(odd) > 3 else "")
        yield Problem(
            f"{counted(len(odd), 'tool')} called otherwise, as the names are too long, alike or have other characters: {named}"
        )
    if dumb := [tool for tool in looked.tools if not (tool.description or "").strip()]:
        more = f" and {len(dumb) - 5:,} more" if len(dumb) > 5 else ""
        yield Problem(f"No description: {', '.join(tool.original_name for tool in dumb[:5])}{more}")
    if (tokens := tokens_of(looked.tools)) > _LARGE:
        yield Problem(
            f"Its tools take about {tokens:,} tokens of each request",
            '"tools" in its entry names those that are wanted',
        )
