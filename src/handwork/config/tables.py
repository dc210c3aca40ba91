"""The tables of the configuration, each with what may stand in it."""

from __future__ import annotations

from collections.abc import Mapping

from handwork.config.mcp import MCPSettings
from handwork.config.settings import LimitsSettings, LLMSettings, PolicySettings, SandboxSettings, StoreSettings
from handwork.config.table import SettingsTable
from handwork.config.tool_tables import BrowserSettings, DaytonaSettings, RunflowSettings, SearchSettings

TABLES: Mapping[str, type[SettingsTable]] = {
    "llm": LLMSettings,
    "sandbox": SandboxSettings,
    "policy": PolicySettings,
    "limits": LimitsSettings,
    "store": StoreSettings,
    "browser": BrowserSettings,
    "search": SearchSettings,
    "daytona": DaytonaSettings,
    "mcp": MCPSettings,
    "runflow": RunflowSettings,
}
