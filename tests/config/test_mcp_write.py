"""Writing a server into mcp.json: the entry is there, and nothing else has changed."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from handwork.config.mcp_file import read_servers
from handwork.config.mcp_write import has_server, put_server, remove_server, secrets_in
from handwork.errors import ConfigError

ENTRY = {"command": "uvx", "args": ["some"]}
OTHERS = """\
{
    // kept by hand
    "theme":   "dark",
    "mcpServers": {
        "first": {"command": "a",   "args": ["x", "y"]},

        "second": { "url": "http://127.0.0.1:1/mcp" }  /* mine */
    }
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mcp.json"


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_a_file_that_is_missing_is_made_for_its_user_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "mcp.json"
    put_server(file, "it", ENTRY)
    assert json.loads(file.read_text()) == {"mcpServers": {"it": ENTRY}}
    assert mode(file) == 0o600
    assert not list(file.parent.glob(".mcp*"))


def test_a_new_entry_stands_behind_the_others_which_keep_every_byte(file: Path) -> None:
    file.write_text(OTHERS)
    put_server(file, "it", ENTRY)
    head, tail = OTHERS.split("  /* mine */")
    added = ',\n        "it": {\n            "command": "uvx",\n            "args": [\n                "some"\n            ]\n        }'
    assert file.read_text() == f"{head}{added}  /* mine */{tail}"


def test_an_entry_of_that_name_is_replaced_where_it_stands(file: Path) -> None:
    file.write_text(OTHERS)
    put_server(file, "first", {"url": "x"})
    assert file.read_text() == OTHERS.replace(
        '{"command": "a",   "args": ["x", "y"]}', '{\n            "url": "x"\n        }'
    )


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"mcpServers": {"it": {}}}', '{"mcpServers": {}}'),
        ('{"mcpServers": {\n  "it": {},\n}}', '{"mcpServers": {}}'),
        ('{"mcpServers": {"it": {}, "b": {}}}', '{"mcpServers": {"b": {}}}'),
        ('{"mcpServers": {"a": {}, "it": {}, "b": {}}}', '{"mcpServers": {"a": {}, "b": {}}}'),
        ('{"mcpServers": {"a": {}, "it": {},}, "x": 1}', '{"mcpServers": {"a": {},}, "x": 1}'),
        ('{"it": 1, "mcpServers": {"it": {"it": {}}, "a": 1}}', '{"it": 1, "mcpServers": {"a": 1}}'),
        ('{"mcpServers": { // {\n "it": {}\n}}', '{"mcpServers": {}}'),
        ('{"mcpServers": {"it": {} // }\n}, "x": 1}', '{"mcpServers": {}, "x": 1}'),
    ],
)
def test_an_entry_that_is_removed_takes_its_comma_along(file: Path, text: str, left: str) -> None:
    file.write_text(text)
    assert has_server(file, "it")
    assert remove_server(file, "it")
    assert file.read_text() == left
    assert not remove_server(file, "it")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "{}",
        "{\n}\n",
        '{"mcpServers": {}}',
        '{"mcpServers": { // none yet\n }}',
        '{"x": [1, {"mcpServers": {}}], "y": "}{"}',
        '{"x": "\\"mcpServers\\": {",}',
        '\ufeff{"x": 1}',
        '{\r\n\t"mcpServers": {\r\n\t\t"a": {"command": "c"}\r\n\t}\r\n}\r\n',
    ],
)
def test_every_form_of_a_file_takes_an_entry_and_gives_it_back(file: Path, text: str) -> None:
    file.write_bytes(text.encode())
    put_server(file, "it", ENTRY)
    assert has_server(file, "it")
    if "\r\n" in text:
        assert file.read_bytes().count(b"\n") == file.read_bytes().count(b"\r\n")
        assert b'\r\n\t\t"it": {\r\n\t\t\t"command"' in file.read_bytes()
    assert remove_server(file, "it")
    assert not has_server(file, "it")


@pytest.mark.parametrize(
    "text",
    [
        '{"servers": {"a": {"command": "c"}}}',
        '{"context_servers": {"a": {"command": "c"}}, "theme": 1}',
        '{"mcp": {"servers": {"a": {"command": "c"}}}}',
        '{"mcp": {"a": {"type": "local", "command": ["c"]}}}',
        '{"a": {"command": "c"}}',
    ],
)
def test_in_the_file_of_another_program_an_entry_stands_among_those_that_count(file: Path, text: str) -> None:
    file.write_text(text)
    put_server(file, "it", ENTRY)
    assert list(read_servers(file)) == ["a", "it"]
    assert has_server(file, "it")
    put_server(file, "it", {"command": "other"})
    assert read_servers(file)["it"].command == "other"
    assert remove_server(file, "it")
    assert file.read_text() == text
    assert remove_server(file, "a")
    assert not read_servers(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "must be an object"),
        ('{"mcpServers": 1}', "mcpServers must be an object"),
        ('{"a": 1, "a": 2}', "a is set twice"),
        ("{", "not valid JSON"),
    ],
)
def test_a_file_that_is_broken_is_not_touched(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        put_server(file, "it", ENTRY)
    assert file.read_text() == text


def test_a_link_is_not_followed(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}")
    file.symlink_to(other)
    with pytest.raises(ConfigError, match="is not changed: it is a link"):
        put_server(file, "it", ENTRY)
    assert other.read_text() == "{}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file that belongs to somebody else")
def test_a_file_of_somebody_else_is_not_touched(file: Path) -> None:
    file.write_text("{}")
    os.chown(file, 12345, 12345)
    with pytest.raises(ConfigError, match="belongs to somebody else"):
        put_server(file, "it", ENTRY)


def test_what_is_no_file_is_not_waited_for(file: Path) -> None:
    os.mkfifo(file)
    with pytest.raises(ConfigError, match="it is no file"):
        put_server(file, "it", ENTRY)


def test_a_file_keeps_its_mode_unless_a_secret_comes_into_it(file: Path) -> None:
    file.write_text("{}")
    file.chmod(0o644)
    put_server(file, "it", {**ENTRY, "env": {"API_TOKEN": "env:API_TOKEN", "ZONE": "UTC"}})
    assert mode(file) == 0o644
    put_server(file, "it", {**ENTRY, "env": {"API_TOKEN": "t0psecret"}})
    assert mode(file) == 0o600


def test_a_file_for_others_to_read_is_made_as_any_other(file: Path) -> None:
    put_server(file, "it", ENTRY, private=False)
    (other := file.with_name("other")).touch()
    assert mode(file) == mode(other)


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"env": {"API_KEY": "abc", "ZONE": "UTC"}}, ["env.API_KEY"]),
        ({"env": {"API_KEY": "env:API_KEY", "OTHER_KEY": "${OTHER_KEY}"}}, []),
        ({"headers": {"Authorization": "Bearer abcdefgh"}}, ["headers.Authorization"]),
        ({"headers": {"Authorization": "Bearer env:TOKEN", "X-Zone": "1"}}, []),
        ({"url": "https://user:pass@a.example/mcp"}, ["url"]),
        ({"url": "https://a.example/mcp?api_key=abc"}, ["url"]),
        ({"args": ["--api-key", "abcdefgh"]}, ["args"]),
        ({"args": ["--root", "/x"], "oauth": {"client_secret": "x", "client_id": "y"}}, ["oauth.client_secret"]),
    ],
)
def test_secrets_are_found_wherever_they_stand(entry: dict[str, object], found: list[str]) -> None:
    assert secrets_in(entry) == found
