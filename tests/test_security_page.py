"""docs/security.md says what is so: its rules do what it says, its tests exist, and it hides nothing that gets through."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from handwork.config import load_settings
from handwork.config.policy_rules import parse_rule
from handwork.policy.decide import decide
from handwork.policy.paths import Place
from handwork.schema import Action, ActionKind
from tests.attacks.landlock import NOT_HELD
from tests.attacks.rows import GROUPS

_HERE = Path(__file__).parent
_PAGE = (_HERE.parent / "docs" / "security.md").read_text()
_WORKSPACE = "/ws"


def _section(title: str) -> str:
    return _PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def _points(text: str) -> Iterator[str]:
    """The points of its lists, each as one line."""
    for point in re.findall(r"^- (.*(?:\n  .*)*)", text, re.MULTILINE):
        yield " ".join(point.split()).rstrip(".")


def _said(reason: str) -> str:
    """A reason as the page writes it."""
    return reason[0].upper() + reason[1:]


def test_each_test_that_it_names_exists() -> None:
    defined = {
        name for file in _HERE.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", file.read_text("utf-8"))
    }
    named = set(re.findall(r"`(test_\w+)`", _PAGE))
    assert len(named) > 50
    assert named - defined == set()


def test_each_group_of_attacks_that_it_names_exists() -> None:
    named = {
        name for names in re.findall(r"`test_no_attack_gets_through` \(([^)]*)\)", _PAGE) for name in names.split(", ")
    }
    assert named <= set(GROUPS)
    assert set(GROUPS) - named <= {"nobody to ask", "read-only"}  # these two stand in words


def test_it_lists_each_attack_that_gets_through_and_no_other() -> None:
    nowhere, _, rest = _section("What is not promised").partition("\n\nIn landlock")
    landlock, _, _besides = rest.partition("\n\nAnd besides")
    reasons = {_said(row.reason) for group in GROUPS.values() for row in group.rows if row.reason}
    assert set(_points(nowhere)) == reasons
    told = " ".join(_points(landlock))
    assert [reason for reason in NOT_HELD.values() if _said(reason) not in told] == []


_RULES = re.search(r"```toml\n(\[policy\].*?)```", _section("Rules"), re.DOTALL)
_CALLS = re.findall(r"^\| `([^`]*)` \| (allow|ask|deny) \|$", _section("Rules"), re.MULTILINE)


@pytest.mark.parametrize(("call", "answer"), _CALLS)
def test_its_rules_answer_what_it_says(call: str, answer: str, tmp_path: Path) -> None:
    assert _RULES is not None
    (tmp_path / "own.toml").write_text(_RULES[1])
    settings = load_settings(tmp_path / "own.toml", workspace=tmp_path, environ={"HOME": str(tmp_path)})
    kind, _, resource = call.partition(" ")
    action = Action(kind="execute", resource="*", command=call)
    if kind in ("read", "write", "network"):
        action = Action(
            kind=cast(ActionKind, kind), resource=resource if kind == "network" else f"{_WORKSPACE}/{resource}"
        )
    assert settings.policy.approve is not None
    decision = decide(
        [action],
        mode=settings.policy.approve,
        contained=True,
        rules=[parse_rule(text) for text in settings.policy.rules],
        place=Place(_WORKSPACE, "/home"),
        real={path: f"{_WORKSPACE}/{path}" for path in re.findall(r"> (\S+)", call)},
    )
    assert decision.verdict.value == answer, decision.why


def test_its_links_lead_to_its_sections() -> None:
    titles = {title.lower().replace(" ", "-") for title in re.findall(r"^## (.*)$", _PAGE, re.MULTILINE)}
    assert set(re.findall(r"\(#([^)]*)\)", _PAGE)) == titles
