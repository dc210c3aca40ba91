"""A user's folder and a workspace, with what lies in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from handwork.config import Configuration, Settings, load_configuration
from handwork.errors import ConfigError


@dataclass(frozen=True)
class Places:
    """Where configuration may lie; `load` is a program that starts there."""

    home: Path
    workspace: Path

    @classmethod
    def below(cls, folder: Path) -> Places:
        places = cls(folder / "home", folder / "workspace")
        places.home.mkdir()
        places.workspace.mkdir()
        return places

    def write(self, name: str, text: str) -> Path:
        """A file in the user's folder."""
        file = self.home / name
        file.write_text(text, encoding="utf-8")
        return file

    def in_workspace(self, name: str, text: str = "") -> Path:
        """A file in the workspace."""
        file = self.workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def configuration(
        self, config: Path | None = None, environ: dict[str, str] | None = None, **overrides: Any
    ) -> Configuration:
        home = {"HANDWORK_HOME": str(self.home)}
        return load_configuration(config, workspace=self.workspace, environ=home | (environ or {}), overrides=overrides)

    def load(self, config: Path | None = None, environ: dict[str, str] | None = None, **overrides: Any) -> Settings:
        return self.configuration(config, environ, **overrides).settings

    def complaint(self, config: Path | None = None, environ: dict[str, str] | None = None) -> str:
        """What is said of a configuration that is wrong."""
        with pytest.raises(ConfigError) as caught:
            self.load(config, environ)
        return str(caught.value)
