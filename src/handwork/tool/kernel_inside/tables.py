"""Runs inside the sandbox: tables of pandas and polars are shown wide, and always with their size."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

ENVIRONMENT = {"POLARS_FMT_MAX_COLS": "30", "POLARS_TABLE_WIDTH": "160", "POLARS_FMT_STR_LEN": "60"}
"""What polars reads when it is imported."""
_PANDAS = {"display.width": 160, "display.max_columns": 30, "display.show_dimensions": True}


class _AfterPandas(importlib.abc.MetaPathFinder):
    """Sets pandas' options as soon as it was imported; importing it ourselves would cost half a second."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "pandas":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            _then(spec.loader)
        return spec


def _then(loader: Any) -> None:
    run = loader.exec_module

    def exec_module(module: Any) -> None:
        run(module)
        for option, value in _PANDAS.items():
            with contextlib.suppress(Exception):
                module.set_option(option, value)

    loader.exec_module = exec_module


def prepare() -> None:
    """Have pandas' options set at its import."""
    sys.meta_path.insert(0, _AfterPandas())
