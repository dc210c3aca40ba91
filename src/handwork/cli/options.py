"""What the user typed for a run, the settings that come of it, and what of it must be typed again to go on."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handwork.cli.program import program
from handwork.cli.stdin import input_beside_a_task, task_with, whole_input
from handwork.cli.workspace import real_folder
from handwork.config import Settings, load_settings
from handwork.config.masking import without_secrets
from handwork.errors import ConfigError, PictureError
from handwork.schema import Budget, Image, Mode
from handwork.tool.pictures import picture_of_file

_EMPTY = "Empty prompt provided."


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `handwork run`; None and False are what was not given."""

    task: str | None = None
    prompt: str | None = None
    agent: str = "manus"
    model: str | None = None
    base_url: str | None = None
    workspace: Path | None = None
    max_steps: int | None = None
    budget: float | None = None
    max_total_tokens: int | None = None
    timeout: float | None = None
    sandbox: str | None = None
    net: bool = False
    allow_net: tuple[str, ...] = ()
    approve: Mode | None = None
    image: tuple[Path, ...] = ()
    mcp: tuple[str, ...] = ()
    session: str | None = None
    go_on: bool = False
    quiet: bool = False
    json: bool = False
    config: Path | None = None
    trusted: bool | None = None
    """What was answered about the workspace's configuration this time; None: what was answered for good."""

    def images(self) -> tuple[Image, ...]:
        """The pictures of --image, ready to be sent. Raises ConfigError for one that cannot be."""
        try:
            return tuple(picture_of_file(path) for path in self.image)
        except PictureError as error:
            raise ConfigError(
                error.message, hint="--image takes PNG, JPEG, GIF, WEBP, BMP, TIFF and AVIF files"
            ) from None

    @property
    def folder(self) -> Path:
        """The workspace: as named, or the current folder; its real path. Raises ConfigError."""
        return real_folder(self.workspace)

    def settings(self) -> Settings:
        """The settings with these options over them. Raises ConfigError."""
        tables: dict[str, dict[str, Any]] = {
            "llm": {"model": self.model, "base_url": self.base_url},
            "sandbox": {"backend": self.sandbox, **self._network()},
            "policy": {"approve": self.approve},
            "limits": {
                "max_steps": self.max_steps,
                "budget": self.budget,
                "max_total_tokens": self.max_total_tokens,
                "timeout": self.timeout,
            },
        }
        overrides = {name: given for name, table in tables.items() if (given := _given(table))}
        return load_settings(self.config, workspace=self.folder, overrides=overrides, trusted=self.trusted)

    def _network(self) -> dict[str, Any]:
        """What was said of the network here; hosts that are named here are all, whatever the configuration opens."""
        if self.net and self.allow_net:
            raise ConfigError("--net and --allow-net exclude each other", hint="--net opens all of the network")
        return {"network": True if self.net else False if self.allow_net else None, "allow_net": self.allow_net or None}

    def again(self) -> dict[str, str]:
        """The options (name and value) without which the next run of the session would be another one: those that were given
        and that the configuration does not say itself. Limits are each run's own, and a session knows its workspace."""
        own = load_settings(self.config, workspace=self.folder, trusted=self.trusted)
        models = own.llm.values()
        given = {
            "--config": str(self.config or ""),
            "--agent": self.agent if self.agent != "manus" else "",
            "--model": self.model if {llm.model for llm in models} != {self.model} else "",
            "--base-url": self.base_url if {llm.base_url for llm in models} != {self.base_url} else "",
            "--sandbox": self.sandbox if self.sandbox != own.sandbox.backend else "",
            "--approve": self.approve.value if self.approve and self.approve != own.policy.approve else "",
        }
        flags = {"--net": ""} if self.net and not own.sandbox.network else {}
        if self.allow_net and set(self.allow_net) != set(own.sandbox.allow_net):
            flags["--allow-net"] = " --allow-net ".join(map(shlex.quote, self.allow_net))
        if self.mcp:
            flags["--mcp"] = " --mcp ".join(shlex.quote(without_secrets(each)) for each in self.mcp)
        return {name: shlex.quote(value) for name, value in given.items() if value} | flags

    def request(self) -> str | None:
        """The task: TASK or --prompt, with what comes through a pipe beside it, or the pipe's text itself. None: none, and an
        earlier session may go on without one.

        Raises ConfigError with `Empty prompt provided.` for an empty one, and NothingCame if the pipe beside it stays empty.
        """
        if (typed := self.typed) is not None:
            return task_with(typed, input_beside_a_task())
        resumes = self.go_on or self.session is not None
        if sys.stdin is not None and not sys.stdin.isatty():
            text = whole_input()
            if text.strip():
                return text
        if resumes:
            return None
        if sys.stdin is not None and sys.stdin.isatty():
            raise ConfigError("What is to be done?", hint=f'give a task: {program()} run "TASK"')
        raise ConfigError(_EMPTY, hint=f'give a task: {program()} run "TASK", or put one into standard input')

    @property
    def typed(self) -> str | None:
        """TASK or --prompt. Raises ConfigError for both, and for an empty one."""
        if self.task is not None and self.prompt is not None:
            raise ConfigError("TASK and --prompt are the same: give one of them")
        text = self.task if self.task is not None else self.prompt
        if text is not None and not text.strip():
            raise ConfigError(_EMPTY, hint="say in the task what is to be done")
        return text


def _given(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if value is not None}


def agent_fields(settings: Settings) -> dict[str, Any]:
    """The limits that are set, as an agent's constructor takes them."""
    limits = settings.limits
    budget = (
        Budget(usd=limits.budget, tokens=limits.max_total_tokens)
        if limits.budget is not None or limits.max_total_tokens is not None
        else None
    )
    return _given({"max_steps": limits.max_steps, "timeout": limits.timeout, "budget": budget})
