"""All attacks, by the rows of FAULTS.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .allowlist import ALLOWLIST, LISTED
from .commands import COMMANDS
from .files import FILES
from .greed import GREED, LIMITS
from .jobs import JOBS
from .network import NETWORK
from .odd import LARGE, ODD
from .processes import PROCESSES
from .row import Row
from .rules import ASKING, ASKS, CONFINED_READS, CONFINED_RUNS, DENIES_READS, DENIES_RUNS, LOOKING, READ_ONLY
from .secrets import SECRETS
from .texts import TEXTS
from .workspace import WORKSPACE


@dataclass(frozen=True, slots=True)
class Group:
    """Attacks that are tried in one session. `sandbox` and `policy` are the tables of these names; a `slow` one takes long;
    `anywhere`: it says something about other sandboxes than bwrap, too."""

    rows: Sequence[Row]
    sandbox: Mapping[str, object] = field(default_factory=dict)
    policy: Mapping[str, object] = field(default_factory=dict)
    slow: bool = False
    anywhere: bool = True


GROUPS: Mapping[str, Group] = {
    "files": Group(FILES),
    "odd files": Group(ODD),
    "large files": Group(LARGE, slow=True),
    "commands": Group(COMMANDS),
    "jobs": Group(JOBS),
    "processes": Group(PROCESSES),
    "network": Group(NETWORK),
    "allow-list": Group(ALLOWLIST, sandbox=LISTED, anywhere=False),
    "workspace": Group(WORKSPACE),
    "texts": Group(TEXTS),
    "secrets": Group(SECRETS),
    "denied reads": Group(CONFINED_READS, policy=DENIES_READS, anywhere=False),
    "denied runs": Group(CONFINED_RUNS, policy=DENIES_RUNS, anywhere=False),
    "nobody to ask": Group(ASKING, policy=ASKS, anywhere=False),
    "read-only": Group(LOOKING, policy=READ_ONLY, anywhere=False),
    "greed": Group(GREED, sandbox=LIMITS, slow=True, anywhere=False),
}
