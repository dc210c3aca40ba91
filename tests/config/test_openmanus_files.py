"""OpenManus's configuration files are accepted as they are: the same keys and shapes as its examples."""

from __future__ import annotations

import pytest

from handwork.config import SandboxSettings
from tests.config.places import Places

MODEL = """
# which model
[llm]
{kind}model = "{model}"   # its name
base_url = "{url}"
api_key = "YOUR_API_KEY"
max_tokens = 8192
temperature = 0.0
{more}

[llm.vision]
{kind}model = "{model}-vision"
base_url = "{url}"
api_key = "YOUR_API_KEY"
max_tokens = 4096
temperature = 0.0
"""
REST = """
[mcp]
server_reference = "app.mcp.server" # the usual one
[runflow]
use_data_analysis_agent = false
[daytona]
daytona_api_key = ""
#VNC_password =
"""
EVERYTHING = """
[browser]
headless = false
disable_security = true
extra_chromium_args = ["--disable-gpu"]
chrome_instance_path = ""
wss_url = ""
cdp_url = "http://localhost:9222"
max_content_length = 4000
[browser.proxy]
server = "http://proxy:3128"
username = "someone"
password = "proxy-password"
[search]
engine = "baidu"
fallback_engines = ["DuckDuckGo", "Bing"]
retry_delay = 60
max_retries = 2
lang = "zh"
country = "cn"
[sandbox]
use_sandbox = false
image = "python:3.12-slim"
work_dir = "/workspace"
memory_limit = "1g"
cpu_limit = 2.0
timeout = 200
network_enabled = true
[daytona]
daytona_api_key = "dtn_0123456789abcdef"
daytona_server_url = "https://daytona.example/api"
daytona_target = "eu"
sandbox_image_name = "some/image:1"
sandbox_entrypoint = "/bin/true"
VNC_password = "abcdef"
[mcp]
server_reference = "my.server"
[runflow]
use_data_analysis_agent = true
"""


@pytest.mark.parametrize(
    ("kind", "model", "url", "more"),
    [
        ("", "claude-3-7-sonnet-20250219", "https://api.anthropic.com/v1/", ""),
        ("", "gemini-2.0-flash", "https://generativelanguage.googleapis.com/v1beta/openai/", ""),
        ("api_type = 'ollama'\n", "llama3.2", "http://localhost:11434/v1", ""),
        ("api_type = 'ppio'\n", "deepseek/deepseek-v3-0324", "https://api.ppinfra.com/v3/openai", ""),
        ("api_type = 'jiekou'\n", "claude-sonnet-4-5-20250929", "https://api.jiekou.ai/openai", ""),
        (
            "api_type= 'azure'\n",
            "gpt-4o-mini",
            "{AN_ENDPOINT.rstrip('/')}/openai/deployments/{ID}",
            'api_version="X"#y',
        ),
        ('api_type = "aws"\n', "us.anthropic.claude-3-7-sonnet-v1:0", "bedrock-runtime.us-west-2.amazonaws.com", ""),
    ],
)
def test_an_example_loads_without_a_word(places: Places, kind: str, model: str, url: str, more: str) -> None:
    text = " " + MODEL.format(kind=kind, model=model, url=url, more=more) + REST
    settings = places.load(places.write("config.toml", text))
    default, vision = settings.llm_for("manus"), settings.llm_for("vision")
    assert (default.model, default.base_url, default.max_tokens, default.temperature) == (model, url, 8192, 0.0)
    assert (vision.model, vision.max_tokens, vision.api_key) == (f"{model}-vision", 4096, "YOUR_API_KEY")
    assert vision.api_type == default.api_type == kind.partition("=")[2].strip(" \n'\"")
    assert vision.api_version == default.api_version == ("X" if more else "")
    assert settings.notices == ()


def test_every_table_is_kept_and_what_nobody_reads_yet_is_told_once(places: Places) -> None:
    settings = places.load(places.write("config.toml", EVERYTHING))
    browser, search, daytona = settings.browser, settings.search, settings.daytona
    assert (browser.headless, browser.disable_security, browser.extra_chromium_args) == (
        False,
        True,
        ("--disable-gpu",),
    )
    assert (browser.cdp_url, browser.max_content_length) == ("http://localhost:9222", 4000)
    assert (browser.proxy.server, browser.proxy.username, browser.proxy.password) == (
        "http://proxy:3128",
        "someone",
        "proxy-password",
    )
    assert (search.engine, search.fallback_engines) == ("Baidu", ("DuckDuckGo", "Bing"))
    assert (search.max_retries, search.lang, search.country) == (2, "zh", "cn")
    assert (settings.sandbox.memory_limit, settings.sandbox.cpu_limit, settings.sandbox.timeout) == ("1g", 2.0, 200)
    assert (daytona.daytona_api_key, daytona.daytona_target) == ("dtn_0123456789abcdef", "eu")
    assert daytona.VNC_password == "abcdef"
    assert settings.mcp.server_reference == "my.server"
    assert settings.runflow.use_data_analysis_agent
    (notice,) = settings.notices
    for part in ("without effect", "[browser] headless", "[browser.proxy] server", "retry_delay", "use_data_analysis"):
        assert part in notice
    assert "[sandbox] memory_limit, cpu_limit, timeout, network_enabled;" in notice
    assert notice.endswith("; for the network: `[sandbox] network = true` or --net")
    for part in ("chrome_instance_path", "wss_url", "use_sandbox", "image,"):
        assert part not in notice
    assert not any(secret in repr(settings) for secret in ("proxy-password", "dtn_", "abcdef"))


def test_without_a_table_openmanus_s_defaults_hold_but_where_they_were_unsafe(places: Places) -> None:
    settings = places.load()
    assert (settings.browser.headless, settings.browser.disable_security) == (True, False)
    assert settings.browser.max_content_length == 2000
    assert (settings.search.engine, settings.search.fallback_engines) == ("Google", ("DuckDuckGo", "Baidu", "Bing"))
    assert (settings.search.retry_delay, settings.search.max_retries) == (0, 3)
    assert settings.daytona.VNC_password == ""
    assert settings.mcp.server_reference == "app.mcp.server"
    assert (settings.sandbox.backend, settings.sandbox.use_sandbox, settings.sandbox.image) == (
        "auto",
        False,
        "python:3.12-slim",
    )


def test_a_container_is_what_use_sandbox_asks_for_and_its_keys_hold(places: Places) -> None:
    text = '[sandbox]\nuse_sandbox = true\nimage = "x"\nmemory_limit = "1g"\nnetwork_enabled = true'
    settings = places.load(places.write("config.toml", text))
    assert (settings.sandbox.backend, settings.sandbox.chosen, settings.sandbox.network) == ("auto", "docker", False)
    assert settings.notices == ()


def test_another_sandbox_that_is_named_comes_before_the_container(places: Places) -> None:
    file = places.write("config.toml", '[sandbox]\nuse_sandbox = true\nbackend = "bwrap"\nimage = "x"')
    settings = places.load(file)
    assert settings.sandbox.chosen == "bwrap"
    told, unused = settings.notices
    assert "use_sandbox = true does not hold" in told
    assert told.endswith("says bwrap")
    assert "[sandbox] image" in unused


def test_the_keys_of_daytona_hold_where_it_is_chosen(places: Places) -> None:
    text = '[daytona]\ndaytona_target = "eu"\nsandbox_entrypoint = "run"\n'
    (unused,) = places.load(places.write("config.toml", text)).notices
    assert "[daytona] daytona_target, sandbox_entrypoint" in unused
    (unused,) = places.load(places.write("config.toml", text + '[sandbox]\nbackend = "daytona"')).notices
    assert unused.endswith("[daytona] sandbox_entrypoint")


def test_a_sandbox_that_has_the_network_is_not_told_how_to_get_it(places: Places) -> None:
    (notice,) = places.load(places.write("config.toml", "[sandbox]\nnetwork_enabled = true\nnetwork = true")).notices
    assert notice.endswith("[sandbox] network_enabled")


def test_a_container_is_never_answered_with_the_bare_host(places: Places) -> None:
    file = places.write("config.toml", '[sandbox]\nbackend = "host"\nuse_sandbox = true')
    assert "line 3" in (told := places.complaint(file))
    assert "take one of them away" in told
    earlier = places.write("config.toml", '[sandbox]\nbackend = "host"')
    assert "HANDWORK_SANDBOX_USE_SANDBOX" in places.complaint(earlier, {"HANDWORK_SANDBOX_USE_SANDBOX": "true"})


def test_a_user_who_names_the_host_on_the_command_line_gets_it_and_is_told(places: Places) -> None:
    file = places.write("config.toml", "[sandbox]\nuse_sandbox = true")
    settings = places.load(file, sandbox={"backend": "host"})
    assert settings.sandbox.backend == "host"
    assert settings.notices == ("[sandbox] use_sandbox = true does not hold: --sandbox says host",)


def test_use_sandbox_false_means_auto_and_never_the_host(places: Places) -> None:
    assert places.load(places.write("config.toml", "[sandbox]\nuse_sandbox = false")).sandbox == SandboxSettings()
