"""`handwork mcp add`: a server is installed if it needs that, written down, and tried once."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from handwork.cli.clean import show_exactly
from handwork.cli.mcp.configured import Configured, configured, file_to_write
from handwork.cli.mcp.entry import AddOptions, check_name, entry_of, settings_of, with_more
from handwork.cli.mcp.from_others import servers_from
from handwork.cli.mcp.install import installed_for
from handwork.cli.mcp.listing import what_runs
from handwork.cli.mcp.show import draw
from handwork.cli.mcp.trial import examined
from handwork.cli.mcp.visible import files_of_this_folder, hidden_arguments, hidden_program
from handwork.cli.screen import is_terminal, open_screen
from handwork.cli.setup.talk import Left, Talk
from handwork.cli.workspace import real_folder
from handwork.config import MCPServerSettings
from handwork.config.mcp_variables import with_values
from handwork.config.mcp_write import entry_in, has_server, put_server, remove_server, secrets_in
from handwork.config.settings import Home
from handwork.errors import ConfigError, MCPUnavailable
from handwork.mcp.own_command import own_command
from handwork.mcp.programs import Package, package_of, pinned


def run_add(options: AddOptions) -> int:
    """Add what was typed; the exit code. Raises HandworkError, and then nothing was written."""
    if options.source is not None:
        return _add_from(options, options.source)
    if options.name is None:
        raise ConfigError("What is the server to be called?", hint="handwork mcp add NAME -- COMMAND ARGS…")
    if not options.says_what:
        return _Adding(options).mend_known()
    return _Adding(options).add(check_name(options.name), entry_of(options))


def _add_from(options: AddOptions, source: Path) -> int:
    """Take servers over from the file of another program: the one that was named, or all."""
    adding = _Adding(options)
    entries = servers_from(source, options, adding.talk(), human=adding.has_human())
    return max([adding.add(name, entry) for name, entry in entries.items()])


def _package(server: MCPServerSettings) -> Package | None:
    try:
        return package_of(server)
    except MCPUnavailable as error:  # it was typed so
        raise ConfigError(error.what, hint=error.hint) from None


def _as_variable(place: str, entry: Mapping[str, Any]) -> str:
    """How a secret of an entry can be written as a variable of the user's: within a text it is otherwise than as a whole."""
    table, _, key = place.partition(".")
    if not key:
        return "${NAME} in its place"
    scheme = str(entry[table][key]).rpartition(" ")[0] if table == "headers" else ""
    variable = key.upper().replace("-", "_") if table == "env" else "NAME"
    return f"{scheme} env:{variable}".strip() if scheme.isalpha() else f"env:{variable}"


class _Adding:
    """One call of the command: where it writes, and whom it asks."""

    def __init__(self, options: AddOptions) -> None:
        self.options, self.screen = options, open_screen(sys.stderr, spins=False)
        self.folder = real_folder(options.folder)
        self.home = Home.from_environ(os.environ)
        self.file = file_to_write(self.home, self.folder if options.workspace else None)

    def add(self, name: str, entry: dict[str, Any]) -> int:
        """Write a server and try it."""
        options = self.options
        server = settings_of(name, entry)
        is_new = not has_server(self.file, name)
        if not is_new:
            self._may_replace(name)
        entry = self._with_installed(name, entry, server)
        entry = self._with_visible(entry, settings_of(name, entry))
        entry = self._with_named(entry, settings_of(name, entry))
        put_server(self.file, name, entry, private=not options.workspace)
        self._say_written("Added" if is_new else "Replaced", name, entry)
        if options.no_test:
            return 0
        works = self._try(name, entry)
        if not works and options.strict and is_new:
            remove_server(self.file, name)
            self.screen.line(f"{name} was taken out again, as --strict says.", "yellow")
        elif not works:
            self.screen.line(f"{name} stays as it is written. When that is mended: {own_command('test', name)}")
        return 0 if works or not options.strict else 1

    def mend_known(self) -> int:
        """Install what a server needs that is configured already, and add to its entry what was typed; the rest of it stays."""
        options = self.options
        found = self._known(options.name or "")
        if options.says_more:
            self._add_to(found)
            found = self._known(found.name)
        package = _package(found.settings)
        if package is not None:
            installed_for(
                found.name, package, self.home, yes=options.yes, scripts=options.scripts, anew=options.replace
            )
        elif not options.says_more:
            hint = "to change it, say what it is: handwork mcp add NAME --replace -- COMMAND ARGS…"
            raise ConfigError(f"{found.name} is there ({what_runs(found.settings)}) and needs no installing", hint=hint)
        if options.no_test:
            return 0
        settings, _ = configured(options.config, self.folder)
        looked, wrong = examined(found.name, found.settings, settings, self.folder, keeps=True)
        draw(looked, wrong, open_screen(sys.stdout, spins=False))
        return 0 if looked.offer is not None else 1

    # ---- steps

    def _known(self, name: str) -> Configured:
        """The server of that name, as it is configured now."""
        _, servers = configured(self.options.config, self.folder)
        if name in servers:
            return servers[name]
        near = get_close_matches(name, servers, 1, 0.5)
        begin = f"did you mean {near[0]}? A new one: " if near else ""
        hint = f"{begin}say how it is started, as in `handwork mcp add {name} -- uvx {name}`, or where it is: --url URL"
        raise ConfigError(f"There is no MCP server {name!r} yet", hint=hint)

    def _add_to(self, found: Configured) -> None:
        """Add what was typed to an entry that is there."""
        entry = entry_in(self.file, found.name)
        if not isinstance(entry, dict):
            place = found.file or "the environment"
            raise ConfigError(
                f"{found.name} is not in {self.file}, but in {place}",
                hint="write it there yourself"
                if self.options.workspace
                else "--workspace, if that is this folder's own",
            )
        more = with_more(entry, self.options)
        settings_of(found.name, more)
        put_server(self.file, found.name, more, private=not self.options.workspace)
        self._say_written("Changed", found.name, more)

    def _may_replace(self, name: str) -> None:
        if self.options.replace:
            return
        taken = ConfigError(f"{self.file} has a server {name} already", hint="--replace puts this one in its place")
        if not self.has_human():
            raise taken
        try:
            if self.talk().ask(f"{name} is there already. Put this one in its place? [y]es, [n]o: ").lower() in (
                "y",
                "yes",
            ):
                return
        except Left:
            pass
        raise taken

    def _with_installed(self, name: str, entry: dict[str, Any], server: MCPServerSettings) -> dict[str, Any]:
        """The entry with the exact version of what was installed for it."""
        if not server.sandbox or (package := _package(server)) is None:
            return entry
        options = self.options
        found = installed_for(name, package, self.home, yes=options.yes, scripts=options.scripts, anew=True)
        return {**entry, "args": list(pinned(server, package, found.version))}

    def _with_visible(self, entry: dict[str, Any], server: MCPServerSettings) -> dict[str, Any]:
        """The entry with the folder of its program among its paths, if that would not be seen and the human agrees."""
        hidden = hidden_program(server, self.folder)
        if hidden is None or _package(server) is not None:
            return entry
        shown = ", ".join(hidden.paths) or hidden.command
        self.screen.line(f"The sandbox does not show {show_exactly(hidden.command)}.", "yellow")
        if not self.options.yes and not self._agrees(f"Let it read {show_exactly(shown)}?"):
            self.screen.line('→ "paths" in its entry shows it: --path, or --yes, says so at once')
            return entry
        paths = list(dict.fromkeys((*server.paths, *hidden.paths)))
        return {**entry, "command": hidden.command, **({"paths": paths} if paths else {})}

    def _with_named(self, entry: dict[str, Any], server: MCPServerSettings) -> dict[str, Any]:
        """The entry with those paths of its arguments that the sandbox would not show, if the human agrees."""
        hidden = hidden_arguments(server, self.folder)
        if not hidden or not self.has_human():
            return entry
        self.screen.line(f"The sandbox does not show {show_exactly(', '.join(hidden))}.", "yellow")
        if not self._agrees("Let the server read that?"):
            return entry
        return {**entry, "paths": [*server.paths, *hidden]}

    def _say_written(self, how: str, name: str, entry: Mapping[str, Any]) -> None:
        say = self.screen.line
        say(f"{how}: {name}, in {show_exactly(str(self.file))}", "green")
        for place in secrets_in(entry):
            as_variable = _as_variable(place, entry)
            say(
                f"! {place} stands there as it is; {as_variable} would take it from your environment at each start",
                "yellow",
            )
        if entry.get("sandbox") is False:
            say("! It runs beside the sandbox, with your rights and your network", "yellow")
        if files := [] if self.options.workspace else files_of_this_folder(entry.get("args", ()), self.folder):
            say(
                f"! {show_exactly(files[0])} is looked for in whatever folder the agent works: in others it is not there",
                "yellow",
            )
            say("→ --workspace writes the server into this folder's own file", "dim")
        if self.options.workspace:
            say("→ The files of this folder have changed: its next run asks whether you trust them", "dim")

    def _try(self, name: str, entry: dict[str, Any]) -> bool:
        options = self.options
        settings, _ = configured(options.config, self.folder)
        server = with_values(settings_of(name, entry), os.environ, str(self.folder))
        looked, wrong = examined(name, server, settings, self.folder, keeps=True)
        draw(looked, wrong, open_screen(sys.stdout, spins=False))
        return looked.offer is not None

    # ---- whom it asks

    def has_human(self) -> bool:
        return is_terminal(sys.stdin) and is_terminal(sys.stderr)

    def talk(self) -> Talk:
        return Talk(self.screen, sys.stdin)

    def _agrees(self, question: str) -> bool:
        try:
            return self.has_human() and self.talk().agree(question)
        except Left:
            return False
