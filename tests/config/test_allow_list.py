"""The list of hosts that the sandbox may reach: what may stand in it, where it may come from, and what it means."""

from __future__ import annotations

from pathlib import Path

import pytest

from handwork.cli.options import RunOptions
from handwork.config import load_settings
from handwork.config.allow_list import allowed_host, is_address, is_listed
from handwork.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("*.Example.com", "*.example.com"),
        ("example.com:443", "example.com:443"),
        ("*.example.com:8080", "*.example.com:8080"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("2130706433", "127.0.0.1"),
        ("0x7f.1:80", "127.0.0.1:80"),
        ("[::ffff:10.0.0.1]:80", "10.0.0.1:80"),
        ("[2001:DB8::1]:443", "[2001:db8::1]:443"),
        ("2001:db8::1", "[2001:db8::1]"),
        ("localhost:8000", "localhost:8000"),
    ],
)
def test_a_host_is_kept_in_one_spelling(text: str, spelling: str) -> None:
    assert allowed_host(text) == spelling
    assert allowed_host(spelling) == spelling


@pytest.mark.parametrize(
    "text",
    ["", " ", "*", "*:443", "*.", "a.*.com", "*a.com", "**.com", "https://example.com", "example.com/path", "user@example.com",
     "10.0.0.0/8", "example.com:0", "example.com:65536", "example.com:http", "a b", "-a.com", "a..b", "*.10.0.0.1", "256.1.1.1",
     "[::1", "::1%eth0", "x" * 64 + ".com", "a." * 200 + "com", "straße.de", "a\u200db.de", "a\0.com"],
)  # fmt: skip
def test_what_names_no_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write a host alone|write the one|opened by|allowed by --net"):
        allowed_host(text)


@pytest.mark.parametrize(
    ("entry", "host", "port", "listed"),
    [
        ("example.com", "example.com", 443, True),
        ("example.com", "www.example.com", 443, False),
        ("example.com", "example.com.evil.test", 443, False),
        ("example.com", "badexample.com", 443, False),
        ("*.example.com", "a.b.example.com", 80, True),
        ("*.example.com", "example.com", 80, False),
        ("*.example.com", "badexample.com", 80, False),
        ("example.com:443", "example.com", 80, False),
        ("127.0.0.1", "127.0.0.1", 1, True),
        ("127.0.0.1", "localhost", 1, False),
        ("[::1]:80", "::1", 80, True),
        ("localhost", "127.0.0.1", 1, False),
    ],
)
def test_an_entry_names_what_it_says_and_nothing_else(entry: str, host: str, port: int, listed: bool) -> None:
    assert is_listed([entry], host, port) is listed


def test_a_name_that_ends_with_a_number_is_no_address() -> None:
    hosts = ("127.0.0.1", "::1", "a.1", "1.2.3.4.5", "example.com")
    assert [host for host in hosts if is_address(host)] == ["127.0.0.1", "::1"]


def test_a_wrong_host_is_said_with_the_option_or_the_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="^--allow-net: .*'https://x.com' names no host – write a host alone"):
        RunOptions(workspace=tmp_path, allow_net=("https://x.com",)).settings()
    config = tmp_path / "c.toml"
    config.write_text('[sandbox]\nallow_net = [\n  "x.com",\n  "a b",\n]\n')
    with pytest.raises(ConfigError, match="c.toml, line 4: .*'a b' names no host"):
        load_settings(config)


def test_hosts_on_the_command_line_are_all_whatever_the_configuration_opens(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text('[sandbox]\nnetwork = true\nallow_net = ["a.test"]\n')
    own = RunOptions(workspace=tmp_path, config=config).settings().sandbox
    assert (own.network, own.allow_net) == (True, ("a.test",))
    given = RunOptions(workspace=tmp_path, config=config, allow_net=("B.test.",)).settings().sandbox
    assert (given.network, given.allow_net) == (False, ("b.test",))
    with pytest.raises(ConfigError, match="--net and --allow-net exclude each other"):
        RunOptions(workspace=tmp_path, net=True, allow_net=("a.test",)).settings()


def test_hosts_of_the_command_line_are_named_for_the_next_time(tmp_path: Path) -> None:
    options = RunOptions(workspace=tmp_path, allow_net=("a.test", "*.b.test"))
    assert options.again() == {"--allow-net": "a.test --allow-net '*.b.test'"}
