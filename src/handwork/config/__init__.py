"""Frozen settings, and the one function that loads them."""

from handwork.config.load import Configuration, load_configuration, load_settings
from handwork.config.mcp import MCPServerSettings, MCPSettings
from handwork.config.settings import (
    Home,
    LimitsSettings,
    LLMSettings,
    PolicySettings,
    PriceSettings,
    SandboxSettings,
    Settings,
    StoreSettings,
)
from handwork.config.tool_tables import (
    BrowserProxySettings,
    BrowserSettings,
    DaytonaSettings,
    RunflowSettings,
    SearchSettings,
)

__all__ = [
    "BrowserProxySettings",
    "BrowserSettings",
    "Configuration",
    "DaytonaSettings",
    "Home",
    "LLMSettings",
    "LimitsSettings",
    "MCPServerSettings",
    "MCPSettings",
    "PolicySettings",
    "PriceSettings",
    "RunflowSettings",
    "SandboxSettings",
    "SearchSettings",
    "Settings",
    "StoreSettings",
    "load_configuration",
    "load_settings",
]
