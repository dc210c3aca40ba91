"""A key goes to the place that it was given for, through every layer of the configuration, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handwork.config import LLMSettings, Settings, load_settings
from handwork.config.credentials import url_origin
from handwork.errors import AuthenticationError, NoModelError
from handwork.llm.build import _headers, _place
from handwork.llm.llm import LLM
from handwork.schema import Message
from tests.support.fault_server import FaultServer, error_answer

FOREIGN = "http://203.0.113.9/v1"
OPENAI = "https://api.openai.com/v1"
FILE = '[llm]\nmodel = "openai:gpt-4o"\napi_key = "sk-FILE"\n[llm.headers]\nAuthorization = "Bearer sk-HEADER"\n'
GATEWAY = '[llm]\nmodel = "m"\nbase_url = "http://gw/v1"\napi_key = "sk-FILE"\n'
ENV_KEY = {"HANDWORK_API_KEY": "sk-ENV"}
BOUND = {"HANDWORK_MODEL": "openai:gpt-4o", "HANDWORK_API_KEY": "sk-ENV"}


def sent(
    folder: Path,
    text: str = "",
    environ: dict[str, str] | None = None,
    llm: dict[str, Any] | None = None,
    model: str | None = None,
    name: str = "x",
) -> tuple[str, str]:
    """(address, what goes there: the key and every configured header) of one whole configuration."""
    file = folder / "given.toml"
    file.write_text(text)
    environ = {"HANDWORK_HOME": str(folder)} | (environ or {})
    settings = load_settings(file, workspace=folder, environ=environ, overrides={"llm": llm or {}})
    return target(LLM(name, settings, model), environ)


def target(llm: LLM, environ: dict[str, str]) -> tuple[str, str]:
    chosen = llm._llm_settings().settings
    try:
        place = _place(chosen, environ)
    except NoModelError:
        return "", ""
    headers = {key: value for key, value in _headers(chosen, place).items() if key != "User-Agent"}
    return place.base_url, " ".join(headers.values())


@pytest.mark.parametrize(
    ("given", "address"),
    [
        # the environment's key was given for openai
        ({"environ": BOUND, "llm": {"model": "groq:llama"}}, ""),
        ({"environ": BOUND, "model": "groq:llama"}, ""),
        ({"environ": BOUND, "llm": {"base_url": FOREIGN}}, FOREIGN),
        ({"environ": BOUND, "llm": {"base_url": "http://api.openai.com/v1"}}, "http://api.openai.com/v1"),
        ({"environ": BOUND, "llm": {"base_url": "https://api.openai.com:8443/v1"}}, "https://api.openai.com:8443/v1"),
        ({"environ": BOUND, "text": f'[llm.vision]\nbase_url = "{FOREIGN}"', "name": "vision"}, FOREIGN),
        ({"environ": BOUND | {"HANDWORK_LLM_VISION_BASE_URL": FOREIGN}, "name": "vision"}, FOREIGN),
        # the file's key and headers were given for openai
        ({"text": FILE, "llm": {"base_url": FOREIGN}}, FOREIGN),
        ({"text": FILE, "environ": {"HANDWORK_BASE_URL": FOREIGN}}, FOREIGN),
        ({"text": FILE, "environ": {"HANDWORK_LLM_BASE_URL": FOREIGN}}, FOREIGN),
        ({"text": FILE, "llm": {"model": "m", "base_url": FOREIGN}}, FOREIGN),
        ({"text": FILE, "environ": {"HANDWORK_BASE_URL": FOREIGN}, "model": "openai:other"}, FOREIGN),
        ({"text": FILE, "model": "groq:llama"}, ""),
        ({"text": FILE, "environ": {"HANDWORK_MODEL": "groq:llama"}}, ""),
        ({"text": FILE + f'[llm.vision]\nbase_url = "{FOREIGN}"', "name": "vision"}, FOREIGN),
        ({"text": FILE + f'[llm.vision]\nmodel = "v"\nbase_url = "{FOREIGN}"', "name": "vision"}, FOREIGN),
        (
            {
                "text": FILE.replace("sk-FILE", "env:OPENAI_API_KEY"),
                "environ": {"OPENAI_API_KEY": "sk-OWN"},
                "llm": {"base_url": FOREIGN},
            },
            FOREIGN,
        ),
        # a provider's own variable
        ({"environ": {"OPENAI_API_KEY": "sk-OWN"}, "llm": {"model": "openai:m", "base_url": FOREIGN}}, FOREIGN),
        ({"environ": {"OPENAI_API_KEY": "sk-OWN"}, "model": "groq:llama"}, ""),
        # a key of one server does not follow to another, and a key of [llm] not to the place of a named table
        ({"text": GATEWAY, "llm": {"base_url": FOREIGN}}, FOREIGN),
        ({"text": GATEWAY, "llm": {"model": "groq:llama"}}, ""),
        ({"text": GATEWAY + f'[llm.vision]\nbase_url = "{FOREIGN}"', "environ": ENV_KEY, "name": "vision"}, FOREIGN),
        ({"text": f'[llm.vision]\nbase_url = "{FOREIGN}"', "environ": BOUND, "name": "vision"}, FOREIGN),
        (
            {
                "text": f'[llm.vision]\nbase_url = "{FOREIGN}"',
                "environ": ENV_KEY,
                "llm": {"model": "openai:m"},
                "name": "vision",
            },
            FOREIGN,
        ),
        ({"text": f'[llm.vision]\nbase_url = "{FOREIGN}"\napi_key = "sk-VISION"', "environ": BOUND}, OPENAI),
    ],
    ids=str,
)
def test_a_key_never_goes_to_an_origin_that_it_was_not_given_for(
    tmp_path: Path, given: dict[str, Any], address: str
) -> None:
    found, secrets = sent(tmp_path, **given)
    assert found == address
    assert secrets == ("Bearer sk-ENV" if address == OPENAI else "")


@pytest.mark.parametrize(
    ("given", "address", "secret"),
    [
        ({"text": GATEWAY}, "http://gw/v1", "sk-FILE"),
        ({"text": GATEWAY, "llm": {"model": "n"}}, "http://gw/v1", "sk-FILE"),
        ({"text": GATEWAY, "model": "n"}, "http://gw/v1", "sk-FILE"),
        ({"text": GATEWAY, "llm": {"base_url": "http://GW:80/v2"}}, "http://GW:80/v2", "sk-FILE"),
        ({"text": GATEWAY, "environ": ENV_KEY}, "http://gw/v1", "sk-ENV"),
        ({"text": GATEWAY, "llm": {"base_url": FOREIGN, "api_key": "sk-ARG"}}, FOREIGN, "sk-ARG"),
        ({"text": GATEWAY, "environ": {"HANDWORK_BASE_URL": FOREIGN, **ENV_KEY}}, FOREIGN, "sk-ENV"),
        ({"text": GATEWAY + '[llm.vision]\nmodel = "v"', "name": "vision"}, "http://gw/v1", "sk-FILE"),
        (
            {"text": GATEWAY + f'[llm.vision]\nbase_url = "{FOREIGN}"\napi_key = "sk-V"', "name": "vision"},
            FOREIGN,
            "sk-V",
        ),
        (
            {
                "text": GATEWAY + f'[llm.vision]\nbase_url = "{FOREIGN}"\napi_key = "sk-V"',
                "environ": ENV_KEY,
                "name": "vision",
            },
            FOREIGN,
            "sk-V",
        ),
        (
            {
                "text": GATEWAY + f'[llm.vision]\nbase_url = "{FOREIGN}"',
                "environ": {"HANDWORK_LLM_VISION_API_KEY": "sk-V"},
                "name": "vision",
            },
            FOREIGN,
            "sk-V",
        ),
        ({"environ": BOUND}, OPENAI, "sk-ENV"),
        ({"environ": BOUND, "llm": {"model": "openai:b"}}, OPENAI, "sk-ENV"),
        ({"environ": BOUND, "llm": {"model": "bare"}}, OPENAI, "sk-ENV"),
        ({"environ": BOUND, "llm": {"base_url": OPENAI + "/"}}, OPENAI, "sk-ENV"),
        ({"environ": BOUND, "llm": {"model": "groq:l", "base_url": OPENAI}}, OPENAI, "sk-ENV"),
        # a key without any place belongs to the first that is named
        ({"environ": ENV_KEY, "llm": {"model": "groq:llama"}}, "https://api.groq.com/openai/v1", "sk-ENV"),
        ({"environ": ENV_KEY, "llm": {"model": "m", "base_url": FOREIGN}}, FOREIGN, "sk-ENV"),
        ({"environ": ENV_KEY, "model": "openai:m"}, OPENAI, "sk-ENV"),
        # the provider's own, at the address of its own variable as well
        ({"environ": {"OPENAI_API_KEY": "sk-OWN"}, "model": "m"}, OPENAI, "sk-OWN"),
        (
            {"environ": {"OPENAI_API_KEY": "sk-OWN", "OPENAI_BASE_URL": "http://own/v1"}, "model": "m"},
            "http://own/v1",
            "sk-OWN",
        ),
        (
            {"environ": BOUND | {"GROQ_API_KEY": "sk-GROQ"}, "model": "groq:l"},
            "https://api.groq.com/openai/v1",
            "sk-GROQ",
        ),
    ],
    ids=str,
)
def test_a_key_goes_to_the_place_that_its_own_layer_or_one_below_names(
    tmp_path: Path, given: dict[str, Any], address: str, secret: str
) -> None:
    assert sent(tmp_path, **given) == (address, f"Bearer {secret}")


def test_headers_go_where_they_were_given_for_and_their_own_authorization_too(tmp_path: Path) -> None:
    text = '[llm]\nmodel = "m"\nbase_url = "http://gw/v1"\n[llm.headers]\nAuthorization = "Bearer sk-HEADER"'
    assert sent(tmp_path, text) == ("http://gw/v1", "Bearer sk-HEADER")
    assert sent(tmp_path, text, llm={"base_url": FOREIGN, "headers": {"X": "mine"}}) == (FOREIGN, "mine")


def test_settings_made_in_code_keep_their_key_for_their_own_place() -> None:
    places: list[dict[str, Any]] = [{"model": "openai:a"}, {"model": "a", "base_url": "http://gw/v1"}]
    for given in places:
        settings = Settings(llm={"default": LLMSettings(api_key="sk-CODE", headers={"X": "sk-X"}, **given)}, environ={})
        assert "sk-CODE" in target(LLM(settings=settings), {})[1]
        assert target(LLM(settings=settings, model="groq:llama"), {}) == ("", "")


def test_a_key_that_is_not_used_is_told_with_both_places_and_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    file.write_text(FILE)
    settings = load_settings(file, workspace=tmp_path, environ={}, overrides={"llm": {"base_url": FOREIGN}})
    (key,) = [text for text in settings.notices if text.startswith("api_key")]
    assert "https://api.openai.com:443" in key
    assert "http://203.0.113.9:80" in key
    assert "sk-" not in repr(settings.notices) + repr(settings)
    told: list[str] = []
    configured = load_settings(file, workspace=tmp_path, environ={"GROQ_API_KEY": "sk-GROQ"})
    assert LLM(settings=configured, model="groq:x", notify=lambda level, text: told.append(text)).model.name
    assert any("api_key is not used for groq:x" in text for text in told)


@pytest.mark.parametrize(
    ("text", "environ", "named"),
    [
        ("", {"OPENAI_API_KEY": "sk-OWN-KEY-12345678"}, "OPENAI_API_KEY is not used at http://127.0.0.1"),
        (
            '[llm]\nmodel = "openai:m"\napi_key = "sk-FILE-1234567890"',
            {},
            "given.toml, line 3), and this is http://127.0.0.1",
        ),
        (
            "",
            {"HANDWORK_LLM_MODEL": "openai:m", "HANDWORK_LLM_API_KEY": "sk-ENV-12345678"},
            "(environment variable HANDWORK_LLM_API_KEY), and this is http://127.0.0.1",
        ),
    ],
)
@pytest.mark.parametrize("name", ["default", "no-table-of-its-own"])
async def test_a_key_that_stays_here_is_told_once_and_named_again_by_the_refusal(
    tmp_path: Path, text: str, environ: dict[str, str], named: str, name: str
) -> None:
    file = tmp_path / "given.toml"
    file.write_text(text)
    async with FaultServer([error_answer(401, "No key")]) as server:
        llm = {"base_url": server.url} | ({} if text or len(environ) > 1 else {"model": "openai:m"})
        settings = load_settings(file, workspace=tmp_path, environ=environ, overrides={"llm": llm})
        told = list(settings.notices)
        model = LLM(name, settings, notify=lambda level, notice: told.append(notice))
        with pytest.raises(AuthenticationError) as caught:
            await model.ask([Message.user_message("Hi")])
        await model.aclose()
    (notice,) = [each for each in told if "is not used" in each]
    for said in (notice, caught.value.hint):
        assert named in said
        assert "HANDWORK_LLM_API_KEY together with HANDWORK_LLM_BASE_URL, or api_key beside base_url" in said
        assert "sk-" not in said


def test_a_key_that_is_given_for_the_address_leaves_nothing_to_say_of_another(tmp_path: Path) -> None:
    environ = {"OPENAI_API_KEY": "sk-OWN", "HANDWORK_LLM_API_KEY": "sk-ENV", "HANDWORK_LLM_BASE_URL": FOREIGN + "s"}
    settings = load_settings(workspace=tmp_path, environ=environ, overrides={"llm": {"model": "openai:m"}})
    told: list[str] = list(settings.notices)
    assert LLM(settings=settings, notify=lambda level, text: told.append(text)).model.name
    assert not [text for text in told if "is not used" in text]


def test_what_is_odd_about_a_named_table_is_told_to_who_uses_it_and_to_who_looks_at_the_configuration(
    tmp_path: Path,
) -> None:
    file = tmp_path / "f.toml"
    file.write_text('[llm]\nmodel = "local:x"\n[llm.swe]\nmodel = "openai:m"\napi_key = "sk-OWN-1234567890"\n')
    environ = {"HANDWORK_LLM_SWE_MODEL": "groq:m", "GROQ_API_KEY": "gsk_" + "a" * 40}
    settings = load_settings(file, workspace=tmp_path, environ=environ)
    told: list[str] = []
    assert LLM("swe", settings, notify=lambda _, text: told.append(text)).model.name == "groq:m"
    (about,) = [text for text in told if text.startswith("[llm.swe] api_key is not used for groq:m")]
    assert settings.notices == ()
    assert settings.all_notices == (about,)
    assert settings.notices_for("manus") == ()


def test_a_model_in_this_process_needs_no_key_and_no_word_about_one(tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    file.write_text(FILE)
    given = load_settings(file, workspace=tmp_path, environ={}, overrides={"llm": {"model": "local:x"}})
    assert (given.llm_for("x").api_key, given.notices) == ("", ())


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://h/v1", "http://H:80", True),
        ("https://h", "https://h:443/x?y", True),
        ("https://h", "http://h", False),
        ("https://h", "https://h.evil.org", False),
        ("https://h", "https://h@evil.org", False),
        ("https://h", "https://h:444", False),
        ("http://[::1/v1", "http://[::1/v1", True),
    ],
)
def test_an_origin_is_scheme_host_and_port(one: str, other: str, same: bool) -> None:
    assert (url_origin(one) == url_origin(other)) is same
