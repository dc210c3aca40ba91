"""All attacks, by the rows of FAULTS.md."""

from __future__ import annotations

from collections.abc import Mapping

from .commands import COMMANDS
from .files import FILES
from .greed import GREED, LIMITS
from .network import NETWORK
from .processes import PROCESSES
from .row import Row
from .secrets import SECRETS
from .texts import TEXTS
from .workspace import WORKSPACE

GROUPS: Mapping[str, list[Row]] = {
    "files": FILES,
    "commands": COMMANDS,
    "processes": PROCESSES,
    "network": NETWORK,
    "workspace": WORKSPACE,
    "texts": TEXTS,
    "secrets": SECRETS,
    "greed": GREED,
}
SANDBOX: Mapping[str, Mapping[str, object]] = {"greed": LIMITS}
"""[sandbox] of a group."""
