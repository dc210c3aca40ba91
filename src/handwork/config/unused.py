"""What was configured and has no effect in this version, as far as its user would miss it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from handwork.config.layers import KeyPath, Layer, Origin
from handwork.config.settings import Settings
from handwork.config.table import SettingsTable
from handwork.errors import ConfigError

_FOR_LATER = ("browser", "search", "runflow")
"""Tables of tools that this version does not have yet; they are kept for whoever reads them."""
_OF_A_CONTAINER = ("image", "work_dir", "network_enabled")
"""Keys of [sandbox] that describe a container, and nothing else. Of Daytona's, the image has a key of its own."""
_MAYBE_OF_A_CONTAINER = ("memory_limit", "cpu_limit")
_ELSEWHERE = ("docker", "daytona")
_HAS_NETWORK = "; for the network: `[sandbox] network = true` or --net"


def without_effect(settings: Settings, origins: Mapping[KeyPath, Origin]) -> list[str]:
    """One notice (or none) of keys that were set to something else than they are anyway, and that nobody reads."""
    found: dict[str, list[str]] = {}
    for path in origins:
        if _is_for_later(settings, path) and _differs(settings, path):
            found.setdefault(f"[{'.'.join(path[:-1])}]", []).append(path[-1])
    told = [f"{table} {', '.join(keys)}" for table, keys in found.items()]
    instead = _HAS_NETWORK if "network_enabled" in found.get("[sandbox]", ()) and not settings.sandbox.network else ""
    return [f"Accepted, but without effect in this version: {'; '.join(told)}{instead}"] if told else []


def _is_for_later(settings: Settings, path: KeyPath) -> bool:
    if path[0] == "sandbox":
        described = _MAYBE_OF_A_CONTAINER if settings.sandbox.describes_container else ()
        here = settings.sandbox.chosen not in _ELSEWHERE
        return path[1] == "timeout" or (here and path[1] in (*_OF_A_CONTAINER, *described))
    if path[0] == "daytona":
        return settings.sandbox.chosen != "daytona" or path[1] == "sandbox_entrypoint"
    return path[0] in _FOR_LATER


def container_notice(settings: Settings, origins: Mapping[KeyPath, Origin], layers: Sequence[Layer]) -> list[str]:
    """What becomes of [sandbox] use_sandbox = true where something else is named, too. Raises ConfigError where it would be
    answered by no sandbox at all."""
    asked, backend = origins.get(("sandbox", "use_sandbox")), origins.get(("sandbox", "backend"))
    named = settings.sandbox.backend
    if not settings.sandbox.use_sandbox or asked is None or backend is None or named in ("auto", "docker"):
        return []
    if named != "host" or layers.index(backend.layer) > layers.index(asked.layer):
        return [f"[sandbox] use_sandbox = true does not hold: {backend} says {named}"]
    raise ConfigError(
        f"{asked}: [sandbox] use_sandbox = true asks for a container, and {backend} says backend = host, without any sandbox",
        hint="take one of them away",
    )


def _differs(settings: Settings, path: KeyPath) -> bool:
    table: SettingsTable = settings
    for part in path[:-1]:
        table = getattr(table, part)
    return bool(getattr(table, path[-1]) != type(table).model_fields[path[-1]].default)
