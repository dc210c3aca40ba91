"""Checks run side by side; none breaks, holds up or outlives another."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from tests.cli.doctor.conftest import MakeGround

from handwork.cli.doctor.examine import examine
from handwork.cli.doctor.finding import Check, Finding, Ground, blocking


def _good(_ground: Ground) -> list[Finding]:
    return [Finding("good", "Good", "ok", "all is well")]


async def test_what_breaks_or_hangs_is_a_finding_and_the_others_say_theirs(ground: MakeGround) -> None:
    ended = threading.Event()

    def hang(_ground: Ground) -> list[Finding]:
        ended.wait(30)
        return []

    async def wait(_ground: Ground) -> list[Finding]:
        await asyncio.sleep(30)
        return []

    def breaks(_ground: Ground) -> list[Finding]:
        raise KeyError("nothing there")

    def lost(_ground: Ground) -> list[Finding]:
        raise PermissionError(13, "Permission denied", "/some/file")

    checks = [
        Check("hangs", "A", blocking(hang), seconds=0.2),
        Check("waits", "A", wait, essential=True, seconds=0.2),
        Check("breaks", "B", blocking(breaks)),
        Check("lost", "B", blocking(lost), essential=True),
        Check("good", "C", blocking(_good)),
    ]
    began = time.monotonic()
    try:
        found = await examine(checks, ground())
    finally:
        ended.set()
    assert time.monotonic() - began < 5
    assert [(each.id, each.status, each.essential) for each in found] == [
        ("hangs", "warning", False),
        ("waits", "problem", True),
        ("breaks", "warning", False),
        ("lost", "problem", True),
        ("good", "ok", False),
    ]
    assert all(each.fix for each in found[:4])
    assert "not done after 0.2 s" in found[0].text
    assert "KeyError" in found[2].text
    assert "/some/file: Permission denied" in found[3].text


async def test_a_cancelled_look_is_no_finding(ground: MakeGround) -> None:
    async def wait(_ground: Ground) -> list[Finding]:
        await asyncio.sleep(30)
        return []

    task = asyncio.create_task(examine([Check("waits", "A", wait)], ground()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
