"""The file with the token that clients over HTTP must know."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from handwork.errors import ConfigError
from handwork.server.token import is_token, token_of


def test_a_file_that_is_not_there_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "token"
    token, made = token_of(file)
    assert made
    assert len(token) >= 40
    assert file.stat().st_mode & 0o777 == 0o600
    assert token_of(file) == (token, False)
    assert token_of(tmp_path / "other")[0] != token


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666, 0o644])
def test_a_file_that_others_can_read_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "token"
    token_of(file)
    file.chmod(mode)
    with pytest.raises(ConfigError, match=f"can be read by others – chmod 600 {file}"):
        token_of(file)


@pytest.mark.parametrize(
    "text", ["", "\n", "short", "two words in one line here", "a" * 5000, "tökentökentöken!", "\0" * 20]
)
def test_a_file_without_a_token_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="holds no token"):
        token_of(file)


@pytest.mark.parametrize(
    "text", ["root:x:0:0:root:/root:/bin/sh\nyou:x:1000:\n", "a secret of somebody's\n", "", "k" * 5000]
)
@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_nobody_is_told_to_change_or_delete_a_file_that_is_something_else(tmp_path: Path, text: str, mode: int) -> None:
    file = tmp_path / "passwd"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(ConfigError) as caught:
        token_of(file)
    assert "chmod" not in str(caught.value)
    if text:
        assert caught.value.hint == "name another file: one that is not there yet is made"
    with pytest.raises(ConfigError) as caught:
        token_of(Path("/etc/passwd"))
    assert "chmod" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_somebody_else_is_refused_even_if_it_holds_a_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    token_of(file)
    os.chown(file, 12345, -1)
    with pytest.raises(ConfigError, match="belongs to somebody else – name another file"):
        token_of(file)


def test_of_two_servers_that_start_for_the_first_time_at_once_both_know_the_same_token(tmp_path: Path) -> None:
    for turn in range(20):
        file, together = tmp_path / str(turn) / "token", threading.Barrier(8)

        def started(file: Path = file, together: threading.Barrier = together) -> tuple[str, bool]:
            together.wait(10)
            return token_of(file)

        with ThreadPoolExecutor(8) as threads:
            found = [each.result() for each in [threads.submit(started) for _ in range(8)]]
        assert len({token for token, _ in found}) == 1
        assert [made for _, made in found].count(True) == 1
        assert [each.name for each in file.parent.iterdir()] == ["token"]


def test_what_is_no_file_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigError, match="is no file"):
        token_of(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="is no file|cannot be read"):
        token_of(tmp_path)
    with pytest.raises(ConfigError, match="cannot be made"):
        token_of(Path("/proc/self/nothing/token"))


def test_a_link_that_leads_nowhere_makes_no_file_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "token").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError):
        token_of(tmp_path / "token")
    assert not (tmp_path / "elsewhere").exists()


def test_only_the_very_token_is_one() -> None:
    assert is_token("abcdef", "abcdef")
    assert not any(is_token(given, "abcdef") for given in ("", "abcde", "abcdefg", "ABCDEF", "abcdéf", "\udcff"))
