from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handwork.config import load_settings
from handwork.config.policy_rules import call_pattern, parse_rule, run_pattern
from handwork.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("", "begins with nothing", "known are allow, ask, deny"),
        ("alow run ls", "begins with alow", "did you mean allow?"),
        ("DENY run ls", "begins with DENY", "did you mean deny?"),
        ("deny rum ls", "has rum where its kind belongs", "did you mean run?"),
        ("deny git status", "has git where its kind belongs", "known are read, write, run, network, tool, call"),
        ("deny", "has nothing where its kind belongs", "known are"),
        ("deny run", "names nothing", "allow run git status"),
        ("deny run rm *.py", "has *, which means something else to a shell", "* may stand alone at its end"),
        ("deny run a; b", "has ;", "quotes"),
        ("deny run a > b", "has >", "quotes"),
        ("deny run $x", "has $", "quotes"),
        ("deny run 'a", "cannot be read: No closing quotation", "close its quotes"),
        ("deny write a**/b", "has ** beside other characters", "alone between slashes"),
        ("deny write ~root/x", "names another user's home folder", "write the whole path"),
        ("allow network", "names nothing", "*.example.com"),
        ("allow network http://x/", "names no host", "*.example.com"),
        ("allow network a b", "names no host", "*.example.com"),
        ("allow network x:0", "names no host: '0' is no port", "*.example.com"),
        ("allow network *.1.2.3.4", "names no host: an address has no names below it", "*.example.com"),
        ("allow tool a b", "is no tool's name", "* may stand at its end"),
        ("allow tool *a", "is no tool's name", "* may stand at its end"),
        ("allow call bash", "has no JSON behind the tool's name", "allow call web_search"),
        ("allow call bash [1]", "has no JSON object", "allow call web_search"),
        ("allow run ls\n", "holds a character that is not shown", ""),
        ("allow run l\u202es", "holds a character that is not shown", ""),
    ],
)
def test_a_rule_that_is_none_is_told_with_what_may_be_meant(text: str, what: str, hint: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_rule(text)
    assert what in error.value.what
    assert hint in error.value.hint


def test_a_bad_rule_is_told_with_file_and_line(tmp_path: Path) -> None:
    config = tmp_path / "handwork.toml"
    config.write_text('[policy]\nrules = [\n  "allow run ls",\n  "deny rum rm",\n]\n')
    with pytest.raises(ConfigError) as error:
        load_settings(config, workspace=tmp_path)
    assert f"{config}, line 4" in error.value.what
    assert "rum" in error.value.what
    assert "did you mean run?" in str(error.value)


@given(st.lists(st.text(alphabet="ab *?'\"\\$`;|&<>()~#é=-", max_size=6), min_size=1, max_size=4))
def test_any_words_can_be_named_exactly(words: list[str]) -> None:
    rule = parse_rule(f"allow run {run_pattern(tuple(words))}")
    assert rule.words == tuple(words)
    assert not rule.open


@given(st.dictionaries(st.text(max_size=5), st.one_of(st.text(max_size=8), st.integers(), st.none()), max_size=3))
def test_any_call_can_be_named_exactly(arguments: dict[str, object]) -> None:
    text = f"allow call a_tool {call_pattern('a_tool', arguments)[7:]}"
    rule = parse_rule(text)
    assert str(rule) == text
    assert rule.pattern == call_pattern("a_tool", dict(reversed(arguments.items())))
    assert rule.pattern.isprintable()
