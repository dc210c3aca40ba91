"""What may lie where a configuration file should, and which file is taken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handwork.config import load_settings
from tests.config.places import Places
from tests.support.powers import bound_by_permissions


def test_a_directory_a_pipe_and_a_device_are_named_and_never_waited_for(places: Places) -> None:
    folder, pipe = places.home / "config.toml", places.home / "pipe.toml"
    folder.mkdir()
    os.mkfifo(pipe)
    assert places.complaint() == f"{folder}: the configuration cannot be read: it is a directory"
    assert places.complaint(pipe) == f"{pipe}: the configuration cannot be read: it is no regular file"
    assert "no regular file" in places.complaint(Path("/dev/zero"))
    assert places.load(Path(os.devnull)).llm_for("x").model == ""


@pytest.mark.parametrize("named", ["config.toml", "setup.toml", "mcp.json"])
def test_a_link_to_nowhere_is_no_absent_file(places: Places, named: str) -> None:
    (places.home / named).symlink_to(places.home / "gone")
    assert f"{places.home / named}: the configuration cannot be read: No such file" in places.complaint()


def test_a_file_without_permission_is_named(places: Places) -> None:
    places.write("config.toml", "").chmod(0)
    with bound_by_permissions():
        assert "Permission denied" in places.complaint()


def test_a_name_that_no_file_can_have_is_an_error_and_no_crash(places: Places) -> None:
    assert "cannot be read" in places.complaint(Path("a\0b"))
    assert "cannot be read" in places.complaint(Path("x" * 5000))


@pytest.mark.parametrize("named", ["config.toml", "mcp.json"])
@pytest.mark.parametrize(
    ("data", "line"), [('[llm]\nmodel = "ä"'.encode("utf-16"), 1), (b'[llm]\n\nmodel = "\xe4"', 3)]
)
def test_a_file_in_another_encoding_says_so(places: Places, named: str, data: bytes, line: int) -> None:
    (places.home / named).write_bytes(data)
    told = places.complaint()
    assert f"{named}, line {line}: the configuration is not UTF-8 text" in told
    assert "encoding UTF-8" in told


def test_a_file_that_is_too_large_is_no_configuration(places: Places) -> None:
    places.write("config.toml", "# " + "x" * 1_000_000)
    assert "larger than 1,000,000 bytes" in places.complaint()


def test_the_line_of_an_error_in_a_large_file_is_found_at_once(places: Places) -> None:
    many = "".join(f'[llm.agent{number}]\nmodel = "openai:m"\n' for number in range(5000))
    places.write("config.toml", f"{many}\r\n[llm]\r\nmodle = 1")
    assert "line 10003: unknown key [llm] modle" in places.complaint()


def test_a_key_of_endless_parts_is_refused_at_once(places: Places) -> None:
    places.write("config.toml", "[llm]\n" + "a." * 400_000 + "a = 1")
    assert "line 2: this is no configuration: it has more than 64 levels" in places.complaint()


def test_a_table_of_setup_lies_under_every_file(places: Places) -> None:
    setup = places.write("setup.toml", '[llm]\nmodel = "openai:chosen"\nmax_tokens = 5')
    assert places.load().llm_for("x").model == "openai:chosen"
    own = places.write("config.toml", '[llm]\nmodel = "openai:own"')
    configuration = places.configuration()
    llm = configuration.settings.llm_for("x")
    assert (llm.model, llm.max_tokens) == ("openai:own", 5)
    assert configuration.files == (setup, own)
    assert str(configuration.origins["llm", "default", "max_tokens"]) == f"{setup}, line 3"
    named = places.in_workspace("named.toml", "[llm]\nmax_tokens = 6")
    assert places.load(named).llm_for("x") == llm.model_copy(update={"model": "openai:chosen", "max_tokens": 6})


def test_of_two_files_in_the_users_folder_one_is_taken_and_the_other_is_told(places: Places) -> None:
    own = places.write("config.toml", '[llm]\nmodel = "openai:a"')
    other = places.write("handwork.toml", "nonsense")
    configuration = places.configuration()
    assert configuration.files == (own,)
    assert configuration.unread == {other: f"{own} was taken"}


def test_all_files_of_a_workspace_are_told_in_one_notice(places: Places) -> None:
    files = [places.in_workspace(name) for name in ("handwork.toml", "config/config.toml", "mcp.json")]
    configuration = places.configuration()
    assert set(configuration.unread) == set(files)
    (notice,) = configuration.settings.notices
    assert all(str(file) in notice for file in files)
    assert notice.endswith(f"--config {files[0]}")
    assert files[0] not in places.configuration(files[0]).unread


def test_a_current_folder_that_is_gone_stops_nobody(
    places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert load_settings(environ={"HANDWORK_HOME": str(places.home)}).notices == ()
