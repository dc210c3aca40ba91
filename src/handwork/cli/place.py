"""Where a run works: which session it goes on with, if any, and in which folder."""

from __future__ import annotations

from pathlib import Path

from handwork.cli.options import RunOptions
from handwork.cli.sessions import MANY
from handwork.config import Settings
from handwork.errors import ConfigError
from handwork.store.sqlite import Store


def place(options: RunOptions, settings: Settings) -> tuple[str | None, Path]:
    """The session to go on with, if any, and the workspace: as named, else the session's own, else the current folder.

    Raises ConfigError, and JournalError where the store cannot be opened.
    """
    if options.session is not None and options.go_on:
        raise ConfigError(
            "--session and --continue exclude each other", hint="the first names a session, the second takes the last"
        )
    id, folder = options.session, options.folder
    if id is None and not options.go_on:
        return None, folder
    store = Store.open(settings.store_path, synchronous=settings.store.synchronous)
    try:
        id = id or store.latest(str(folder))
        known = {info.id: info.workspace for info in store.sessions(limit=MANY)}
    finally:
        store.close()
    if id is None:
        raise ConfigError(f"There is no session in {folder} to go on with", hint="leave out --continue to begin one")
    own = known.get(id)
    if not own or options.workspace:
        return id, folder
    if not Path(own).is_dir():
        raise ConfigError(f"The workspace of session {id}, {own}, is gone", hint="name another with --workspace")
    return id, Path(own)
