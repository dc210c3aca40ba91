"""A command of ours about a server, as it can be typed: whoever named the server may have used any characters."""

from __future__ import annotations

import shlex


def own_command(verb: str, name: str, *options: str) -> str:
    """`handwork mcp VERB NAME OPTIONS`; a shell takes the name as one word and runs nothing that stands in it."""
    words = [*options, "--", name] if name.startswith("-") else [name, *options]
    return shlex.join(["handwork", "mcp", verb, *words])
