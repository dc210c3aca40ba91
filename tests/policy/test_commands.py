from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from handwork.policy.scripts import Step, steps
from handwork.policy.units import Command, Unread
from tests.policy.shell_texts import run_by_bash, shell_texts


def found_by_us(text: str) -> set[str] | None:
    """The names that we find, with what they run in turn; None if any part is said to be unknown before it runs."""
    found, todo = set[str](), [*steps(text, {})]
    while todo:
        step: Step = todo.pop()
        if isinstance(step.deed, Unread):
            return None
        if isinstance(step.deed, Command) and (words := step.deed.part.words):
            if not words[0].static:
                return None
            found.add(words[0].text)
        todo += [each for _, inner in step.inner for each in inner]
    return found


def _settings(examples: int) -> settings:
    unfit = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(max_examples=examples, deadline=None, suppress_health_check=unfit)


@_settings(50)
@given(shell_texts())
def test_whatever_bash_runs_is_found(tmp_path: Path, text: str) -> None:
    found = found_by_us(text)
    if found is not None:
        assert run_by_bash(text, tmp_path) <= found


@pytest.mark.slow
@_settings(3000)
@given(shell_texts())
def test_whatever_bash_runs_is_found_in_thousands_of_texts(tmp_path: Path, text: str) -> None:
    found = found_by_us(text)
    if found is not None:
        assert run_by_bash(text, tmp_path) <= found
