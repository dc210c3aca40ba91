"""What an agent is told of the place where its tools work: that there is no network, or to which hosts it leads."""

from __future__ import annotations

from handwork.config import SandboxSettings

_MOST_NAMED = 20
_NONE = (
    "Programs run in a sandbox without a network (its localhost is its own): nothing can be downloaded or installed from "
    "elsewhere. Where the task needs that, say so: the user can open it with --allow-net HOST or --net."
)
_SOME = (
    "Programs run in a sandbox whose network leads to these hosts only: {hosts}. Others are put to the user, or refused where "
    "nobody is there."
)


def network_words(settings: SandboxSettings) -> str:
    """A sentence for the system prompt, the same as long as the settings are; '' where the network is open or not ours to know."""
    if settings.network or settings.chosen in ("host", "daytona"):
        return ""
    if settings.chosen == "docker":
        return "" if settings.network_enabled else _NONE
    if not settings.allow_net:
        return _NONE
    named = [str(host) for host in settings.allow_net[:_MOST_NAMED]]
    more = len(settings.allow_net) - _MOST_NAMED
    return _SOME.format(hosts=", ".join([*named, *([f"{more} more"] if more > 0 else [])]))
