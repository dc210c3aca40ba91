"""What the command line has a name for and not yet a command: said as such, with what does the job today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from handwork.errors import ConfigError

_RUN = 'handwork "TASK"'
_GO_ON = 'handwork run --session ID "what to do next" goes on with a session'
_SHOW = "handwork sessions show ID [--json] shows a session, and -c goes on with the last one"
_PAGES = "handwork --net lets commands of the sandbox fetch pages"

COMING: Mapping[tuple[str, ...], str] = {
    ("flow",): f"{_RUN} works with one agent, which plans for itself",
    ("agents",): "handwork run --agent manus|swe|toolcall names one that is there",
    ("skills",): "AGENTS.md in the workspace is read by every agent",
    ("browser",): _PAGES,
    ("store",): "handwork doctor looks at the store",
    ("sandbox",): "handwork doctor looks at the sandbox; nothing of it outlives a session",
    ("submit",): _RUN,
    ("worker",): _RUN,
    ("queue",): "handwork sessions list",
    ("sessions", "resume"): _GO_ON,
    ("sessions", "send"): _GO_ON,
    ("sessions", "fork"): _GO_ON,
    ("sessions", "rewind"): "/undo in a chat takes back what the last step did to files",
    ("sessions", "diff"): _SHOW,
    ("sessions", "export"): "handwork sessions show ID --json prints all that is stored of a session",
    ("sessions", "import"): _SHOW,
    ("sessions", "replay"): _SHOW,
    ("sessions", "delete"): "a HANDWORK_HOME of its own keeps sessions apart, and can be deleted as a folder",
    ("--agent", "browser"): _PAGES,
    ("--agent", "data_analysis"): "--agent manus runs Python on your files",
    ("--agent", "sandbox_manus"): "--agent manus, whose tools run in a sandbox anyway",
    ("--browser",): _PAGES,
    ("--headed",): _PAGES,
    ("--record",): "every session is kept: handwork sessions show ID --json",
    ("--replay",): "handwork sessions show ID --json prints what happened",
    ("--check",): "say in the task how the result is to be checked",
    ("--html",): "handwork sessions show ID --json prints what happened",
}
"""Words as they are typed one after another, and what there is today. The names are reserved."""


def check_is_here(words: Sequence[str], arguments: Sequence[str]) -> None:
    """Raise ConfigError for what a later version has.

    Args:
        words: what stands there besides options, such as a command and the one below it.
        arguments: all that was typed.
    """
    typed = [tuple(words[:2]), tuple(words[:1]), *_options(arguments)]
    for found in typed:
        if (today := _TODAY.get(_plain(found))) is not None:
            shown = " ".join(found if found[0].startswith("-") else ("handwork", *found))
            raise ConfigError(f"`{shown}` comes in a later version: the name is reserved", hint=f"today: {today}")


def _options(arguments: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Each option alone and with what may be its value; `--` ends them."""
    known = list(arguments)
    known = known[: known.index("--")] if "--" in known else known
    for word, after in pairwise([*known, ""]):
        name, given, value = word.partition("=")
        if name.startswith("--"):
            yield (name,)
            yield (name, value if given else after)


def _plain(words: tuple[str, ...]) -> tuple[str, ...]:
    """As names of agents are compared: whatever their case, with or without lines and `Agent`."""
    *before, last = words or ("",)
    if before == ["--agent"]:
        last = last.lower().replace("_", "").replace("-", "").removesuffix("agent")
    return (*before, last)


_TODAY = {_plain(words): today for words, today in COMING.items()}
