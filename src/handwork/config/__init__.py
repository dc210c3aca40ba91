"""Frozen settings, and the one function that loads them."""

from handwork.config.load import load_settings
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

__all__ = [
    "Home",
    "LLMSettings",
    "LimitsSettings",
    "PolicySettings",
    "PriceSettings",
    "SandboxSettings",
    "Settings",
    "StoreSettings",
    "load_settings",
]
