"""What a server's tool does, by its annotations: unsaid is the worst, and rules and modes hold."""

from __future__ import annotations

from typing import Any

import pytest

from handwork.config.policy_rules import parse_rule
from handwork.mcp.actions import actions_of, resource_of
from handwork.policy.conflicts import conflicts
from handwork.policy.decide import Call, decide
from handwork.schema import Action, Mode, Verdict

READS = {"readOnlyHint": True, "openWorldHint": False}
SEARCHES = {"readOnlyHint": True}
ADDS = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}
WORST = (Action(kind="execute", resource="*"),)


@pytest.mark.parametrize(
    "hints",
    [
        {},
        {"title": "x"},
        {"idempotentHint": True},
        {"destructiveHint": False},
        {"openWorldHint": False},
        {"readOnlyHint": "true", "openWorldHint": False},
        {"readOnlyHint": 1, "openWorldHint": 0},
        {"readOnlyHint": None},
        {"destructiveHint": 0, "openWorldHint": False},
        {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": False, "idempotentHint": True},
    ],
)
def test_what_is_not_said_is_the_worst(hints: dict[str, Any]) -> None:
    assert actions_of("s", hints) == WORST


def test_a_reader_of_a_closed_world_reads_its_server() -> None:
    assert actions_of("s", READS) == (Action(kind="read", resource="mcp://s", repeatable=True),)


@pytest.mark.parametrize("hints", [SEARCHES, {"readOnlyHint": True, "openWorldHint": True}])
def test_a_reader_of_an_open_world_is_no_mere_read(hints: dict[str, Any]) -> None:
    assert actions_of("s", hints) == (Action(kind="network", resource="*", repeatable=True),)


@pytest.mark.parametrize(("again", "repeatable"), [(True, True), (False, False), (None, False), ("yes", False)])
def test_what_only_adds_to_its_server_writes_to_it(again: Any, repeatable: bool) -> None:
    expected = Action(kind="write", resource="mcp://s", repeatable=repeatable)
    assert actions_of("s", ADDS | {"idempotentHint": again}) == (expected,)


@pytest.mark.parametrize("name", ["a/b", "a?b", "a#b", "..", "a b", "é"])
def test_no_server_can_be_named_like_a_place_in_another_one(name: str) -> None:
    assert resource_of(name).count("/") == 2
    assert not conflicts(actions_of(name, ADDS), actions_of("a", ADDS))


def test_two_reads_of_one_server_run_together_and_a_change_does_not() -> None:
    assert not conflicts(actions_of("s", READS), actions_of("s", READS))
    assert not conflicts(actions_of("s", SEARCHES), actions_of("s", SEARCHES))
    assert conflicts(actions_of("s", READS), actions_of("s", ADDS))
    assert conflicts(actions_of("s", READS), actions_of("s", {}))
    assert not conflicts(actions_of("s", ADDS), actions_of("t", ADDS))


def _verdict(
    hints: dict[str, Any], mode: Mode, *rules: str, contained: bool = True, tool: str = "mcp_git_x"
) -> Verdict:
    found = decide(
        actions_of("git", hints),
        mode=mode,
        contained=contained,
        rules=tuple(parse_rule(rule) for rule in rules),
        call=Call(tool, {}),
    )
    return found.verdict


def test_read_only_mode_lets_only_readers_of_a_closed_world_run() -> None:
    assert _verdict(READS, Mode.READ_ONLY) is Verdict.ALLOW
    for hints in (SEARCHES, ADDS, {}):
        assert _verdict(hints, Mode.READ_ONLY) is Verdict.DENY


def test_ask_mode_asks_about_all_but_readers_of_a_closed_world() -> None:
    assert _verdict(READS, Mode.ASK) is Verdict.ALLOW
    for hints in (SEARCHES, ADDS, {}):
        assert _verdict(hints, Mode.ASK) is Verdict.ASK


def test_auto_mode_asks_where_nothing_contains_the_server() -> None:
    assert _verdict({}, Mode.AUTO) is Verdict.ALLOW
    assert _verdict({}, Mode.AUTO, contained=False) is Verdict.ASK


def test_rules_about_tools_hold_for_those_of_servers() -> None:
    for hints in (READS, SEARCHES, ADDS, {}):
        assert _verdict(hints, Mode.AUTO, "deny tool mcp_git_*") is Verdict.DENY
        assert _verdict(hints, Mode.AUTO, "ask tool mcp_git_x") is Verdict.ASK
        assert _verdict(hints, Mode.AUTO, "deny tool mcp_git_*", tool="mcp_time_x") is Verdict.ALLOW
        assert _verdict(hints, Mode.ASK, "allow tool mcp_git_*") is Verdict.ALLOW


def test_a_rule_about_hosts_is_never_taken_to_allow_a_server_of_that_name() -> None:
    found = decide(
        actions_of("example.com", SEARCHES),
        mode=Mode.ASK,
        contained=True,
        rules=(parse_rule("allow network example.com"),),
    )
    assert found.verdict is Verdict.ASK


def test_a_rule_about_paths_is_never_taken_to_allow_a_server() -> None:
    found = decide(actions_of("s", ADDS), mode=Mode.ASK, contained=True, rules=(parse_rule("allow write /**"),))
    assert found.verdict is Verdict.ASK
