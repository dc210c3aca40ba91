"""The SDK's packages without the parts that a server over stdio does not use: importing those takes as long as all the rest."""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

_PACKAGES = ("mcp", "mcp.server")


def import_sparingly() -> None:
    """Import these packages so that they bring their parts (the client, HTTP, the high-level server) only when somebody asks for
    one; the modules that we name are imported as ever. What is imported already stays as it is."""
    for name in _PACKAGES:
        if name not in sys.modules:
            _import(name)


def _import(name: str) -> None:
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        return  # whoever needs it says so
    package, loader = module_from_spec(spec), spec.loader

    def rest(wanted: str) -> Any:
        """The first name that the package has not: then it is imported as a whole."""
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        del vars(package)["__getattr__"]
        loader.exec_module(package)
        return getattr(package, wanted)

    vars(package)["__getattr__"] = rest
    sys.modules[name] = package
    _tell_parent(name, package)


def _tell_parent(name: str, package: ModuleType) -> None:
    parent, _, last = name.rpartition(".")
    if parent:
        vars(sys.modules[parent])[last] = package
