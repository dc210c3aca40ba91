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
from handwork.config import Settings, load_settings
from handwork.errors import ConfigError
from handwork.llm.build import build_model
from handwork.llm.catalog import LOCAL_MODELS, local_model
from handwork.llm.fetch import fetch_model
from handwork.llm.local import open_local_model
from handwork.llm.providers import PROVIDERS


def print_models(config: Path | None) -> None:
    """Print local models, configured ones and the providers whose key is set, each with what it lacks."""
    settings = load_settings(config)
    print("Local (in this process, for demonstrations):")
    for facts in LOCAL_MODELS:
        print(f"  local:{facts.name:<24} {_state(partial(open_local_model, facts.name, settings.home.models))}")
        print(f"  {'':<30} {facts.describe()}")
    print("\nConfigured:")
    configured = [(name, llm) for name, llm in settings.llm.items() if llm.model]
    for name, llm in configured:
        table = "[llm]" if name == "default" else f"[llm.{name}]"
        print(f"  {one_line(llm.model, 60):<30} {table}  {_state(partial(build_model, llm, settings.environ))}")
    if not configured:
        print("  none: name one with --model provider:model, or [llm] model in the configuration file")
    print("\nProviders whose key is set:")
    print(f"  {', '.join(_keyed(settings)) or 'none'}")


def _state(build: Callable[[], object]) -> str:
    try:
        build()
    except ConfigError as error:
        return f"not usable: {error}"
    return "usable"


def _keyed(settings: Settings) -> list[str]:
    environ = settings.environ
    return [p.name for p in PROVIDERS.values() if any(environ.get(name) for name in p.key_variables)]


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
