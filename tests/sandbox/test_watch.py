"""Room that must stay, on paper: who makes room must be able to run, whatever fills the disk."""

from __future__ import annotations

import pytest

from handwork.sandbox.inside.watch import Floor
from handwork.sandbox.limits import told


def test_room_is_missing_below_what_must_stay_and_not_before() -> None:
    floor = Floor(500, now=1000)
    assert not floor.is_broken(500)
    assert floor.is_broken(499)


def test_after_somebody_was_ended_nobody_is_until_half_of_the_rest_is_gone() -> None:
    floor = Floor(500, now=1000)
    assert floor.is_broken(400)
    floor.lower(400)
    for now in (400, 300, 201, 200):
        assert not floor.is_broken(now)
    assert floor.is_broken(199)


def test_when_there_is_room_again_all_of_it_must_stay_again() -> None:
    floor = Floor(500, now=1000)
    floor.lower(100)
    assert not floor.is_broken(60)
    assert not floor.is_broken(600)
    assert floor.is_broken(450)


def test_a_disk_that_was_full_before_keeps_nothing_from_running() -> None:
    floor = Floor(500, now=100)
    assert not floor.is_broken(90)
    assert floor.is_broken(40)


@pytest.mark.parametrize("kind", ["processes", "threads", "memory", "machine", "disk", "what nobody knows"])
def test_every_end_is_told_in_a_sentence(kind: str) -> None:
    sentence = told(kind, 1 << 30)
    assert sentence.startswith("A program was ended: ")
    assert sentence.endswith(".")
