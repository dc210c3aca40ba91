"""Frozen settings, and the one function that loads them (CONTRACT G)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from handwork.schema import Mode


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LLMSettings(_Settings):
    """[llm] and [llm.<name>]. `model` is `provider:model` or a bare name at `base_url`; `timeout` bounds one whole request, in
    seconds, `idle_timeout` the silence within it; `prices` are USD per million tokens (input, cached, output)."""

    model: str = ""
    base_url: str = ""
    api_key: str = Field(default="", repr=False)
    max_tokens: int = 4096
    max_input_tokens: int | None = None
    temperature: float | None = None
    api_type: str = ""
    api_version: str = ""
    headers: Mapping[str, str] = {}
    timeout: float = 600.0
    idle_timeout: float = 120.0
    retries: int = 5
    retry_limit: float = 120.0
    prices: Mapping[str, float] = {}


class SandboxSettings(_Settings):
    """[sandbox]. `backend`: auto, bwrap, host."""

    backend: str = "auto"
    network: bool = False


class PolicySettings(_Settings):
    """[policy]. Without a mode: auto inside a sandbox, ask with host."""

    approve: Mode | None = None


class LimitsSettings(_Settings):
    """[limits]: steps, seconds, USD and tokens of one run or session tree; absent is no limit (steps: the agent's own)."""

    max_steps: int | None = None
    timeout: float | None = None
    budget: float | None = None
    max_total_tokens: int | None = None


class StoreSettings(_Settings):
    """[store]. `synchronous`: normal survives a crash of the program, full also a power cut."""

    path: str = ""
    synchronous: str = "normal"


@dataclass(frozen=True)
class Home:
    """Where Handwork keeps its own files, never in a workspace: $HANDWORK_HOME, else the XDG folders."""

    data: Path
    cache: Path
    config: Path

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Home:
        if own := environ.get("HANDWORK_HOME"):
            base = Path(own).expanduser().absolute()
            return cls(base, base / "cache", base)
        user = Path(environ.get("HOME") or Path.home())

        def folder(variable: str, default: str) -> Path:
            return Path(environ.get(variable) or user / default) / "handwork"

        return cls(
            data=folder("XDG_DATA_HOME", ".local/share"),
            cache=folder("XDG_CACHE_HOME", ".cache"),
            config=folder("XDG_CONFIG_HOME", ".config"),
        )

    @property
    def store(self) -> Path:
        return self.data / "store.db"

    @property
    def artifacts(self) -> Path:
        return self.data / "artifacts"

    @property
    def models(self) -> Path:
        return self.cache / "models"


class Settings(_Settings):
    """All settings of a process; never a global: whoever needs them is given them."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    llm: Mapping[str, LLMSettings] = {"default": LLMSettings()}
    sandbox: SandboxSettings = SandboxSettings()
    policy: PolicySettings = PolicySettings()
    limits: LimitsSettings = LimitsSettings()
    store: StoreSettings = StoreSettings()
    home: Home = Field(default_factory=lambda: Home.from_environ(os.environ))
    environ: Mapping[str, str] = Field(default_factory=lambda: dict(os.environ), repr=False)
    """The environment in which keys and proxies are looked up."""

    def llm_for(self, name: str) -> LLMSettings:
        """[llm.<name>] over [llm]; names ignore case."""
        return self.llm.get(name.lower()) or self.llm["default"]

    @property
    def store_path(self) -> Path:
        return Path(self.store.path).expanduser() if self.store.path else self.home.store
