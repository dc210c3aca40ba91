"""Whether this machine has what a backend needs, found before a model is paid for work that could not be done."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping

from handwork.config import DaytonaSettings, SandboxSettings
from handwork.sandbox import unavailable
from handwork.sandbox.auto import ENOUGH
from handwork.sandbox.bwrap import find_bwrap
from handwork.sandbox.inside import landlock
from handwork.sandbox.open import probe
from handwork.sandbox.remote.daytona import check_daytona
from handwork.sandbox.remote.engine import check_engine


async def check_backend(settings: SandboxSettings, daytona: DaytonaSettings, environ: Mapping[str, str]) -> None:
    """Raises SandboxUnavailable, or ConfigError for a package that is missing, with what to do; no container and no machine is made.

    Of `auto` only what can be known without a start: it is for everybody, and starts at its first use. A bubblewrap that was
    asked for by name is tried.
    """
    match settings.chosen:
        case "docker":
            await asyncio.to_thread(check_engine, environ)
        case "daytona":
            check_daytona(daytona, environ)
        case "landlock":
            if sys.platform != "linux" or not landlock.version():
                raise unavailable.no_landlock()
        case "bwrap":
            await probe(settings)
        case "auto" if (
            sys.platform == "linux"
        ):  # elsewhere there are tasks without tools, and a tool says what it lacks
            weaker = landlock.version() >= ENOUGH and not settings.allow_net
            if find_bwrap() is None and not weaker:
                raise unavailable.missing()
