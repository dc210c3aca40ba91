"""Servers from the file of another program: read, and what they want of the user's agreed to before anything starts."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from handwork.cli.clean import show_exactly
from handwork.cli.mcp.entry import NAMES, AddOptions, is_name
from handwork.cli.setup.talk import Left, Talk
from handwork.cli.trust.server_words import OUTSIDE, mcp_effects
from handwork.cli.workspace import real_folder
from handwork.config import MCPServerSettings
from handwork.config.mcp_file import read_servers
from handwork.config.mcp_variables import variables_in
from handwork.errors import ConfigError

_ODD = re.compile(r"[^\w.-]+", re.ASCII)
_OPENS = ("sandbox", "paths", "allow_net", "new_tools")
"""Keys of an entry that take something of the sandbox, or of the questions, away."""


def servers_from(source: Path, options: AddOptions, talk: Talk, *, human: bool) -> dict[str, dict[str, Any]]:
    """The entries of the servers that are to be taken over, in our words: the one that was named, or all.

    A file may have come with a folder: what its servers would have of the machine beyond the sandbox, and which variables they would get,
    is shown, and a person has to say yes to it. Raises ConfigError, and then nothing has happened.
    """
    if options.says_what:
        raise ConfigError("--from takes servers over as they are: leave the command or address out")
    folder = real_folder(options.folder)
    servers = read_servers(source, lambda text: talk.say(f"· {show_exactly(text)}", "yellow"), folder)
    if options.name and options.name not in servers:
        there = ", ".join(servers) or "none"
        raise ConfigError(f"{source} names no server {options.name!r}", hint=f"there are: {there}")
    if not servers:
        raise ConfigError(f"{source} names no servers")
    names = _names([options.name] if options.name else list(servers), servers, talk)
    entries = {name: _entry(servers[theirs]) for name, theirs in names.items()}
    wanting = {name: entry for name, entry in entries.items() if _wants_more(entry)}
    if wanting:
        _agreed(source, wanting, options, talk, human=human)
    return entries


def _names(wanted: Sequence[str], there: Collection[str], talk: Talk) -> dict[str, str]:
    """What the servers are called here, and how each is called there: odd letters become hyphens, which is said; what would then be
    called like another one is left out. Raises ConfigError if nothing is left."""
    names = {name: name for name in wanted if is_name(name)}
    for theirs in (name for name in wanted if not is_name(name)):
        ours = _ODD.sub("-", theirs)[:64].strip("-.")
        if is_name(ours) and ours not in names and ours not in there:
            names[ours] = theirs
            talk.say(f"· {show_exactly(theirs)!r} is added as {ours}", "yellow")
        else:
            talk.say(f"· {show_exactly(theirs)!r} is left out: it is no name for a server", "yellow")
    if not names:
        raise ConfigError("Nothing was added: none of the names can be one here", hint=f"a name is {NAMES}")
    return names


def _entry(server: MCPServerSettings) -> dict[str, Any]:
    """A server as an entry, without what is the default."""
    found: dict[str, Any] = server.model_dump(mode="json", exclude_defaults=True)
    return found


def _wants_more(entry: Mapping[str, Any]) -> bool:
    return any(key in entry for key in _OPENS) or next(variables_in(entry), None) is not None


def _agreed(
    source: Path, wanting: Mapping[str, Mapping[str, Any]], options: AddOptions, talk: Talk, *, human: bool
) -> None:
    effects = list(mcp_effects("mcp", {"servers": wanting}))
    talk.say(f"The servers in {show_exactly(str(source))} want something of yours:")
    for effect in effects:
        talk.say(f"  · {effect}")
    outside = any(OUTSIDE in effect for effect in effects)
    if options.no_sandbox or (options.yes and not outside):
        return
    refused = ConfigError("Nothing was added", hint=f"{'--no-sandbox' if outside else '--yes'} agrees to this at once")
    if not human:
        raise refused
    try:
        answer = talk.ask("Give it to them? Type yes: ").lower()
    except Left:
        raise refused from None
    if answer != "yes":
        raise refused
