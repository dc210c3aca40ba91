"""Where each value came from: layers are laid one over another, and each key remembers whose it is."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.config.places import Places

# table, key, and a value for each layer (setup, file, environment, command line)
KEYS: dict[tuple[str, ...], list[Any]] = {
    ("llm", "max_tokens"): [1, 2, 3, 4],
    ("llm", "timeout"): [1.5, 2.5, 3.5, 4.5],
    ("llm", "vision", "max_tokens"): [11, 12, 13, 14],
    ("limits", "max_steps"): [1, 2, 3, 4],
    ("sandbox", "network"): [True, False, True, False],
    ("browser", "proxy", "server"): ["a", "b", "c", "d"],
    ("browser", "proxy", "username"): ["e", "f", "g", "h"],
    ("browser", "extra_chromium_args"): [["a"], ["b"], ["c"], ["d"]],
    ("search", "engine"): ["Google", "Baidu", "Bing", "DuckDuckGo"],
}
LAYERS = st.lists(st.sets(st.sampled_from(sorted(KEYS))), min_size=4, max_size=4)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LAYERS)
def test_the_last_layer_that_sets_a_key_wins_and_is_named(layers: list[set[tuple[str, ...]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        places = Places.below(Path(folder))
        for number, name in enumerate(("setup.toml", "config.toml")):
            places.write(name, "".join(f"{'.'.join(p)} = {_toml(KEYS[p][number])}\n" for p in sorted(layers[number])))
        environ = {"HANDWORK_" + "_".join(path).upper(): _text(KEYS[path][2]) for path in layers[2]}
        options: dict[str, Any] = {}
        for path in layers[3]:
            table = options
            for part in path[:-1]:
                table = table.setdefault(part, {})
            table[path[-1]] = KEYS[path][3]
        configuration = places.configuration(None, environ, **options)
    for path, values in KEYS.items():
        named = path[:2] == ("llm", "vision")
        setters = [number for number in range(4) if path in layers[number]]
        if named:  # a key of [llm] goes over every [llm.<name>] of an earlier layer
            own = ("llm", "max_tokens")
            general = [number for number in range(4) if own in layers[number]]
            if not setters:
                continue
            if general and general[-1] > setters[-1]:
                setters, values = general, KEYS[own]
        at = ("llm", "default", *path[1:]) if path[0] == "llm" and not named else path
        origin = configuration.origins.get(at)
        if not setters:
            assert origin is None
            continue
        kinds = ("setup", "file", "environment", "command line")
        assert origin is not None
        assert origin.layer.kind == kinds[setters[-1]]
        found: Any = configuration.settings.llm_for("vision" if named else "x") if path[0] == "llm" else None
        for part in path[-1:] if path[0] == "llm" else path:
            found = getattr(found or configuration.settings, part)
        expected = values[setters[-1]]
        assert found == (tuple(expected) if isinstance(expected, list) else expected)


def _toml(value: Any) -> str:
    return json.dumps(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def test_an_origin_names_the_line_the_variable_or_the_option(places: Places) -> None:
    file = places.write("config.toml", '[llm]\nmodel = "openai:a"\napi_key = "env:MINE"')
    configuration = places.configuration(environ={"HANDWORK_LLM_TIMEOUT": "3", "MINE": "hush"}, limits={"max_steps": 3})
    origins = configuration.origins
    assert str(origins["llm", "default", "model"]) == f"{file}, line 2"
    assert origins["llm", "default", "model"].line == 2
    assert origins["llm", "default", "api_key"].written == "env:MINE"
    assert configuration.settings.llm_for("x").api_key == "hush"
    assert str(origins["llm", "default", "timeout"]) == "environment variable HANDWORK_LLM_TIMEOUT"
    assert str(origins["limits", "max_steps"]) == "--max-steps"
    assert ("llm", "default", "max_tokens") not in origins


def test_what_does_not_follow_to_another_provider_has_no_origin_either(places: Places) -> None:
    places.write("config.toml", '[llm]\nmodel = "openai:a"\nbase_url = "http://here/v1"\napi_key = "hush"')
    configuration = places.configuration(llm={"model": "mistral:b"})
    assert configuration.settings.llm_for("x").api_key == ""
    assert {path[2] for path in configuration.origins} == {"model"}


def test_a_key_that_comes_from_another_table_says_so(places: Places) -> None:
    file = places.write(
        "config.toml", '[llm]\nmodel = "openai:a"\napi_key = "k"\n[llm.Swe]\nmodel = "openai:b"\n[llm.x]\napi_key = "l"'
    )
    origins = places.configuration().origins
    assert str(origins["llm", "swe", "api_key"]) == f"{file}, line 3"
    assert str(origins["llm", "swe", "model"]) == f"{file}, line 5"
    assert str(origins["llm", "x", "api_key"]) == f"{file}, line 7"


def test_what_an_option_does_not_change_keeps_its_origin(places: Places) -> None:
    file = places.write("config.toml", '[llm]\nmodel = "openai:a"\n[llm.vision]\nmodel = "openai:v"')
    configuration = places.configuration(llm={"model": "openai:b", "max_tokens": 3})
    assert configuration.settings.llm_for("vision").model == "openai:v"
    assert str(configuration.origins["llm", "vision", "model"]) == f"{file}, line 4"
    assert str(configuration.origins["llm", "vision", "max_tokens"]) == "--max-tokens"
