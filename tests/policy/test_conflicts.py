from __future__ import annotations

import time
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handwork.policy.conflicts import conflicts, shares
from handwork.schema import Action, ActionKind


def do(kind: ActionKind, resource: str = "*", *, repeatable: bool = False) -> list[Action]:
    return [Action(kind=kind, resource=resource, repeatable=repeatable)]


@pytest.mark.parametrize(
    ("a", "b", "shared"),
    [
        ("/a/b", "/a/b", True),
        ("/a/b", "/a/b/", True),
        ("/a/b", "/a//b/./c", True),
        ("/a/b", "/a/bc", False),
        ("/a/bc", "/a/b", False),
        ("/a/b", "/a/c/../b/d", True),
        ("/a/b", "/a/b/../c", False),
        ("/a/b", "/../../a/b", True),
        ("//a/b", "/a/b", True),
        ("/", "/etc", True),
        ("/", "kernel", False),
        ("*", "/etc", True),
        ("kernel", "*", True),
        ("", "/etc", True),
        ("kernel", "shell", False),
        ("shell/one", "shell/two", False),
        ("shell", "shell/two", True),
        ("~/x", "/etc", True),
        ("~root/x", "kernel", True),
        ("../x", "/etc", True),
        ("a/../../x", "/etc", True),
        (".", "a", True),
        ("https://a.org/x", "https://a.org/x/y", True),
        ("https://A.org/x?q=1", "HTTPS://a.org/x#top", True),
        ("https://a.org", "https://a.org/x", True),
        ("https://a.org", "https://b.org", False),
        ("https://a.org/x", "http://a.org/x", False),
        ("https://a.org/x", "/a.org/x", False),
        ("https://a.org/x/../y", "https://a.org/y", True),
    ],
)
def test_resources_are_shared_exactly_when_one_contains_the_other(a: str, b: str, shared: bool) -> None:
    assert shares(a, b) is shared
    assert shares(b, a) is shared


def test_reads_of_one_resource_go_together() -> None:
    assert not conflicts(do("read"), do("read"))
    assert not conflicts(do("read", "/a"), do("read", "/a/b"))


def test_more_than_a_read_of_a_shared_resource_conflicts_whichever_comes_first() -> None:
    for kind in ("write", "execute", "network"):
        assert conflicts(do(kind, "/a"), do("read", "/a/b"))
        assert conflicts(do("read", "/a/b"), do(kind, "/a"))
        assert not conflicts(do(kind, "/a"), do(kind, "/b"))


def test_repeatable_requests_to_one_address_go_together_and_others_do_not() -> None:
    fetch, post = do("network", "https://a.org", repeatable=True), do("network", "https://a.org")
    assert not conflicts(fetch, fetch)
    assert conflicts(fetch, post)
    assert conflicts(do("write", "/a", repeatable=True), do("read", "/a"))


def test_nothing_declared_conflicts_with_everything() -> None:
    assert conflicts([], [])
    assert conflicts([], do("read", "/a"))


def test_asking_and_ending_go_with_nothing() -> None:
    for kind in ("ask", "end"):
        assert conflicts(do(kind, "human"), do("read", "/a"))
        assert conflicts(do("read", "/a"), do(kind, "human"))


def test_one_conflicting_pair_among_several_actions_is_enough() -> None:
    assert conflicts(do("read", "/a") + do("write", "/b"), do("read", "/c") + do("read", "/b/x"))
    assert not conflicts(do("read", "/a") + do("write", "/b"), do("read", "/a") + do("write", "/c"))


_resource = st.text(alphabet="ab./*~", max_size=8)
_action = st.builds(
    Action,
    kind=st.sampled_from(["read", "write", "execute", "network", "ask", "end"]),
    resource=_resource,
    repeatable=st.booleans(),
)


@given(st.lists(_action, max_size=3), st.lists(_action, max_size=3))
def test_a_conflict_is_mutual(a: list[Action], b: list[Action]) -> None:
    assert conflicts(a, b) == conflicts(b, a)


@given(_resource, st.text(alphabet="ab", min_size=1, max_size=3))
def test_a_folder_is_shared_with_all_below_it(folder: str, name: str) -> None:
    assert shares(folder, f"{folder}/{name}" if folder else name)


def test_the_pairs_of_thousands_of_calls_are_compared_quickly() -> None:
    begun = time.process_time()
    writes = [do("write", f"/workspace/some/folder/file_{n}") for n in range(1000)]
    assert not any(conflicts(a, b) for a, b in combinations(writes, 2))
    unknown = [list[Action]() for _ in range(1500)]
    assert all(conflicts(a, b) for a, b in combinations(unknown, 2))
    assert time.process_time() - begun < 3


def test_a_resource_of_any_length_is_placed() -> None:
    long = "/" + "a/" * 5000
    assert shares(long, long + "b")
    assert not shares(long + "b", long + "c")
