"""Variables and folders that a server's entry names: what it gets, and what is said where one is not set."""

from __future__ import annotations

from typing import Any

import pytest

from handwork.config import MCPServerSettings
from handwork.config.mcp_variables import variables_in, with_values
from tests.config.places import Places

ENVIRON = {"NAME": "value", "EMPTY": "", "SLY": "${SECRET} env:SECRET", "SECRET": "hush", "HOME": "/h/me"}


def given(environ: dict[str, str] | None = None, **keys: Any) -> MCPServerSettings:
    server = MCPServerSettings.model_validate({"command": "server"} | keys)
    return with_values(server, ENVIRON if environ is None else environ, "/ws/space")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${NAME}", "value"),
        ("${env:NAME}", "value"),
        ("a ${NAME}/${NAME} b", "a value/value b"),
        ("${EMPTY}", ""),
        ("${NAME:-other}", "value"),
        ("${UNSET:-other}", "other"),
        ("${EMPTY:-other}", "other"),
        ("${env:UNSET:-other}", "other"),
        ("${UNSET:-}", ""),
        ("${UNSET:-https://x.example:8080/a}", "https://x.example:8080/a"),
        ("${UNSET:-${NAME}}", "value"),
        ("${UNSET:-a${NAME}b}", "avalueb"),
        ("${workspaceFolder}/x", "/ws/space/x"),
        ("${workspaceFolderBasename}", "space"),
        ("${userHome}${/}x${pathSeparator}", "/h/me/x/"),
        ("${SLY}", "${SECRET} env:SECRET"),
        ("$NAME and $ {NAME} and {NAME}", "$NAME and $ {NAME} and {NAME}"),
        ("env:NAME", "env:NAME"),
        ("costs $5 or ${", "costs $5 or ${"),
    ],
)
def test_a_text_gets_the_values_of_what_it_names(text: str, value: str) -> None:
    server = given(command=text, args=[text, "--x"], cwd=text, paths=[text], env={"E": f"<{text}>"})
    assert (server.command, server.args, server.cwd, server.paths) == (value, (value, "--x"), value, (value,))
    assert server.env == {"E": f"<{value}>"}
    assert given(command="", type="http", url=text).url == value
    assert server.unset == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("env:NAME", "value"),
        ("Bearer env:NAME", "Bearer value"),
        ("$NAME", "value"),
        ("$EMPTY", ""),
        ("$name", "$name"),
        ("$NAME/x", "$NAME/x"),
        ("Bearer ${NAME}", "Bearer value"),
        ("env:SLY", "${SECRET} env:SECRET"),
        ("$SLY", "${SECRET} env:SECRET"),
    ],
)
def test_a_value_of_env_and_headers_may_be_a_variable_as_a_whole(text: str, value: str) -> None:
    assert given(env={"E": text}).env == {"E": value}
    assert given(type="http", url="u", headers={"H": text}).headers == {"H": value}


@pytest.mark.parametrize(
    ("text", "unset"),
    [
        ("${UNSET}", ("UNSET",)),
        ("${env:UNSET}", ("UNSET",)),
        ("${UNSET}${OTHER}${UNSET}", ("UNSET", "OTHER")),
        ("${UNSET:-${OTHER}}", ("OTHER",)),
        ("${input:key}", ("${input:key}",)),
        ("${file:/etc/x}", ("${file:/etc/x}",)),
        ("${command:x.y}", ("${command:x.y}",)),
        ("env:UNSET", ("UNSET",)),
        ("env:EMPTY", ("EMPTY",)),
        ("Bearer env:UNSET", ("UNSET",)),
        ("$UNSET", ("UNSET",)),
    ],
)
def test_what_is_not_set_is_known_to_the_server_that_needs_it(text: str, unset: tuple[str, ...]) -> None:
    server = given(env={"E": text})
    assert server.unset == unset
    assert set(variables_in({"env": {"E": text}})) >= {name for name in unset if "$" not in name}


def test_one_server_that_lacks_a_variable_is_no_matter_of_the_others(places: Places) -> None:
    places.write(
        "mcp.json",
        '{"mcpServers": {"lacks": {"command": "x", "args": ["${ONE}", "${TWO}"], "env": {"E": "env:THREE"}},'
        ' "has": {"command": "x", "cwd": "${workspaceFolder}/sub", "env": {"E": "${NAME}"}}}}',
    )
    servers = places.load(environ=ENVIRON).mcp.servers
    assert servers["lacks"].unset == ("ONE", "TWO", "THREE")
    assert servers["lacks"].args == ("${ONE}", "${TWO}")
    assert servers["has"].unset == ()
    assert servers["has"].written.cwd == "${workspaceFolder}/sub"
    assert servers["has"].env == {"E": "value"}
    assert servers["has"].cwd == f"{places.workspace.resolve()}/sub"


def test_a_name_that_has_no_value_is_no_secret(places: Places) -> None:
    headers = '{"Authorization": "Bearer ${input:key}", "X-Token": "${NOT_SET}"}'
    places.write("mcp.json", f'{{"mcpServers": {{"a": {{"url": "https://x/mcp", "headers": {headers}}}}}}}')
    settings = places.load(environ={})
    assert not settings.secrets() & {"${input:key}", "${NOT_SET}"}


def test_a_secret_that_a_server_gets_is_masked(places: Places) -> None:
    places.write(
        "mcp.json",
        '{"mcpServers": {"a": {"url": "https://x/mcp", "headers": {"Authorization": "Bearer ${LONG_TOKEN}"},'
        ' "oauth": {"client_secret": "env:OTHER_TOKEN"}}}}',
    )
    settings = places.load(environ={"LONG_TOKEN": "a-long-secret", "OTHER_TOKEN": "another-secret"})
    server = settings.mcp.servers["a"]
    assert (server.headers["Authorization"], server.oauth.client_secret) == ("Bearer a-long-secret", "another-secret")
    assert settings.secrets() >= {"a-long-secret", "another-secret"}
    assert "a-long-secret" not in repr(settings)


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        ({"command": "${A}", "args": ["x${B}", "${env:C}"], "url": "${D:-${E}}", "cwd": "${F}"}, "ABCDEF"),
        ({"env": {"X": "env:A", "Y": "$B", "Z": "${C}"}, "headers": {"H": "Bearer env:D"}}, "ABCD"),
        ({"oauth": {"client_secret": "env:A"}, "paths": ["${B}/x"]}, "AB"),
        ({"command": "${workspaceFolder}", "args": ["${input:x}", "$HOME/x", "{A}"]}, ""),
    ],
)
def test_every_variable_that_an_entry_would_be_given_is_named(entry: dict[str, Any], named: str) -> None:
    assert "".join(sorted(variables_in(entry))) == named


def test_reading_takes_no_time_whatever_stands_there() -> None:
    for text in ("${" * 200_000, "${a:-" * 100_000 + "}" * 100_000, "}" * 200_000, "${" + "{}" * 100_000 + "}"):
        given(args=[text])
        list(variables_in(text))
