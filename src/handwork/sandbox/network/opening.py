"""The proxy that a sandbox's settings ask for, where its backend can have one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from handwork.config import SandboxSettings
from handwork.config.allow_list import is_listed
from handwork.config.host_names import place_of
from handwork.config.user_proxy import is_loopback
from handwork.errors import ConfigError
from handwork.sandbox.network.addresses import not_listed
from handwork.sandbox.network.proxy import Proxy
from handwork.schema import AllowHost, Decision, Notify, Verdict


def proxy_of(settings: SandboxSettings, backend: str, allow_host: AllowHost | None, notify: Notify) -> Proxy | None:
    """The proxy for a sandbox of that backend; None without an allow-list, or where the whole network is open.

    `allow_host` decides about each place; without it, the allow-list alone does. Raises ConfigError where an allow-list cannot
    be kept: a sandbox that has the network, whole or not at all, must not look as if it kept one.
    """
    if settings.network or not settings.allow_net:
        return None
    if backend == "host":
        notify("warning", "The list of allowed hosts (allow_net) has no effect here: with host there is no sandbox.")
        return None
    if backend != "bwrap":
        raise ConfigError(
            f"The sandbox backend {backend} cannot open the network for chosen hosts alone",
            hint="use --sandbox bwrap, or open the whole network with --net",
        )
    for host in (entry for entry in settings.allow_net if is_loopback(entry)):
        notify(
            "warning",
            f"Programs do not find a server of this machine by {host} alone in the list of allowed hosts: name its port, too "
            f"(--allow-net {host}:8000).",
        )
    return Proxy(allow_host or _listed(settings.allow_net), notify, local=list(_local(settings.allow_net)))


def _local(entries: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Places of this machine, where a port is named with them."""
    for host, port in (place_of(entry) for entry in entries if not entry.startswith("*")):
        if port is not None and is_loopback(host):
            yield host, port


def _listed(entries: Sequence[str]) -> AllowHost:
    async def allow_host(host: str, port: int, name: str) -> Decision:
        if is_listed(entries, host, port):
            return Decision(verdict=Verdict.ALLOW)
        return Decision(verdict=Verdict.DENY, why=not_listed(host, name))

    return allow_host
