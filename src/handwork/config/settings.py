"""The settings: frozen, one class a table, never a global."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from handwork.config.allow_list import AllowedHost
from handwork.config.free_path import FreePath
from handwork.config.keys import KeyStore
from handwork.config.mcp import MCPSettings
from handwork.config.own_keys import keys_in
from handwork.config.policy_rules import PolicyRule
from handwork.config.sizes import FileSize, MemorySize, Size
from handwork.config.table import SettingsTable, secrets
from handwork.config.tool_tables import BrowserSettings, DaytonaSettings, RunflowSettings, SearchSettings
from handwork.errors import ConfigError
from handwork.schema import Mode

_SECRET = re.compile(r"auth|key|token|secret|cookie|pass|pwd|credential", re.IGNORECASE)
_NOT_SET = re.compile(r"\$\{[^{}]*\}")
"""A reference that stands in the place of a value, since what it names is not set: to be read by whoever has to set it."""


class PriceSettings(SettingsTable):
    """[llm] prices: USD per million tokens. Without `cached`, tokens from the cache cost what others do; without `written`, what
    a request costs that wrote to the cache is unknown."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    written: float | None = Field(default=None, ge=0)


class LLMSettings(SettingsTable):
    """[llm] and [llm.<name>]. `model` is `provider:model` or a bare name at `base_url`; `timeout` bounds one whole request, in
    seconds, `idle_timeout` the silence within it. `api_key` (or `env:NAME`) and `headers` go to the place that was
    named when they were given, and to no other: see config.credentials.

    `sees_images` says whether the model takes images, where its name does not tell or tells wrongly. `thinking` is for Anthropic's
    models: a budget in tokens (models up to 4.6), `adaptive`, or an effort (low to max), which is adaptive with that effort.
    What is thought comes on top of max_tokens."""

    model: str = ""
    base_url: str = ""
    api_key: str = Field(default="", repr=False)
    max_tokens: int = Field(default=4096, gt=0)
    max_input_tokens: int | None = Field(default=None, gt=0)
    temperature: float | None = Field(default=None, ge=0)
    thinking: Annotated[int, Field(ge=1024)] | Literal["adaptive", "low", "medium", "high", "xhigh", "max"] | None = (
        None
    )
    api_type: str = ""
    api_version: str = ""
    sees_images: bool | None = None
    headers: Mapping[str, str] = Field(default={}, repr=False)
    timeout: float = Field(default=600.0, gt=0)
    idle_timeout: float = Field(default=120.0, gt=0)
    retries: int = Field(default=5, ge=0)
    retry_limit: float = Field(default=120.0, ge=0)
    prices: PriceSettings | None = None


class SandboxSettings(SettingsTable):
    """[sandbox]. `backend`: auto, bwrap, landlock, host, docker, daytona. `network` opens all of it, `allow_net` the hosts that it
    names. `use_sandbox` asks for a Docker container where no backend is named; `image`, `work_dir` and `network_enabled`
    describe it. Without it, tools run where `backend` says, and that is never the host unless it is named. `writable` names
    protected paths of a workspace (`.vscode`, `.git/hooks`) that programs may write to all the same.

    What may be used: `memory_limit` and `file_limit` (the largest file) as 512m or 6g, `cpu_limit` in processors, `process_limit`
    in processes; `disk_reserve` is what must stay free on the workspace's disk. Absent means what the backend finds fit."""

    backend: Literal["auto", "bwrap", "landlock", "host", "docker", "daytona"] = "auto"
    network: bool = False
    allow_net: tuple[AllowedHost, ...] = ()
    writable: tuple[FreePath, ...] = ()
    use_sandbox: bool = False
    image: str = "python:3.12-slim"
    work_dir: str = "/workspace"
    memory_limit: MemorySize | None = None
    cpu_limit: float | None = Field(default=None, gt=0)
    process_limit: int = Field(default=512, ge=16)
    file_limit: FileSize | None = None
    disk_reserve: Size | None = None
    timeout: int = Field(default=300, gt=0)
    network_enabled: bool = False

    @property
    def chosen(self) -> str:
        """The backend: a Docker container where `use_sandbox` asks for one and no backend is named."""
        return "docker" if self.use_sandbox and self.backend == "auto" else self.backend

    @property
    def describes_container(self) -> bool:
        """Whether the table was written for OpenManus, where memory and processors are those of its containers alone."""
        return "use_sandbox" in self.model_fields_set


class PolicySettings(SettingsTable):
    """[policy]. Without a mode (`approve`): auto inside a sandbox, ask with host. `rules` are looked up in order, the first that fits
    decides, the mode where none does: `deny write .github/**`, `allow run git status`, `ask network *.example.com`."""

    approve: Mode | None = None
    rules: tuple[PolicyRule, ...] = ()


class LimitsSettings(SettingsTable):
    """[limits]: steps, seconds, USD and tokens of one run or session tree; absent is no limit (steps: the agent's own)."""

    max_steps: int | None = Field(default=None, gt=0)
    timeout: float | None = Field(default=None, gt=0)
    budget: float | None = Field(default=None, ge=0)
    max_total_tokens: int | None = Field(default=None, ge=0)


class StoreSettings(SettingsTable):
    """[store]. `synchronous`: normal survives a crash of the program, full also a power cut."""

    path: str = ""
    synchronous: Literal["normal", "full"] = "normal"


@dataclass(frozen=True)
class Home:
    """Where Handwork keeps its own files, never in a workspace: $HANDWORK_HOME, else the XDG folders."""

    data: Path
    cache: Path
    config: Path

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Home:
        """The folders that these variables name. Raises ConfigError if they name none."""
        if own := environ.get("HANDWORK_HOME"):
            base = _own_folder(own)
            return cls(base, base / "cache", base)
        user = Path(environ.get("HOME") or _account_home())

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

    @property
    def programs(self) -> Path:
        """Installed MCP servers, each in a folder of its own."""
        return self.data / "mcp" / "programs"


def _own_folder(named: str) -> Path:
    try:
        return Path(named).expanduser().absolute()
    except (RuntimeError, OSError) as error:  # an unknown ~user; a relative path, and the current folder is gone
        what = f"HANDWORK_HOME is {named}, which is no folder that can be found: {error}"
        raise ConfigError(what, hint="set it to the whole path of a folder of yours") from None


def _account_home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        what = "There is no home folder: HOME is not set, and this account has none"
        raise ConfigError(what, hint="set HOME, or HANDWORK_HOME to a folder of yours") from None


class Settings(SettingsTable):
    """All settings of a process; never a global: whoever needs them is given them."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    llm: Mapping[str, LLMSettings] = {"default": LLMSettings()}
    sandbox: SandboxSettings = SandboxSettings()
    policy: PolicySettings = PolicySettings()
    limits: LimitsSettings = LimitsSettings()
    store: StoreSettings = StoreSettings()
    browser: BrowserSettings = BrowserSettings()
    search: SearchSettings = SearchSettings()
    daytona: DaytonaSettings = DaytonaSettings()
    mcp: MCPSettings = MCPSettings()
    runflow: RunflowSettings = RunflowSettings()
    home: Home = Field(default_factory=lambda: Home.from_environ(os.environ))
    environ: Mapping[str, str] = Field(default_factory=lambda: dict(os.environ), repr=False)
    """The environment in which keys and proxies are looked up."""
    notices: tuple[str, ...] = ()
    """What the user should be told once about how these settings came about."""

    table_notices: Mapping[str, tuple[str, ...]] = {}
    """The same of each [llm.<name>]: who uses that table is told."""

    unread: tuple[Path, ...] = ()
    """Files for us in the workspace that were not read: whoever finds no model says so."""

    withheld: Mapping[str, str] = {}
    """Of those, by the name of an [llm] table: that a key was given for another place, and does not go to this one."""

    def llm_for(self, name: str) -> LLMSettings:
        """[llm.<name>] over [llm]; names ignore case."""
        return self.llm.get(name.lower()) or self.llm["default"]

    def notices_for(self, name: str) -> tuple[str, ...]:
        """What to tell who uses [llm.<name>], besides `notices`."""
        return self.table_notices.get(name.lower(), ())

    @property
    def all_notices(self) -> tuple[str, ...]:
        """`notices`, and those of tables that nobody may be using now: for who looks at the configuration itself."""
        return (*self.notices, *(text for told in self.table_notices.values() for text in told))

    def withheld_for(self, name: str) -> str:
        """What `withheld` says of [llm.<name>], or of [llm] where there is no such table; '' for nothing."""
        return self.withheld.get(name.lower() if name.lower() in self.llm else "default", "")

    def secrets(self) -> frozenset[str]:
        """Every key and password in these settings; of headers and of servers' environments, what has the name of one."""
        tables = [*self.llm.values(), self.browser, self.daytona, self.mcp]
        found = [each for table in tables if table.model_fields_set for each in secrets(table)]
        values = (value.rpartition(" ")[2] for name, value in found if _SECRET.search(name))
        return frozenset(value for value in values if value and not _NOT_SET.fullmatch(value))

    @property
    def hidden(self) -> frozenset[str]:
        """What is masked wherever it turns up: these secrets, and those of the environment."""
        return self.secrets() | keys_in(self.environ)

    @cached_property
    def keys(self) -> KeyStore:
        """The keys that `handwork setup` stored; nothing is read before one is asked for."""
        return KeyStore(self.home.config)

    @property
    def unread_config(self) -> Path | None:
        """The configuration file in the workspace that was not read."""
        return next((file for file in self.unread if file.suffix == ".toml"), None)

    @property
    def store_path(self) -> Path:
        return Path(self.store.path).expanduser() if self.store.path else self.home.store

    @property
    def own_files(self) -> list[Path]:
        """What nothing in a sandbox may see: the store, wherever it is, and the folders of data and configuration."""
        store = [self.store_path.with_name(self.store_path.name + end) for end in ("", "-wal", "-shm", "-lock")]
        return [self.home.data, self.home.config, *store]
