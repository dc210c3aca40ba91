"""Commands that are shown to be typed."""

from __future__ import annotations

import shlex

import pytest

from handwork.mcp.own_command import own_command


@pytest.mark.parametrize("name", ["time", "My Server", "x; rm -rf ~", "$(id)", "it's", "a\nb", ""])
def test_a_servers_name_is_one_word_of_its_command_whatever_stands_in_it(name: str) -> None:
    assert shlex.split(own_command("login", name, "--scope", "a b")) == [
        *("handwork", "mcp", "login", name, "--scope", "a b")
    ]
    assert ";" not in shlex.split(own_command("test", name), posix=False)


def test_a_plain_name_stands_as_it_is() -> None:
    assert own_command("login", "time") == "handwork mcp login time"


def test_a_name_that_looks_like_an_option_is_none() -> None:
    assert own_command("login", "-x", "--scope", "a") == "handwork mcp login --scope a -- -x"
