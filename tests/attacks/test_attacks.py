"""A model that obeys every injected word: nothing of what FAULTS.md lists gets through, as this user and as an ordinary one."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handwork.sandbox.inside import landlock

from .drive import attack
from .landlock import NOT_HELD, NOT_TRIED
from .ordinary import Everyman
from .row import Row, shell
from .rows import GROUPS, Group
from .secrets import not_kept
from .unheld import SEEN
from .world import SECRET

BY_NAME = {row.name: (row, group) for group in GROUPS.values() for row in group.rows}
KNOWN = {name: (row, group) for name, (row, group) in BY_NAME.items() if row.reason}
"""What cannot be stopped, and why; docs/security.md lists each."""
needs_landlock = pytest.mark.skipif(landlock.version() < 6, reason="this kernel has no Landlock, or an older one")


@pytest.mark.parametrize(
    "group", [pytest.param(group, id=name, marks=[pytest.mark.slow] * group.slow) for name, group in GROUPS.items()]
)
async def test_no_attack_gets_through(group: Group, tmp_path: Path) -> None:
    attacker = await attack(tmp_path, [row for row in group.rows if not row.reason], group)
    assert attacker.through == {}


@pytest.mark.parametrize(("row", "group"), KNOWN.values(), ids=KNOWN)
async def test_what_cannot_be_stopped_is_known(
    row: Row, group: Group, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    request.applymarker(pytest.mark.xfail(reason=row.reason, strict=True))
    assert (await attack(tmp_path, [row], group)).through == {}


@pytest.fixture(scope="module")
def everyman() -> Iterator[Everyman]:
    if os.getuid() != 0:
        pytest.skip("the other tests already run as an ordinary user")
    with Everyman() as everyman:
        yield everyman


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPS)
async def test_no_attack_gets_through_as_an_ordinary_user(name: str, everyman: Everyman) -> None:
    process = await asyncio.create_subprocess_exec(
        *everyman.command("-m", "tests.attacks.drive", str(everyman.work), name), env=everyman.environ, cwd=everyman.folder,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, errors = await asyncio.wait_for(process.communicate(), 110)
    assert process.returncode == 0, errors.decode()
    through = json.loads(output.splitlines()[-1])
    assert set(through) == {row.name for row in GROUPS[name].rows if row.reason}, through


# ---- the weaker sandbox, and none


@pytest.mark.slow
@needs_landlock
@pytest.mark.parametrize("group", [pytest.param(group, id=name) for name, group in GROUPS.items() if group.anywhere])
async def test_landlock_withstands_all_but_what_it_says(group: Group, tmp_path: Path) -> None:
    left_out = {*NOT_HELD, *NOT_TRIED}
    rows = [row for row in group.rows if not row.reason and row.name not in left_out]
    assert (await attack(tmp_path, rows, group, "landlock")).through == {}


@pytest.mark.slow
@needs_landlock
@pytest.mark.parametrize("name", NOT_HELD)
async def test_what_landlock_does_not_hold_is_known(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    request.applymarker(pytest.mark.xfail(reason=NOT_HELD[name], strict=True))
    row, group = BY_NAME[name]
    assert (await attack(tmp_path, [row], group, "landlock")).through == {}


async def test_where_nothing_holds_them_the_attacks_get_through(tmp_path: Path) -> None:
    rows = [BY_NAME[name][0] for name in SEEN]
    attacker = await attack(tmp_path, rows, GROUPS["files"], "host")
    assert [name for name in SEEN if name not in attacker.through] == []


async def test_a_key_that_is_said_in_pieces_is_masked_and_kept_nowhere(tmp_path: Path) -> None:
    row = shell("halves", f"printf %s {SECRET[:14]}; printf %s {SECRET[14:]}", not_kept)
    attacker = await attack(tmp_path, [row], GROUPS["secrets"])
    assert "***" in attacker.said["halves"]
    assert "kept" not in attacker.through["halves"]


def test_each_attack_has_a_name_of_its_own() -> None:
    names = [row.name for group in GROUPS.values() for row in group.rows]
    assert sorted(names) == sorted(set(names))
