"""The tables of tools: browser, search, Daytona and flows, with OpenManus's keys."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from handwork.config.table import SettingsTable

_ENGINES = ("Google", "Baidu", "DuckDuckGo", "Bing")


def _engine(value: Any) -> Any:
    """The engine's name as we write it; any case is accepted."""
    return next((name for name in _ENGINES if isinstance(value, str) and name.lower() == value.lower()), value)


Engine = Annotated[Literal["Google", "Baidu", "DuckDuckGo", "Bing"], BeforeValidator(_engine)]


class BrowserProxySettings(SettingsTable):
    """[browser.proxy]; without a server there is none."""

    server: str = ""
    username: str = ""
    password: str = Field(default="", repr=False)


class BrowserSettings(SettingsTable):
    """[browser]. `wss_url` or `cdp_url` joins a browser that runs already, `chrome_instance_path` names the program to start;
    `max_content_length` bounds the text of a page."""

    headless: bool = True
    disable_security: bool = False
    extra_chromium_args: tuple[str, ...] = ()
    chrome_instance_path: str = ""
    wss_url: str = Field(default="", repr=False)
    cdp_url: str = Field(default="", repr=False)
    max_content_length: int = Field(default=2000, gt=0)
    proxy: BrowserProxySettings = BrowserProxySettings()


class SearchSettings(SettingsTable):
    """[search]. The fallbacks are asked in order when `engine` fails, all of them at most `max_retries` times. `retry_delay` is
    accepted and has no effect: nobody waits a minute for a search."""

    engine: Engine = "Google"
    fallback_engines: tuple[Engine, ...] = ("DuckDuckGo", "Baidu", "Bing")
    retry_delay: float = Field(default=0, ge=0)
    max_retries: int = Field(default=3, ge=0)
    lang: str = "en"
    country: str = "us"


class DaytonaSettings(SettingsTable):
    """[daytona]. `VNC_password`: absent means one made at random for each sandbox. `keep` stops a session's sandbox at its end
    instead of deleting it."""

    daytona_api_key: str = Field(default="", repr=False)
    daytona_server_url: str = "https://app.daytona.io/api"
    daytona_target: str = "us"
    sandbox_image_name: str = "whitezxj/sandbox:0.1.0"
    sandbox_entrypoint: str = "/usr/bin/supervisord -n -c /etc/supervisor/conf.d/supervisord.conf"
    VNC_password: str = Field(default="", repr=False)
    keep: bool = False


class RunflowSettings(SettingsTable):
    """[runflow]: whether a flow may also give steps to the agent for data."""

    use_data_analysis_agent: bool = False
