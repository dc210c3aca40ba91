"""What the user's folder holds of configured servers' definitions, as one session reads and writes it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from handwork.config import MCPServerSettings, Settings
from handwork.errors import ConfigError
from handwork.mcp.approved import Approved, Record
from handwork.mcp.changes import changes
from handwork.mcp.offer import Offer
from handwork.schema import Notify

_ANOTHER = "The MCP server {name} is another one than when its tools were approved: they are taken as they are now."
_FRESH = timedelta(days=1)
"""A record that says the same is not written again so soon."""
_OLD = timedelta(days=7)
"""After so long a server is looked at although nobody calls it: what it has new would never be seen otherwise."""


class Records:
    """Read once a session each. Who named a server otherwise than in a file, a program or an option, takes it as it is: it has none."""

    def __init__(self, settings: Settings, notify: Notify) -> None:
        self._configured, self._notify = settings.mcp.servers, notify
        self._approved = Approved(settings.home.config / "mcp")
        self._read: dict[str, Record | None] = {}
        self._told = False

    def is_configured(self, name: str, settings: MCPServerSettings) -> bool:
        """Whether a file names this server."""
        return self._configured.get(name) == settings

    def find(self, name: str, settings: MCPServerSettings) -> Offer | None:
        """The server's offer as it was approved. Raises ConfigError for a record that cannot be used."""
        found = self._record(name, settings)
        return found.offer if found is not None else None

    def is_old(self, name: str, settings: MCPServerSettings) -> bool:
        """Whether there is a record, written so long ago that the server should be looked at. Raises ConfigError."""
        found = self._record(name, settings)
        return found is not None and _age(found) > _OLD

    def keep(self, name: str, settings: MCPServerSettings, offer: Offer) -> None:
        """Write an offer down, unless it says what is written already; that it could not be is told."""
        record = self._record(name, settings)
        same = record is not None and record.offer.resources == offer.resources and not changes(record.offer, offer)
        if not self.is_configured(name, settings) or (same and record is not None and _age(record) < _FRESH):
            return
        try:
            self._approved.keep(name, settings, offer)
            self._read[name] = self._approved.record(name, settings)
        except ConfigError as error:
            if not self._told:  # a full disk says so at each step
                self._told = True
                self._notify("warning", str(error))

    def _record(self, name: str, settings: MCPServerSettings) -> Record | None:
        if not self.is_configured(name, settings):
            return None
        if name not in self._read:
            found = self._approved.record(name, settings)
            if found is not None and not found.is_about(settings):
                self._notify("info", _ANOTHER.format(name=name))
                found = None
            self._read[name] = found
        return self._read[name]


def _age(record: Record) -> timedelta:
    try:
        return datetime.now(UTC) - datetime.fromisoformat(record.when)
    except (ValueError, TypeError):
        return _OLD * 2
