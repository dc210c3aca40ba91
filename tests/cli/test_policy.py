from __future__ import annotations

import json
from pathlib import Path

import pytest

from handwork.cli.app import run_command_line
from handwork.config.approvals import Approvals
from handwork.config.settings import Home


@pytest.fixture
def approvals(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Approvals:
    monkeypatch.chdir(tmp_path)
    found = Approvals(Home.from_environ({"HANDWORK_HOME": str(home)}).config)
    found.add(tmp_path, ["allow run make test", "allow write /x/y"])
    return found


def test_what_was_allowed_is_listed_and_taken_back(
    approvals: Approvals, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "c.toml"
    config.write_text('[policy]\nrules = ["deny run rm -rf *"]\n')
    assert run_command_line(["policy", "list", "--config", str(config)]) == 0
    shown = capsys.readouterr().out
    assert "c.toml, line 2" in shown
    assert "  deny run rm -rf *" in shown
    assert "  1. allow run make test\n  2. allow write /x/y\n" in shown
    assert run_command_line(["policy", "forget", "2"]) == 0
    assert capsys.readouterr().out == "Taken back: allow write /x/y\n"
    assert run_command_line(["policy", "forget", "allow run make test"]) == 0
    assert approvals.workspaces() == frozenset()
    assert run_command_line(["policy", "forget", "--all"]) == 0
    assert "Nothing was allowed for good" in capsys.readouterr().out


def test_the_list_as_json_is_one_object(
    approvals: Approvals, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["policy", "list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["allowed"] == ["allow run make test", "allow write /x/y"]
    assert found["file"] == str(approvals.path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Which rules?"),
        (["allow run make tes"], "did you mean allow run make test?"),
        (["3"], "Nothing of the kind was allowed in this folder: 3"),
        (["1", "--all"], "Which rules?"),
    ],
)
def test_what_cannot_be_taken_back_is_said(
    approvals: Approvals, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert run_command_line(["policy", "forget", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_rule_is_shown_as_it_is_and_can_be_pasted_back(
    approvals: Approvals, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = r'allow call bash {"command":"for i in range(3):\n    print(i)"}'
    approvals.add(tmp_path, [rule, "allow run a\u3164b"])
    assert run_command_line(["policy", "list"]) == 0
    shown = capsys.readouterr().out
    assert f"  3. {rule}\n" in shown
    assert "  4. allow run a⟨U+3164⟩b\n" in shown  # it would hide: its number takes it back
    assert run_command_line(["policy", "forget", rule.replace("range", "rang")]) == 2
    assert f"did you mean {rule}?" in capsys.readouterr().err
    assert run_command_line(["policy", "forget", rule]) == 0
    assert capsys.readouterr().out == f"Taken back: {rule}\n"


@pytest.mark.parametrize("command", [["policy", "list"], ["run", "--model", "openai:any", "--quiet", "a task"]])
def test_a_damaged_file_of_approvals_refuses_to_start(
    approvals: Approvals, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    approvals.path.write_text("[workspaces\n")
    assert run_command_line([*command]) == 2
    said = capsys.readouterr().err
    assert "approvals.toml" in said
    assert "correct the file, or delete it" in said
