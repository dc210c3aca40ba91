"""The record of what was approved: kept privately, by server, never believed when somebody else could have written it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handwork.config import MCPServerSettings
from handwork.config.mcp_variables import with_values
from handwork.errors import ConfigError
from handwork.mcp.approved import Approved
from handwork.mcp.offer import Offer, ToolOffer

SETTINGS = MCPServerSettings(command="server", args=("--x",), env={"TOKEN": "a"})
OFFER = Offer(server="s", version="1", tools=(ToolOffer(name="t", description="é ☃", parameters={"type": "object"}),))


@pytest.fixture
def approved(tmp_path: Path) -> Approved:
    return Approved(tmp_path / "mcp")


def _file(approved: Approved) -> Path:
    (file,) = approved.folder.glob("*.json")
    return file


def test_what_was_approved_is_known_in_the_next_session(approved: Approved, tmp_path: Path) -> None:
    assert approved.find("s", SETTINGS) is None
    approved.keep("s", SETTINGS, OFFER)
    again = Approved(tmp_path / "mcp")
    assert again.find("s", SETTINGS) == OFFER
    record = again.record("s", SETTINGS)
    assert record is not None
    assert record.when.endswith("Z")


def test_only_its_user_may_read_and_write_it(approved: Approved) -> None:
    approved.keep("s", SETTINGS, OFFER)
    assert _file(approved).stat().st_mode & 0o777 == 0o600
    assert approved.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "other",
    [
        {"command": "other"},
        {"args": ()},
        {"args": ("--x", "--y")},
        {"env": {"OTHER": "a"}},
        {"cwd": "/tmp"},
        {"type": "http", "url": "http://localhost/mcp", "command": ""},
    ],
)
def test_another_program_under_the_same_name_is_another_server(approved: Approved, other: dict[str, Any]) -> None:
    approved.keep("s", SETTINGS, OFFER)
    settings = MCPServerSettings.model_validate({**SETTINGS.model_dump(), **other})
    assert approved.find("s", settings) is None
    record = approved.record("s", settings)
    assert record is not None
    assert not record.is_about(settings)


def test_servers_of_one_name_in_different_folders_keep_what_was_approved_of_each(approved: Approved) -> None:
    others = [SETTINGS.model_copy(update={"args": (number,)}) for number in "12"]
    for number, settings in enumerate((SETTINGS, *others)):
        approved.keep("s", settings, Offer(server=str(number)))
    assert [approved.find("s", each) for each in (SETTINGS, *others)] == [Offer(server=each) for each in "012"]
    assert approved.forget("s", others[0])
    assert approved.find("s", others[0]) is None
    assert approved.find("s", SETTINGS) == Offer(server="0")


def test_a_damaged_record_of_another_server_of_that_name_disturbs_nobody(approved: Approved) -> None:
    approved.keep("s", SETTINGS, OFFER)
    _file(approved).write_text("{")
    assert approved.record("s", SETTINGS.model_copy(update={"args": ("other",)})) is None


@pytest.mark.parametrize("other", [{"env": {"TOKEN": "b"}}, {"timeout": 5}, {"new_tools": True}, {"paths": ("/srv",)}])
def test_the_same_program_with_another_token_or_limit_is_the_same_server(
    approved: Approved, other: dict[str, Any]
) -> None:
    approved.keep("s", SETTINGS, OFFER)
    assert approved.find("s", MCPServerSettings.model_validate({**SETTINGS.model_dump(), **other})) == OFFER


def test_no_value_of_a_variable_is_written(approved: Approved) -> None:
    approved.keep("s", MCPServerSettings(command="x", env={"TOKEN": "hunter2"}), OFFER)
    assert "hunter2" not in _file(approved).read_text()


@pytest.mark.parametrize(
    "names", [("a/b", "a_b"), ("../x", "x"), ("a" * 300, "a" * 301), ("S", "s"), ("", "_"), ("é", "è")]
)
def test_names_that_look_alike_have_records_of_their_own(approved: Approved, names: tuple[str, str]) -> None:
    for name in names:
        approved.keep(name, SETTINGS, Offer(server=name))
    assert [found.server for name in names if (found := approved.find(name, SETTINGS))] == [*names]
    assert len([*approved.folder.iterdir()]) == 2


def test_what_is_forgotten_is_taken_as_it_comes(approved: Approved) -> None:
    assert not approved.forget("s", SETTINGS)
    approved.keep("s", SETTINGS, OFFER)
    assert approved.forget("s", SETTINGS)
    assert approved.find("s", SETTINGS) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 2}',
        "\x00",
        "[" * 5000,
        '{"version":1,"server":"s","key":"k","when":"w","offer":{"tools":5}}',
    ],
)
def test_a_damaged_record_is_an_error_that_names_the_file(approved: Approved, text: str) -> None:
    approved.keep("s", SETTINGS, OFFER)
    _file(approved).write_text(text)
    with pytest.raises(ConfigError, match=r"cannot be used") as caught:
        approved.find("s", SETTINGS)
    assert str(_file(approved)) in caught.value.what
    assert "delete the file" in caught.value.hint
    assert approved.forget("s", SETTINGS)


def test_a_record_of_another_server_in_its_place_is_an_error(approved: Approved) -> None:
    approved.keep("t", SETTINGS, OFFER)
    other = _file(approved)
    approved.keep("s", SETTINGS, OFFER)
    (own,) = set(approved.folder.glob("*.json")) - {other}
    own.write_text(other.read_text())
    with pytest.raises(ConfigError, match="about another server"):
        approved.find("s", SETTINGS)


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_record_that_others_may_change_is_not_believed(approved: Approved, mode: int) -> None:
    approved.keep("s", SETTINGS, OFFER)
    _file(approved).chmod(mode)
    with pytest.raises(ConfigError, match="may be changed by others"):
        approved.find("s", SETTINGS)


def test_a_link_or_a_pipe_in_its_place_is_not_followed(approved: Approved, tmp_path: Path) -> None:
    approved.keep("s", SETTINGS, OFFER)
    file = _file(approved)
    elsewhere = tmp_path / "elsewhere.json"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    with pytest.raises(ConfigError):
        approved.find("s", SETTINGS)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(ConfigError):
        approved.find("s", SETTINGS)


def test_a_definition_changed_in_the_file_is_just_another_definition(approved: Approved) -> None:
    """Who may write there is the user, so it is believed; a tool that differs from it is asked about."""
    approved.keep("s", SETTINGS, OFFER)
    data = json.loads(_file(approved).read_text())
    data["offer"]["tools"][0]["description"] = "other"
    _file(approved).write_text(json.dumps(data))
    found = approved.find("s", SETTINGS)
    assert found is not None
    assert found.tools[0].digest != OFFER.tools[0].digest


def test_where_nothing_can_be_written_the_error_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "mcp").write_text("a file")
    with pytest.raises(ConfigError, match="cannot be kept"):
        Approved(tmp_path / "mcp").keep("s", SETTINGS, OFFER)


def test_an_offer_too_large_to_be_read_again_is_not_kept_and_spoils_nothing(approved: Approved) -> None:
    approved.keep("s", SETTINGS, OFFER)
    with pytest.raises(ConfigError, match="too large to be kept"):
        approved.keep("s", SETTINGS, replace(OFFER, instructions="ä" * 6_000_000))
    assert approved.find("s", SETTINGS) == OFFER


def test_in_another_workspace_and_with_another_key_it_is_the_same_server(approved: Approved) -> None:
    written = MCPServerSettings(command="server", args=("${workspaceFolder}", "--key=${KEY}"), cwd="${workspaceFolder}")
    approved.keep("s", with_values(written, {"KEY": "one"}, "/ws/one"), OFFER)
    assert approved.find("s", with_values(written, {"KEY": "two"}, "/ws/two")) == OFFER
    assert approved.find("s", with_values(written, {}, "/ws/two")) == OFFER
    assert approved.find("s", written.model_copy(update={"args": ("/ws/one", "--key=one")})) is None
