"""What holds in a session besides the rules of its user."""

from __future__ import annotations

from pathlib import Path

import pytest

from handwork.config import Settings
from handwork.schema import Action, Mode, Verdict
from handwork.session.grants import Grants

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize(
    ("command", "verdict", "why"),
    [
        ("python3 -c 'print(1)'", Verdict.ASK, "no sandbox keeps it from Handwork's own files, and it would run"),
        ("rm {config}/x", Verdict.DENY, "no program is to change Handwork's own files: it would write to"),
        ("ls", Verdict.ASK, "no sandbox confines this fully, and it would run ls"),
    ],
)
def test_a_rule_of_ours_is_told_by_what_it_keeps(tmp_path: Path, command: str, verdict: Verdict, why: str) -> None:
    settings = Settings()
    action = Action(kind="execute", command=command.format(config=settings.home.config))
    found = Grants(settings, tmp_path).decide([action], mode=Mode.AUTO, contained=False)
    assert found.verdict is verdict
    assert found.why.startswith(why)
    assert "rule" not in found.why


def test_what_was_allowed_for_the_session_is_forgotten_and_what_is_written_down_stays(tmp_path: Path) -> None:
    grants = Grants(Settings(), tmp_path)
    grants.allow(["allow run a", "allow run b"], for_good=False, contained=False)
    grants.allow(["allow run b"], for_good=True, contained=False)
    assert grants.for_session == ("allow run a", "allow run b")
    grants.forget(["allow run a", "allow run b"])
    assert grants.for_session == ()

    def verdict(command: str) -> Verdict:
        action = Action(kind="execute", command=command)
        return grants.decide([action], mode=Mode.AUTO, contained=False).verdict

    assert verdict("a") is Verdict.ASK
    assert verdict("b") is Verdict.ALLOW
