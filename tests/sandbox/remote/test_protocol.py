"""What holds for every sandbox holds over the relay: the tests of files, programs and trees, run anew with these backends."""

from __future__ import annotations

import inspect

import pytest

from tests.sandbox import test_files, test_programs, test_trees

_OF_OTHERS = {
    "test_artifacts_can_be_read_and_not_written",  # takes their path for one out here
    "test_without_its_supervisor_everything_fails_and_the_next_use_starts_anew",  # looks for the supervisor among our children
}
"""test_docker has its own of these."""
_SLOW = {
    "test_a_listing_of_thousands_comes_in_one_piece",
    "test_output_beyond_the_limit_keeps_head_and_tail_in_bounded_memory",  # 100 MB as text
}

mark, secret = test_trees.mark, test_files.secret

for _module in (test_files, test_programs, test_trees):
    for _name, _test in vars(_module).items():
        if _name.startswith("test_") and _name not in _OF_OTHERS and "sandbox" in inspect.signature(_test).parameters:
            globals()[_name] = pytest.mark.slow(_test) if _name in _SLOW else _test
