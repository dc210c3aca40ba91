"""Names of a server's tools: for the model unique and stable, for people plain."""

from __future__ import annotations

import re

import pytest

from handwork.mcp.names import for_people, tool_names


def test_a_tool_is_named_after_its_server_and_itself() -> None:
    assert tool_names("time", ["get_current_time"]) == {"get_current_time": "mcp_time_get_current_time"}


def test_other_characters_become_underscores() -> None:
    assert tool_names("my server", ["files.read/all"]) == {"files.read/all": "mcp_my_server_files_read_all"}


@pytest.mark.parametrize("tool", ["x" * 200, "ä" * 90, "a b" * 30])
def test_a_long_name_is_cut_and_stays_unique(tool: str) -> None:
    names = tool_names("s", [tool, tool + "2"])
    assert len(set(names.values())) == 2
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names.values())


def test_of_two_tools_that_would_be_named_alike_the_one_spelt_so_keeps_the_name() -> None:
    names = tool_names("s", ["a.b", "a_b", "a/b"])
    assert names["a_b"] == "mcp_s_a_b"
    assert len(set(names.values())) == 3
    assert names == {tool: tool_names("s", ["a/b", "a_b", "a.b"])[tool] for tool in names}


def test_two_tools_neither_of_which_is_spelt_so_both_get_a_digest() -> None:
    names = tool_names("s", ["a.b", "a/b"])
    assert "mcp_s_a_b" not in names.values()


@pytest.mark.parametrize(
    ("one", "two", "tool_of_one", "tool_of_two"),
    [("a", "a_b", "b_c", "c"), ("a b", "a_b", "c", "c"), ("a b", "a.b", "c", "c"), ("a", "a b", "b_c", "c")],
)
def test_tools_of_two_servers_never_share_a_name_whoever_connects_first(
    one: str, two: str, tool_of_one: str, tool_of_two: str
) -> None:
    both = (one, two)
    first = tool_names(one, [tool_of_one], servers=both)[tool_of_one]
    second = tool_names(two, [tool_of_two], servers=both)[tool_of_two]
    assert first != second
    assert tool_names(one, [tool_of_one], servers=both, taken=[second])[tool_of_one] == first


def test_a_tool_never_takes_the_name_of_another_one() -> None:
    taken = ["mcp_s_a", "bash"]
    name = tool_names("s", ["a"], taken=taken)["a"]
    assert name not in taken
    assert name.startswith("mcp_s_a_")
    again = tool_names("s", ["a"], taken=[*taken, name])["a"]
    assert again not in (*taken, name)


def test_no_server_and_tool_lead_to_a_name_of_ours() -> None:
    assert tool_names("", [""]) == {"": "mcp__"}
    assert all(name.startswith("mcp_") for name in tool_names("bash", ["bash", "terminate"]).values())


def test_people_read_server_and_tool_with_nothing_hidden_in_them() -> None:
    assert for_people("git", "status") == "git:status"
    assert "\x1b" not in for_people("a\x1b[2J", "b\nc")
    assert "\n" not in for_people("a", "b\nc")
