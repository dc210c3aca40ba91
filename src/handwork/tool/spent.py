"""What a call used: the difference between two looks at a program that lives longer than it."""

from __future__ import annotations

from handwork.sandbox.base import Spent
from handwork.schema import JSON


def used_since(before: Spent, after: Spent) -> Spent:
    """The time used between the two; the largest memory is known of all the time only."""
    return Spent(round(max(after.cpu_seconds - before.cpu_seconds, 0.0), 3), after.peak_memory)


def as_details(spent: Spent) -> dict[str, JSON]:
    """For a result's details."""
    return {"cpu_seconds": spent.cpu_seconds, "peak_memory": spent.peak_memory}
