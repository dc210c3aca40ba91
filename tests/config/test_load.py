"""load_settings: file under environment under command line, and errors that name the place (CONTRACT G)."""

from __future__ import annotations

from pathlib import Path

import pytest

from handwork.config import Settings, load_settings
from handwork.errors import ConfigError
from handwork.schema import Mode


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def load(
    workspace: Path, text: str | None = None, environ: dict[str, str] | None = None, **overrides: object
) -> Settings:
    """Settings from this file text, environment and overriding tables."""
    file = None
    if text is not None:
        file = workspace.parent / "given.toml"
        file.write_text(text)
    home = {"HANDWORK_HOME": str(workspace.parent / "home")}
    return load_settings(file, workspace=workspace, environ=home | (environ or {}), overrides=overrides)


def complaint(workspace: Path, text: str, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(workspace, text, environ)
    return str(caught.value)


def test_without_a_file_the_defaults_hold(workspace: Path) -> None:
    settings = load(workspace)
    assert settings.llm_for("manus").max_tokens == 4096
    assert settings.sandbox.backend == "auto"
    assert settings.notices == ()
    assert settings.home.data == workspace.parent / "home"


def test_a_named_table_is_laid_over_llm(workspace: Path) -> None:
    settings = load(workspace, '[llm]\nmodel = "openai:a"\nmax_tokens = 7\n[llm.Manus]\nmodel = "openai:b"')
    assert settings.llm_for("manus").model == "openai:b"
    assert settings.llm_for("MANUS").max_tokens == 7
    assert settings.llm_for("swe").model == "openai:a"


def test_the_environment_is_over_the_file_and_the_command_line_over_both(workspace: Path) -> None:
    text = '[llm]\nmodel = "openai:file"\nmax_tokens = 1\n[llm.manus]\nmodel = "openai:named"\n[limits]\nmax_steps = 3'
    environ = {
        "HANDWORK_LLM_MODEL": "openai:variable",
        "HANDWORK_LIMITS_MAX_STEPS": "4",
        "HANDWORK_LLM_MAX_TOKENS": "2",
    }
    settings = load(workspace, text, environ)
    assert (settings.llm_for("manus").model, settings.limits.max_steps) == ("openai:variable", 4)
    settings = load(workspace, text, environ, llm={"model": "openai:option"}, limits={"max_steps": 5})
    assert (settings.llm_for("manus").model, settings.limits.max_steps) == ("openai:option", 5)
    assert settings.llm_for("manus").max_tokens == 2


def test_short_variables_and_variables_of_a_named_table_are_read(workspace: Path) -> None:
    environ = {"HANDWORK_MODEL": "openai:a", "HANDWORK_BASE_URL": "http://x/v1", "HANDWORK_API_KEY": "short"}
    settings = load(
        workspace, environ=environ | {"HANDWORK_LLM_API_KEY": "long", "HANDWORK_LLM_VISION_MODEL": "openai:v"}
    )
    model = settings.llm_for("any")
    assert (model.model, model.base_url, model.api_key) == ("openai:a", "http://x/v1", "long")
    assert settings.llm_for("vision").model == "openai:v"
    assert load(workspace, environ={"HANDWORK_SANDBOX_NETWORK": "true"}).sandbox.network
    assert load(workspace, environ={"HANDWORK_POLICY_APPROVE": "read-only"}).policy.approve is Mode.READ_ONLY


def test_a_misspelt_variable_is_an_error_and_a_foreign_one_is_not(workspace: Path) -> None:
    message = complaint(workspace, "", {"HANDWORK_LLM_MODLE": "x"})
    assert "HANDWORK_LLM_MODLE" in message
    assert "did you mean model?" in message
    message = complaint(workspace, "", {"HANDWORK_LIMITS_MAX_STEPS": "many"})
    assert "HANDWORK_LIMITS_MAX_STEPS" in message
    assert "integer" in message
    load(workspace, "", {"HANDWORK_SOMETHING_ELSE": "x", "HANDWORK_LLM_MODEL": ""})


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("HANDWORK_MODLE", "HANDWORK_MODLE sets nothing; did you mean HANDWORK_MODEL?"),
        ("HANDWORK_LMM_MODEL", "HANDWORK_LMM_MODEL sets nothing; did you mean HANDWORK_LLM_MODEL?"),
        ("HANDWORK_SOMETHING_ELSE", "HANDWORK_SOMETHING_ELSE sets nothing"),
    ],
)
def test_a_variable_with_our_prefix_that_sets_nothing_is_told_with_the_nearest_name(
    workspace: Path, name: str, told: str
) -> None:
    assert load(workspace, environ={name: "x"}).notices == (told,)
    assert load(workspace, environ={name: ""}).notices == ()
    assert load(workspace, environ={"HANDWORK_MODEL": "m", "HANDWORK_LIMITS_BUDGET": "1"}).notices == ()


def test_a_key_from_a_variable_is_looked_up_and_one_that_is_not_set_stops_nobody_who_does_not_need_it(
    workspace: Path,
) -> None:
    text = '[llm]\napi_key = "env:MY_KEY"\n[llm.vision]\napi_key = "env:NOT_SET"'
    settings = load(workspace, text, {"MY_KEY": "secret"})
    assert settings.llm_for("manus").api_key == "secret"
    assert settings.llm_for("vision").api_key == "env:NOT_SET"
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[llm]\nmodel = "a"\nmodle = "b"', ("line 3", "[llm] modle", "did you mean model?")),
        (
            "[llm.vision]\n\n# a comment\nmax_token = 3",
            ("line 4", "[llm.vision] max_token", "did you mean max_tokens?"),
        ),
        ('llm.model = "a"\nllm."bse_url" = "b"', ("line 2", "did you mean base_url?")),
        ('[llm]\nmodel = """\nmodle = 1\n"""\nmodle = 2', ("line 5", "modle")),
        ("[sandbx]\nbackend = 1", ("line 1", "'sandbx'", "did you mean sandbox?")),
        ('[limits]\nmax_steps = "4"', ("line 2", "[limits] max_steps", "integer")),
        ("[limits]\nmax_steps = 0", ("line 2", "greater than 0")),
        ("[limits]\nbudget = nan", ("line 2", "finite")),
        ('[policy]\napprove = "always"', ("line 2", "'ask', 'auto' or 'read-only'")),
        ('[sandbox]\nbackend = "none"', ("line 2", "'auto', 'bwrap', 'landlock', 'host', 'docker' or 'daytona'")),
        ("[llm.headers]\na = 1", ("line 2", "[llm] headers.a", "string")),
        ("[llm.prices]\ninput = 1.0\noutputt = 2.0", ("line 3", "[llm] prices.outputt", "did you mean output?")),
        ("[llm]\nprices = {input = 1.0}", ("line 2", "[llm] prices has no output")),
        ("[llm]\nprices = {input = -1.0, output = 1.0}", ("line 2", "[llm] prices", "greater than")),
        ("llm = 3", ("line 1", "must be a table")),
        ('[llm]\nmodel = "a', ("line 2", "not valid TOML")),
        ("[llm\n", ("line 1", "not valid TOML")),
        ("\na = " + "[" * 5000, ("line 2", "more than 64 levels")),
        ("[llm]\n" + "a." * 3000 + "a = 1", ("line 2", "more than 64 levels")),
        ("[llm]\nprices = " + "{a = " * 3000 + "1" + "}" * 3000, ("line 2", "more than 64 levels")),
        ("[llm]\nmax_tokens = " + "9" * 5000, ("line 2", "a number of thousands of digits")),
        ('[llm]\nmodel = "a"\n\n"model" = "b"', ("line 4", "llm.model is set twice; first on line 2")),
        ('[llm]\nmodel = "a"\n[llm]\n', ("line 3", "the table [llm] stands there twice")),
        ('llm.vision.model = "a"\n[llm.vision]\nmodel = "b"', ("line 2", "the table [llm.vision] stands there twice")),
        ("[search]\nengine = 'Bing'\n[search.engine]", ("line 3", "search.engine has a value since line 2")),
        ("[[llm]]\n", ("line 1", "must be a table")),
        (
            '[search]\nfallback_engines = [\n"Bing",\n"Altavista"]',
            ("line 4", "[search] fallback_engines.1", "'Google'"),
        ),
        ("[browser.proxy]\nsevrer = 1", ("line 2", "[browser] proxy.sevrer", "did you mean server?")),
        ("[browser]\nheadless = 1", ("line 2", "[browser] headless", "boolean")),
        ("[daytona]\nvnc_passwort = 'x'", ("line 2", "did you mean VNC_password?")),
        ('[llm]\n"mod\\u0065l" = 1', ("line 2", "[llm] model", "string")),
        ("[llm]\nmax_tokens = {}", ("line 2", "[llm] max_tokens", "integer")),
        ('[llm.model]\nname = "x"', ("line 1", "[llm] model", "string")),
        ("[[llm.swe]]", ("line 1", "[llm] swe")),
        ("[llm]\nmodel = 1979-05-27", ("line 2", "llm.model is a date or time", "quotes")),
        ("[search]\nfallback_engines = [\n07:32:00]", ("line 3", "is a date or time")),
        ("[llm]\nthinking = 1.5", ("line 2", "[llm] thinking is wrong")),
        ("[sandbox]\ndisk_reserve = 'lots'", ("line 2", "[sandbox] disk_reserve: 'lots' is no size: write it as 512m")),
        ("[sandbox]\nmemory_limit = '1k'", ("line 2", "[sandbox] memory_limit: '1k' is too little")),
        ("[sandbox]\nwritable = ['a', '/etc']", ("line 2", "[sandbox] writable.1: '/etc' is no path in a workspace")),
    ],
)
def test_an_error_in_a_file_names_the_file_the_line_the_key_and_what_is_expected(
    workspace: Path, text: str, expected: tuple[str, ...]
) -> None:
    message = complaint(workspace, text)
    assert str(workspace.parent / "given.toml") in message
    for part in expected:
        assert part in message


def test_an_error_never_shows_the_value(workspace: Path) -> None:
    assert "12345" not in complaint(workspace, "[llm]\napi_key = 12345")


def test_a_file_that_cannot_be_read_is_named(workspace: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.toml"):
        load_settings(workspace / "absent.toml", workspace=workspace, environ={})
    file = workspace / "latin.toml"
    file.write_bytes(b'[llm]\nmodel = "\xe4"')
    with pytest.raises(ConfigError, match=r"latin\.toml, line 2.*UTF-8"):
        load_settings(file, workspace=workspace, environ={})


def test_the_files_of_editors_on_other_systems_are_read(workspace: Path) -> None:
    file = workspace / "bom.toml"
    file.write_bytes(b'\xef\xbb\xbf[llm]\r\nmodel = "openai:a"\r\n')
    assert load_settings(file, workspace=workspace, environ={}).llm_for("x").model == "openai:a"


@pytest.mark.parametrize("name", ["config.toml", "handwork.toml"])
def test_the_users_own_folder_is_read_without_being_named(workspace: Path, name: str) -> None:
    folder = workspace.parent / "home"
    folder.mkdir()
    (folder / name).write_text('[llm]\nmodel = "openai:own"')
    assert load(workspace).llm_for("x").model == "openai:own"


@pytest.mark.parametrize("name", ["handwork.toml", "config/config.toml"])
def test_a_file_in_the_workspace_is_not_read_and_that_is_said(workspace: Path, name: str) -> None:
    file = workspace / name
    file.parent.mkdir(exist_ok=True)
    file.write_text('[llm]\nmodel = "evil:model"\nnonsense = 1')
    settings = load(workspace)
    assert settings.llm_for("x").model == ""
    assert len(settings.notices) == 1
    assert str(file) in settings.notices[0]


def test_a_file_in_the_workspace_is_read_when_it_is_named(workspace: Path) -> None:
    file = workspace / "handwork.toml"
    file.write_text('[llm]\nmodel = "openai:mine"')
    settings = load_settings(file, workspace=workspace, environ={})
    assert settings.llm_for("x").model == "openai:mine"
    assert settings.notices == ()


FILE = (
    '[llm]\nmodel = "{model}"\nbase_url = "http://here/v1"\napi_key = "secret"\nprices = {{input = 1.0, output = 2.0}}'
)


@pytest.mark.parametrize(
    ("model", "option", "follows"),
    [
        ("openai:a", "anthropic:b", False),
        ("bare", "anthropic:b", False),
        ("openai:a", "openai:b", True),
        ("bare", "openai:b", False),
        ("mistral:7b", "openai:b", False),
        ("bare", "other-bare", True),
        ("qwen2.5:7b", "llama3.2:3b", True),
    ],
)
def test_a_key_never_goes_to_another_provider_than_it_was_written_for(
    workspace: Path, model: str, option: str, follows: bool
) -> None:
    settings = load(workspace, FILE.format(model=model), llm={"model": option})
    given = settings.llm_for("x")
    assert given.model == option
    assert given.prices is None
    assert (given.api_key, given.base_url) == (("secret", "http://here/v1") if follows else ("", ""))
    assert any("another provider" in notice for notice in settings.notices) is not follows
    assert any("api_key is not used" in notice for notice in settings.notices) is not follows


def test_what_one_model_sees_or_costs_is_not_said_of_another_one(workspace: Path) -> None:
    facts = "sees_images = false\nprices = { input = 1.0, output = 2.0 }"
    text = f'[llm]\nmodel = "deepseek:blind"\n{facts}\n[llm.vision]\nmodel = "google:eyes"\n[llm.same]\nmax_tokens = 9'
    settings = load(workspace, text)
    assert (settings.llm_for("vision").sees_images, settings.llm_for("vision").prices) == (None, None)
    assert settings.llm_for("same").sees_images is False
    assert load(workspace, text, llm={"model": "deepseek:other"}).llm_for("default").sees_images is None
    assert load(workspace, "[llm]\nsees_images = false", llm={"model": "a:b"}).llm_for("default").sees_images is False


@pytest.mark.parametrize("upper", ["config.toml", "command line"])
def test_a_choice_made_in_setup_is_replaced_as_a_whole_by_a_model_that_names_its_provider(
    workspace: Path, upper: str
) -> None:
    own = workspace.parent / "own"
    own.mkdir()
    (own / "setup.toml").write_text('[llm]\nmodel = "qwen3:8b"\nbase_url = "http://lan.example/v1"\n')
    if upper == "config.toml":
        (own / upper).write_text('[llm]\nmodel = "openai:gpt-5"\n')
    model = {"llm": {"model": "openai:gpt-5"}} if upper == "command line" else {}
    settings = load_settings(workspace=workspace, environ={"HANDWORK_HOME": str(own)}, overrides=model)
    assert (settings.llm_for("").model, settings.llm_for("").base_url) == ("openai:gpt-5", "")
    assert settings.notices == ()
    again = load_settings(environ={"HANDWORK_HOME": str(own)}, overrides={"llm": {"model": "llama3.2:3b"}})
    assert again.llm_for("").base_url == ("http://lan.example/v1" if upper == "command line" else "")


@pytest.mark.parametrize(
    ("key", "goes"),
    [
        ("sk-proj-" + "a1B2" * 10, False),
        ("env:OF_OPENAI", False),
        ("house-key-of-the-lan", True),
        ("sk-ant-" + "a1B2" * 10, False),
    ],
)
@pytest.mark.parametrize("where", ["config.toml", "environment"])
def test_a_key_without_a_place_goes_to_what_setup_chose_only_if_its_form_tells_no_other_owner(
    tmp_path: Path, key: str, goes: bool, where: str
) -> None:
    (tmp_path / "setup.toml").write_text('[llm]\nmodel = "qwen3:8b"\nbase_url = "http://lan.example/v1"\n')
    environ = {"HANDWORK_HOME": str(tmp_path), "OF_OPENAI": "sk-proj-" + "a1B2" * 10}
    if where == "environment":
        environ["HANDWORK_API_KEY"] = key
    else:
        (tmp_path / where).write_text(f'[llm]\napi_key = "{key}"\n')
    settings = load_settings(environ=environ)
    assert bool(settings.llm_for("").api_key) is goes
    assert any("api_key is not used" in notice for notice in settings.notices) is not goes
    own = {"llm": {"base_url": "http://lan.example/v1", "api_key": key}}  # who names the place says where the key goes
    assert load_settings(environ=environ, overrides=own).llm_for("").api_key


def test_an_address_that_makes_no_sense_stops_nobody_who_does_not_ask_it(workspace: Path) -> None:
    settings = load(workspace, FILE.format(model="openai:a"), llm={"base_url": "http://[::1/v1"})
    assert settings.llm_for("x").base_url == "http://[::1/v1"
    assert settings.llm_for("x").api_key == ""


def test_a_base_url_given_with_the_model_stays(workspace: Path) -> None:
    settings = load(workspace, FILE.format(model="openai:a"), llm={"model": "other:b", "base_url": "http://there/v1"})
    assert settings.llm_for("x").base_url == "http://there/v1"
    assert settings.llm_for("x").api_key == ""
