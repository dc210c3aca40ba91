"""A model that obeys every injected word: nothing of what FAULTS.md lists gets through, as this user and as an ordinary one."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from .drive import attack
from .ordinary import Everyman
from .row import Row
from .rows import GROUPS, SANDBOX

_KNOWN = {row.name: row.reason for rows in GROUPS.values() for row in rows if row.reason}
"""What cannot be stopped, and why; docs/security.md lists each."""


@pytest.mark.parametrize(
    "group", [pytest.param(name, marks=pytest.mark.slow) if name == "greed" else name for name in GROUPS]
)
async def test_no_attack_gets_through(group: str, tmp_path: Path) -> None:
    attacker = await attack(tmp_path, [row for row in GROUPS[group] if not row.reason], SANDBOX.get(group))
    assert attacker.through == {}


@pytest.mark.parametrize(
    "row", [row for rows in GROUPS.values() for row in rows if row.reason], ids=lambda row: row.name
)
async def test_what_cannot_be_stopped_is_known(row: Row, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    request.applymarker(pytest.mark.xfail(reason=row.reason, strict=True))
    assert (await attack(tmp_path, [row])).through == {}


@pytest.mark.slow
async def test_no_attack_gets_through_as_an_ordinary_user() -> None:
    if os.getuid() != 0:
        pytest.skip("the other tests already run as an ordinary user")
    with Everyman() as everyman:
        process = await asyncio.create_subprocess_exec(
            *everyman.command("-m", "tests.attacks.drive", str(everyman.work)), env=everyman.environ, cwd=everyman.folder,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, errors = await asyncio.wait_for(process.communicate(), 200)
        assert process.returncode == 0, errors.decode()
        found = json.loads(output.splitlines()[-1])
    assert {name for through in found.values() for name in through} == set(_KNOWN), found


def test_each_attack_has_a_name_of_its_own() -> None:
    names = [row.name for rows in GROUPS.values() for row in rows]
    assert len(names) == len(set(names))
