from __future__ import annotations

import pytest

from handwork.config.policy_rules import parse_rule
from handwork.policy.decide import Call, decide
from handwork.schema import Action, ActionKind, Mode, Verdict
from handwork.tool.bash import Bash


def do(kind: ActionKind, resource: str = "/x") -> Action:
    return Action(kind=kind, resource=resource)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("contained", [True, False])
def test_reading_asking_and_ending_are_always_allowed(mode: Mode, contained: bool) -> None:
    actions = [do("read"), do("ask"), do("end")]
    assert decide(actions, mode=mode, contained=contained).verdict is Verdict.ALLOW


@pytest.mark.parametrize("kind", ["write", "execute", "network"])
@pytest.mark.parametrize(
    ("mode", "contained", "verdict"),
    [
        (Mode.READ_ONLY, True, Verdict.DENY),
        (Mode.READ_ONLY, False, Verdict.DENY),
        (Mode.ASK, True, Verdict.ASK),
        (Mode.ASK, False, Verdict.ASK),
        (Mode.AUTO, True, Verdict.ALLOW),
        (Mode.AUTO, False, Verdict.ASK),
    ],
)
def test_the_mode_decides_about_everything_else(
    kind: ActionKind, mode: Mode, contained: bool, verdict: Verdict
) -> None:
    assert decide([do(kind)], mode=mode, contained=contained).verdict is verdict
    assert decide([do("read"), do("end"), do(kind)], mode=mode, contained=contained).verdict is verdict


def test_nothing_declared_is_the_worst() -> None:
    assert decide([], mode=Mode.READ_ONLY, contained=True).verdict is Verdict.DENY
    assert decide([], mode=Mode.AUTO, contained=False).verdict is Verdict.ASK


def test_an_unknown_kind_is_the_worst() -> None:
    unknown = do("read")
    object.__setattr__(unknown, "kind", "teleport")
    assert decide([unknown], mode=Mode.READ_ONLY, contained=True).verdict is Verdict.DENY


def test_the_reason_names_the_mode_and_what_would_happen() -> None:
    assert decide([do("write", "/etc/passwd")], mode=Mode.READ_ONLY, contained=True).why == (
        "read-only mode allows reading alone, and this would write to /etc/passwd"
    )
    why = decide([do("execute", "*"), do("network", "https://a.org")], mode=Mode.AUTO, contained=False).why
    assert why == "no sandbox confines this fully, and it would run a program, reach over the network https://a.org"


def test_the_reason_is_short_and_holds_nothing_that_acts_on_a_terminal() -> None:
    hostile = "/tmp/\x1b[2J\u202egnp.\n" + "x" * 10_000
    why = decide([do("write", hostile), *(do("write", f"/{n}") for n in range(50))], mode=Mode.ASK, contained=True).why
    assert why.isprintable()
    assert len(why) < 400
    assert "and 48 more" in why
    assert "/tmp/⟨U+001B⟩[2J⟨U+202E⟩gnp.⟨U+000A⟩x" in why  # as the question shows it


def test_what_was_allowed_answers_a_question_and_never_changes_a_refusal() -> None:
    grants = [parse_rule("allow run rm -rf x"), parse_rule('allow call bash {"command":"rm -rf x"}')]
    for rule, verdict in (("ask run rm *", Verdict.ALLOW), ("deny run rm *", Verdict.DENY)):
        found = decide(
            [Action(kind="execute", command="rm -rf x")],
            mode=Mode.AUTO,
            contained=True,
            rules=[parse_rule(rule)],
            grants=grants,
            call=Call("bash", {"command": "rm -rf x"}),
        )
        assert found.verdict is verdict, rule
    refused = decide([Action(kind="execute", command="rm -rf x")], mode=Mode.READ_ONLY, contained=True, grants=grants)
    assert refused.verdict is Verdict.DENY


@pytest.mark.parametrize(
    ("rule", "mode", "typed", "verdict"),
    [
        ("deny run rm -rf *", Mode.AUTO, "rm -rf /\\n", Verdict.DENY),
        ("deny run rm -rf *", Mode.AUTO, "ls\\nrm -rf /\\n", Verdict.DENY),
        ("deny run rm -rf *", Mode.AUTO, "y\\n", Verdict.ALLOW),
        ("deny run rm -rf *", Mode.AUTO, "'", Verdict.ASK),
        ("allow run ls *", Mode.ASK, "ls\\n", Verdict.ASK),  # who knows what reads it
        ("allow tool bash", Mode.ASK, "ls\\n", Verdict.ALLOW),
    ],
)
def test_what_is_typed_into_a_terminal_is_looked_into_and_allowed_by_no_rule_about_commands(
    rule: str, mode: Mode, typed: str, verdict: Verdict
) -> None:
    actions = Bash().actions({"job": "t1", "input": typed})
    found = decide(actions, mode=mode, contained=True, rules=[parse_rule(rule)], call=Call("bash"))
    assert found.verdict is verdict, found.why
