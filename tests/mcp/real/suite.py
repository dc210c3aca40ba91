"""Running the public conformance suite, one scenario a process, two at a time, and what it found."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.node import driver, node, script

_AT_ONCE = 2
_SECONDS = 120


@dataclass(frozen=True)
class Found:
    """What a scenario found: `failed` are the checks that did not pass, with what was wrong, warnings among them."""

    passed: tuple[str, ...]
    failed: tuple[str, ...]
    said: str

    @property
    def well(self) -> bool:
        return bool(self.passed) and not self.failed


async def run(
    kind: str, scenarios: Iterable[str], arguments: Sequence[str], place: Path, **environ: str
) -> dict[str, Found]:
    """Each scenario of `kind` (client or server) by its name."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(scenario: str) -> tuple[str, Found]:
        async with gate:
            return scenario, await _one(kind, scenario, arguments, place / scenario.replace("/", "-"), environ)

    return dict(await asyncio.gather(*map(one, scenarios)))


async def _one(kind: str, scenario: str, arguments: Sequence[str], place: Path, environ: Mapping[str, str]) -> Found:
    preload, known = driver("bearer.cjs")
    options = ["--scenario", scenario, "--output-dir", str(place)]
    if kind == "client":
        options += ["--timeout", str(_SECONDS * 1000)]
    process = await asyncio.create_subprocess_exec(
        node(),
        *([f"--require={preload}"] if "CONFORMANCE_TOKEN" in environ else []),
        script("conformance"),
        kind,
        *arguments,
        *options,
        env={**known, **environ},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await asyncio.wait_for(process.communicate(), _SECONDS + 30)
    checks = _checks(place)
    wrong = [check for check in checks if check["status"] in ("FAILURE", "WARNING")]
    return Found(
        tuple(check["id"] for check in checks if check["status"] == "SUCCESS"),
        tuple(f"{check['id']}: {check.get('errorMessage') or check['description']}" for check in wrong),
        said.decode(errors="replace"),
    )


def _checks(place: Path) -> list[dict[str, Any]]:
    """What the suite wrote down."""
    written = next(iter(place.rglob("checks.json")), None)
    found: list[dict[str, Any]] = json.loads(written.read_text()) if written else []
    return found


async def scenarios(kind: str) -> list[str]:
    """The names of all scenarios for a Client or a Server, as the suite lists them."""
    process = await asyncio.create_subprocess_exec(
        node(), script("conformance"), "list", stdout=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
    )
    said, _ = await asyncio.wait_for(process.communicate(), 60)
    part = said.decode().partition(f"{kind} scenarios")[2].partition("\n\n")[0]
    return [line.split()[1] for line in part.splitlines() if line.startswith("  - ")]
