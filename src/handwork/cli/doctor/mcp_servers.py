"""MCP servers: what is configured, and what keeps one from starting; none is started."""

from __future__ import annotations

from collections.abc import Iterator

from handwork.cli.clean import one_line
from handwork.cli.doctor.finding import Finding, Ground
from handwork.cli.mcp.state import known_of
from handwork.tool.wording import counted

_GROUP = "MCP servers"
_NAMED = 6


def servers(ground: Ground) -> Iterator[Finding]:
    """One line for all that could start, and one for each that could not."""
    configured = ground.settings.mcp.servers
    known = {name: known_of(name, each, ground.settings, ground.workspace) for name, each in configured.items()}
    ready = [name for name, each in known.items() if each.kind in ("ok", "new")]
    off = sum(each.kind == "off" for each in known.values())
    if not configured:
        yield Finding("mcp.servers", _GROUP, "note", "none is configured", "handwork mcp add")
        return
    named = one_line(", ".join(ready[:_NAMED]), 200) + (" …" if len(ready) > _NAMED else "")
    text = f"{counted(len(ready), 'server')} of {len(configured)} can start" + (f": {named}" if ready else "")
    text += f"; {off} disabled" if off else ""
    yield Finding("mcp.servers", _GROUP, "ok" if ready else "note", text)
    for name, each in known.items():
        if each.kind == "broken":
            yield Finding(
                "mcp.broken", _GROUP, "warning", f"{one_line(name, 60)}: {one_line(each.words, 300)}", each.mend
            )
    beside = [name for name in ready if not configured[name].sandbox and configured[name].type == "stdio"]
    if beside:
        text = (
            f"{one_line(', '.join(beside), 200)}: beside the sandbox, with your rights and your network, as configured"
        )
        yield Finding("mcp.beside", _GROUP, "note", text)
