"""HANDWORK_… variables: every table, lists, booleans and the tables in tables."""

from __future__ import annotations

from typing import Any

import pytest

from handwork.config.table import SettingsTable, holds_named, inner_table, takes_list, takes_table
from handwork.config.tables import TABLES
from handwork.errors import ConfigError
from tests.config.places import Places


@pytest.mark.parametrize(
    ("name", "value", "path", "expected"),
    [
        ("HANDWORK_BROWSER_HEADLESS", "false", "browser.headless", False),
        ("HANDWORK_BROWSER_HEADLESS", "0", "browser.headless", False),
        ("HANDWORK_BROWSER_DISABLE_SECURITY", "yes", "browser.disable_security", True),
        ("HANDWORK_BROWSER_PROXY_SERVER", "http://p:1", "browser.proxy.server", "http://p:1"),
        ("HANDWORK_BROWSER_PROXY", '{"server": "s", "password": "p"}', "browser.proxy.password", "p"),
        ("HANDWORK_BROWSER_EXTRA_CHROMIUM_ARGS", "--a, --b,", "browser.extra_chromium_args", ("--a", "--b")),
        ("HANDWORK_BROWSER_EXTRA_CHROMIUM_ARGS", '["--a=1,2"]', "browser.extra_chromium_args", ("--a=1,2",)),
        ("HANDWORK_SEARCH_FALLBACK_ENGINES", "bing,baidu", "search.fallback_engines", ("Bing", "Baidu")),
        ("HANDWORK_SANDBOX_CPU_LIMIT", "0.5", "sandbox.cpu_limit", 0.5),
        ("HANDWORK_DAYTONA_API_KEY", "env:OTHER", "daytona.daytona_api_key", "of another"),
        ("HANDWORK_DAYTONA_DAYTONA_API_KEY", "k", "daytona.daytona_api_key", "k"),
        ("HANDWORK_DAYTONA_VNC_PASSWORD", "k", "daytona.VNC_password", "k"),
        ("HANDWORK_DAYTONA_TARGET", "eu", "daytona.daytona_target", "eu"),
        ("HANDWORK_MCP_SERVER_REFERENCE", "m", "mcp.server_reference", "m"),
        ("HANDWORK_RUNFLOW_USE_DATA_ANALYSIS_AGENT", "true", "runflow.use_data_analysis_agent", True),
        ("HANDWORK_STORE_SYNCHRONOUS", "full", "store.synchronous", "full"),
    ],
)
def test_a_variable_sets_a_key_of_any_table(places: Places, name: str, value: str, path: str, expected: object) -> None:
    configuration = places.configuration(environ={name: value, "OTHER": "of another"})
    found: Any = configuration.settings
    for part in path.split("."):
        found = getattr(found, part)
    assert found == expected
    assert str(configuration.origins[tuple(path.split("."))]) == f"environment variable {name}"


def test_a_variable_of_a_model_may_hold_a_table(places: Places) -> None:
    environ = {
        "HANDWORK_MODEL": "openai:x",
        "HANDWORK_LLM_HEADERS": '{"X-A": "b"}',
        "HANDWORK_LLM_VISION_PRICES": '{"input": 1, "output": 2}',
        "HANDWORK_LLM_DATA_ANALYSIS_MAX_INPUT_TOKENS": "7",
        "HANDWORK_LLM_SWE_SEES_IMAGES": "true",
    }
    settings = places.load(environ=environ)
    assert settings.llm_for("vision").headers == {"X-A": "b"}
    prices = settings.llm_for("vision").prices
    assert prices is not None
    assert prices.output == 2.0
    assert settings.llm_for("data_analysis").max_input_tokens == 7
    assert settings.llm_for("swe").sees_images is True


def test_a_key_in_a_variable_is_laid_over_its_table_in_the_file(places: Places) -> None:
    places.write("config.toml", '[browser.proxy]\nserver = "a"\nusername = "u"')
    proxy = places.load(environ={"HANDWORK_BROWSER_PROXY_SERVER": "b"}).browser.proxy
    assert (proxy.server, proxy.username) == ("b", "u")
    whole = {"HANDWORK_BROWSER_PROXY": '{"server": "c"}', "HANDWORK_BROWSER_PROXY_USERNAME": "v"}
    proxy = places.load(environ=whole).browser.proxy
    assert (proxy.server, proxy.username) == ("c", "v")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("HANDWORK_BROWSER_HEADLESS", "perhaps", ("[browser] headless", "boolean")),
        ("HANDWORK_BROWSER_PROXY", "http://p", ("expected a JSON object",)),
        ("HANDWORK_BROWSER_PROXY", "{", ("not valid JSON",)),
        ("HANDWORK_BROWSER_PROXY", '{"sevrer": "x"}', ("[browser] proxy.sevrer", "did you mean server?")),
        ("HANDWORK_BROWSER_PROXY_SEVRER", "x", ("unknown setting", "did you mean proxy_server?")),
        ("HANDWORK_LLM_HEADERS", "[1]", ("expected a JSON object",)),
        ("HANDWORK_SEARCH_FALLBACK_ENGINES", "bing,altavista", ("fallback_engines.1", "'Google'")),
        ("HANDWORK_DAYTONA_VNC_PASWORD", "x", ("did you mean vnc_password?",)),
        ("HANDWORK_SANDBOX", "host", ("unknown setting",)),
        ("HANDWORK_LLM_MODEL", "a\udcffb", ("not UTF-8",)),
        ("HANDWORK_LLM_HEADERS", "[" * 100_000, ("expected a JSON object",)),
        ("HANDWORK_BROWSER_PROXY", '{"server": ' * 100_000, ("not valid JSON",)),
        ("HANDWORK_LLM_MAX_TOKENS", "9" * 5000, ("[llm] max_tokens",)),
    ],
)
def test_a_wrong_variable_is_named_with_what_is_wrong(
    places: Places, name: str, value: str, expected: tuple[str, ...]
) -> None:
    told = places.complaint(environ={name: value})
    assert told.startswith(f"environment variable {name}: ")
    for part in expected:
        assert part in told


def _keys(kind: type[SettingsTable], path: tuple[str, ...]) -> list[tuple[tuple[str, ...], bool]]:
    found = []
    for name, field in kind.model_fields.items():
        inner = inner_table(field)
        found.append(((*path, name), takes_table(field) or takes_list(field)))
        if inner and not holds_named(field):
            found += _keys(inner, (*path, name))
    return found


def test_every_key_of_every_table_has_its_variable(places: Places) -> None:
    for table, kind in TABLES.items():
        for path, structured in _keys(kind, (table,)):
            name = "HANDWORK_" + "_".join(path).upper()
            assert "unknown setting" not in _said(places, {name: "[{]" if structured else "1"})


def _said(places: Places, environ: dict[str, str]) -> str:
    try:
        places.load(environ=environ)
    except ConfigError as error:
        return str(error)
    return ""
