from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handwork.config.policy_rules import Rule, parse_rule
from handwork.policy.commands import parse
from handwork.policy.decide import Call, decide
from handwork.policy.exact import exact_rules
from handwork.policy.judge import Judge
from handwork.policy.paths import Place
from handwork.policy.scripts import steps
from handwork.schema import Action, Mode, Verdict
from tests.policy.rows import TABLE
from tests.policy.shell_texts import shell_texts
from tests.policy.table import PLACE, action_of

_STRICT = [Verdict.ALLOW, Verdict.ASK, Verdict.DENY]
_TEXTS = sorted(
    {text for row in TABLE for text in row.rules.split(" ;; ") if text} | {"allow run c1 *", "deny run c2 *"}
)
_DONE = sorted({row.done for row in TABLE if len(row.done) < 200})

_SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

rules = st.lists(st.sampled_from(_TEXTS).map(parse_rule), max_size=4)
done = st.one_of(st.sampled_from(_DONE), shell_texts())
modes = st.sampled_from(list(Mode))


def strictness(actions: list[Action], rules: list[Rule], mode: Mode, *, contained: bool = True) -> int:
    return _STRICT.index(
        decide(actions, mode=mode, contained=contained, rules=rules, place=PLACE, call=Call("bash", {})).verdict
    )


@_SLOW
@given(done, rules, st.integers(0, 4), st.sampled_from(_TEXTS), modes, st.booleans())
def test_one_more_rule_that_denies_never_loosens(
    done: str, rules: list[Rule], at: int, text: str, mode: Mode, contained: bool
) -> None:
    denies = parse_rule(f"deny {text.split(None, 1)[1]}")
    more = [*rules[:at], denies, *rules[at:]]
    before = strictness([action_of(done)], rules, mode, contained=contained)
    assert strictness([action_of(done)], more, mode, contained=contained) >= before


@given(st.lists(st.sampled_from(_DONE), min_size=1, max_size=3), rules, modes)
def test_a_compound_is_never_looser_than_its_strictest_part(parts: list[str], rules: list[Rule], mode: Mode) -> None:
    commands = [part for part in parts if not part.startswith(":")]
    strictest = max((strictness([action_of(part)], rules, mode) for part in commands), default=0)
    assert strictness([action_of("\n".join(["true", *commands]))], rules, mode) >= strictest


@given(st.lists(st.sampled_from(_DONE), min_size=1, max_size=3), rules, modes)
def test_a_call_is_as_strict_as_the_strictest_of_its_actions(parts: list[str], rules: list[Rule], mode: Mode) -> None:
    actions = [action_of(part) for part in parts]
    assert strictness(actions, rules, mode) == max(strictness([action], rules, mode) for action in actions)


@_SLOW
@given(done, rules)
def test_read_only_mode_is_never_loosened(done: str, rules: list[Rule]) -> None:
    action = action_of(done)
    assert strictness([action], rules, Mode.READ_ONLY) >= strictness([action], [], Mode.READ_ONLY)


@_SLOW
@given(done, rules, modes, st.booleans())
def test_the_rules_of_an_approval_spare_the_same_question_and_allow_no_other_command(
    done: str, rules: list[Rule], mode: Mode, contained: bool
) -> None:
    action, arguments = action_of(done), {"command": done}
    judge = Judge(mode, contained, tuple(rules), (), PLACE, "bash", arguments)
    if strictness([action], rules, mode, contained=contained) != 1 or done.startswith(":"):
        return
    grants = [parse_rule(text) for text in exact_rules(judge, steps(done, {}))]
    call = Call("bash", arguments)

    def again(text: str) -> Verdict:
        return decide(
            [action_of(text)], mode=mode, contained=contained, rules=rules, grants=grants, place=PLACE, call=call
        ).verdict

    assert again(done) is Verdict.ALLOW
    call = Call("bash", {"command": f"{done}\nc9"})
    if mode is Mode.ASK and not any(rule.verdict is Verdict.ALLOW for rule in rules):
        assert again(f"{done}\nc9") is not Verdict.ALLOW


@given(st.text(max_size=200))
def test_reading_a_command_never_fails(text: str) -> None:
    parse(text)
    steps(text, {})


@given(st.text(alphabet="'\"\\$`(){}[]<>|&;#!~*?=, \n\tabc", max_size=60))
def test_reading_a_command_of_signs_never_fails(text: str) -> None:
    steps(text, {})


@pytest.mark.parametrize(
    "piece",
    [
        *("a ", "a;", "'a' ", '"a" ', "$(", "$((", "${x:-", "`", "(", "{ ", "\\", "<(", "<<E ", "<<E\n", "x=(", "a[", "((", "[["),
        *("if ", "case x in ", "for x in ", "f() ", "#", "\n", "\\\n", "$'\\x61' ", "env ", "sudo ", "eval ", "bash -c ", "\"$(", "\\`"),
        *("find -exec ", "alias a=b ", "--x=", "a=", "*", "{a,b}", "~", ">a ", "2>&1 ", "!", "time ", "$x ", "xargs ", "git -c ", "|"),
    ],
)  # fmt: skip
def test_the_time_to_read_a_command_grows_with_its_length_alone(piece: str) -> None:
    rules = [parse_rule(text) for text in ("deny run rm -rf *", "deny write .git/**", "allow run a *")]

    def seconds(count: int) -> float:
        began = time.process_time()
        decide(
            [Action(kind="execute", command=piece * count)], mode=Mode.AUTO, contained=True, rules=rules, place=Place()
        )
        return time.process_time() - began

    seconds(100)
    assert seconds(40_000) < 3.0
