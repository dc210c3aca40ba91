"""What the rules close for sure, and whether all below stands the same: as decide() sees every single path."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handwork.config.policy_rules import parse_rule
from handwork.policy.closed import Closed
from handwork.policy.decide import decide
from handwork.policy.paths import Place
from handwork.schema import Action, Mode, Verdict

PLACE = Place("/w", "/h")


@pytest.mark.parametrize(("rules", "path", "expected"), [
    (["deny write a"], "/w/a", ("deny write a", True)),
    (["deny write a"], "/w/a/b/c", ("deny write a", True)),
    (["deny write a/**"], "/w/a", ("deny write a/**", True)),
    (["deny write a/b"], "/w/a", ("", False)),
    (["deny write a/b"], "/w/c", ("", True)),
    (["deny write **/x"], "/w/c/d", ("", False)),
    (["deny write *.x"], "/w/c", ("", True)),
    (["deny write **"], "/w", ("deny write **", True)),
    (["allow write a/b", "deny write **"], "/w", ("deny write **", False)),
    (["allow write a/b", "deny write **"], "/w/a", ("deny write **", False)),
    (["allow write a/b", "deny write **"], "/w/a/b", ("", True)),
    (["allow write a/b", "deny write **"], "/w/c", ("deny write **", True)),
    (["deny write a/b", "allow write a", "deny write **"], "/w/a", ("", False)),
    (["deny write a", "allow write a/b"], "/w/a", ("deny write a", True)),
    (["ask write a", "deny write **"], "/w/a", ("", True)),
    (["deny read a"], "/w/a", ("", True)),
    (["allow tool bash", "deny write a"], "/w/a", ("deny write a", True)),
    (["deny write ~/a"], "/h/a", ("deny write ~/a", True)),
])  # fmt: skip
def test_rules_in_their_order(rules: list[str], path: str, expected: tuple[str, bool]) -> None:
    assert Closed([parse_rule(rule) for rule in rules], PLACE)("write", path) == expected


NAMES = ["a", "b", "ab"]
PATTERNS = st.lists(st.sampled_from(["a", "b", "*", "a*", "**", "?"]), min_size=1, max_size=3).map("/".join)
RULES = st.lists(
    st.tuples(st.sampled_from(["allow", "ask", "deny"]), PATTERNS).map(lambda r: f"{r[0]} write {r[1]}"), max_size=4
)
BELOW = ["/".join(names) for deep in (1, 2, 3) for names in product(NAMES, repeat=deep)]


@given(RULES, st.sampled_from(["", *BELOW]))
def test_it_is_what_decide_refuses_and_below_nothing_differs_unseen(texts: list[str], inner: str) -> None:
    rules = [parse_rule(text) for text in texts]
    closed = Closed(rules, PLACE)

    def is_closed(path: str) -> bool:
        return bool(closed("write", path)[0])

    path = f"/w/{inner}".rstrip("/")
    action = Action(kind="write", resource=path)
    refused = decide([action], mode=Mode.AUTO, contained=True, rules=rules, place=PLACE).verdict is Verdict.DENY
    assert is_closed(path) or not refused
    if closed("write", path)[1]:
        assert all(is_closed(f"{path}/{each}") is is_closed(path) for each in BELOW)
