"""Runs all checks side by side: each has its time, and none can break or hold up another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from handwork.cli.doctor.finding import Check, Finding, Ground


async def examine(checks: Sequence[Check], ground: Ground) -> list[Finding]:
    """What all checks found, in the order of the checks."""
    found = await asyncio.gather(*(_one(check, ground) for check in checks))
    return [finding for findings in found for finding in findings]


async def _one(check: Check, ground: Ground) -> list[Finding]:
    def failed(text: str, fix: str) -> list[Finding]:
        return [Finding(check.id, check.group, "problem" if check.essential else "warning", text, fix, check.essential)]

    try:
        async with asyncio.timeout(check.seconds):
            return list(await check.look(ground))
    except TimeoutError:
        return failed(
            f"this check was not done after {check.seconds:g} s",
            "try again when the machine is less busy; a file system or a server that does not answer also does this",
        )
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return failed(f"this check could not be done: {where}{error.strerror or error}", "look at that first")
    except Exception as error:  # one check: the others still say what they found
        return failed(
            f"this check broke: {type(error).__name__}: {error}",
            "this is a bug in Handwork: please report it with `handwork doctor --report`",
        )
