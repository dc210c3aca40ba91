"""`handwork model`: which models can be used here, and fetching a local one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TextIO

from handwork.cli.clean import clean_for_terminal, one_line
from handwork.cli.program import program
from handwork.cli.progress import download_progress
from handwork.cli.screen import open_screen
from handwork.config import Settings, load_settings
from handwork.config.load import load_configuration
from handwork.errors import ConfigError
from handwork.llm.build import build_model
from handwork.llm.choice import Candidate, Survey, survey
from handwork.llm.detect import Server
from handwork.llm.local.catalog import LOCAL_MODELS, local_model
from handwork.llm.local.engine import open_local_model
from handwork.llm.local.fetch import fetch_model


def look_around(config: Path | None) -> tuple[Settings, Survey]:
    """The settings as they are now, and all that is found under them; a configured model says where it was named."""
    configuration = load_configuration(config)
    origin = configuration.origins.get(("llm", "default", "model"))
    where = "chosen in `handwork setup`" if origin and origin.layer.kind == "setup" else f"configured: {origin}"
    return configuration.settings, survey(configuration.settings, where if origin else "configured")


def print_models(config: Path | None) -> None:
    """Print local models, configured ones, providers with a key and running servers, each with what it lacks."""
    settings, found = look_around(config)
    screen = open_screen(sys.stdout, spins=False)
    screen.line("In this process, for demonstrations:")
    for facts in LOCAL_MODELS:
        screen.line(f"  local:{facts.name:<24} {_state(partial(open_local_model, facts.name, settings.home.models))}")
        screen.line(f"  {'':<30} {facts.describe()}")
    screen.line("\nConfigured:")
    configured = [(name, llm) for name, llm in settings.llm.items() if llm.model]
    for name, llm in configured:
        table = "[llm]" if name == "default" else f"[llm.{name}]"
        state = _state(partial(build_model, llm, settings.environ, keys=settings.keys))
        screen.line(f"  {one_line(llm.model, 60):<30} {table}  {state}")
    if not configured:
        screen.line(f"  none: `{program()} setup` helps, --model provider:model names one for a run")
    screen.line("\nBy a key (any other model of the provider can be named):")
    for candidate in (*found.environment, *found.stored):
        screen.line(f"  {one_line(candidate.place, 100):<44} {candidate.why}")
    for text in filter(None, (*found.idle, found.problem)):
        screen.line(f"  {one_line(text, 300)}")
    if not (found.environment or found.stored or found.idle or found.problem):
        screen.line("  none: no key is set or stored")
    screen.line("\nOn servers of this machine:")
    for server in found.servers:
        for name in server.models:
            screen.line(f"  {one_line(f'{server.provider.name}:{name}', 60)}")
    if not found.running:
        screen.line("  none")


def detect_models(config: Path | None) -> None:
    """Print every place where a model is looked for, in order, what is there, and which one is used and why."""
    _, found = look_around(config)
    screen = open_screen(sys.stdout, spins=False)
    places = (
        ("command line", ["--model and --base-url go over all that follows"]),
        ("configuration", [*map(_line, found.configured), *filter(None, [found.unfinished])]),
        ("keys in the environment", [*map(_line, found.environment)]),
        ("stored keys", [*map(_line, found.stored), *found.idle, *filter(None, [found.problem])]),
        ("servers of this machine", [*map(_server_line, found.servers)]),
        ("fetched local models", [each.model for each in found.fetched]),
    )
    screen.line("Where a model is looked for, first to last:")
    for number, (title, lines) in enumerate(places, 1):
        for place, line in enumerate(lines or ["none"]):
            head = f"{number}  {title}" if place == 0 else ""
            screen.line(f"  {head:<27} {one_line(line, 300)}")
    winner = found.winner
    if winner is None:
        screen.line(f"→ No model is found. Type: {program()} setup")
    else:
        screen.line(f"→ {one_line(winner.place, 200)} is used: {winner.why}")


def _line(candidate: Candidate) -> str:
    return f"{candidate.place} ({candidate.why})"


def _server_line(server: Server) -> str:
    what = {
        "models": f"{len(server.models)} model{'' if len(server.models) == 1 else 's'}, the best for an agent: {server.best or 'none'}",
        "empty": "runs, and has no model",
        "locked": "answers, and wants a key: `setup` takes one for its address",
        "other": "something answers that is no model server",
        "silent": "nothing",
    }
    return f"{server.provider.title}, {server.where}: {what[server.state]}"


def _state(build: Callable[[], object]) -> str:
    try:
        build()
    except ConfigError as error:
        return f"not usable: {error}"
    return "usable"


def fetch_named(config: Path | None, name: str) -> None:
    """Fetch a local model and print where it lies. Raises ConfigError, ModelConnectionError."""
    settings = load_settings(config)
    facts = local_model(name)
    path = fetch_with_progress(facts.name, settings, sys.stderr)
    print(path)
    print(f'To use it: {program()} run "TASK" --model local:{facts.name}', file=sys.stderr)


def fetch_with_progress(name: str, settings: Settings, stream: TextIO) -> Path:
    """Fetch a local model, telling on a stream what is downloaded and how far it is; one that is there is kept."""

    async def fetch() -> Path:
        with download_progress(stream) as progress:
            return await fetch_model(
                name,
                settings.home.models,
                environ=settings.environ,
                progress=progress,
                notify=lambda level, text: print(clean_for_terminal(text), file=stream, flush=True),
            )

    return asyncio.run(fetch())
