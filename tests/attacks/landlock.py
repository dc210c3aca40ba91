"""What the landlock sandbox does not hold although bwrap does, by the attacks' names; it says each of it when it starts."""

from __future__ import annotations

from collections.abc import Mapping

_SOCKETS = "sockets are reached by their paths"
_MODES = "modes and times of the user's other files can be changed"
_KEYS = "the names of keys can be seen"
_WHOLE = "a repository's folder can be moved as a whole, with the settings and hooks in it"
_LISTED = "the list of processes and their command lines can be seen"

NOT_HELD: Mapping[str, str] = {
    "python: a unix socket outside": _SOCKETS,
    "python: a unix socket in the workspace": _SOCKETS,
    "python: a unix socket by a link": _SOCKETS,
    "python: a unix socket by another name": _SOCKETS,
    "python: a unix socket that was renamed": _SOCKETS,
    "curl by a unix socket": _SOCKETS,
    "change a mode outside": _MODES,
    "set an attribute outside": _MODES,
    "keys of the kernel": _KEYS,
    "see processes outside": _LISTED,
    "a git folder elsewhere": _WHOLE,
}
NOT_TRIED = frozenset({"change a mode of the system"})
"""As root these would change the machine."""
