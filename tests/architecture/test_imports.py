"""The import rule of the design holds, and each check of it can fail."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.architecture import imports
from tests.architecture.source import Module, our_package, read_package

Rule = Callable[[list[Module]], Iterator[str]]
RULES: list[Rule] = [
    imports.breaches_of_table,
    imports.cycles,
    imports.lazy_imports_of_our_own,
    imports.imports_by_name,
    imports.type_checking_imports,
    imports.misplaced_dependencies,
    imports.private_imports,
]

BAD: list[tuple[Rule, dict[str, str]]] = [
    (imports.breaches_of_table, {"llm/x.py": "from handwork.events import Event"}),
    (imports.breaches_of_table, {"llm/x.py": "def f():\n    import handwork.agent.base", "agent/base.py": ""}),
    (imports.breaches_of_table, {"tool/x.py": "from ..session import Session", "session.py": ""}),
    (imports.breaches_of_table, {"agent/x.py": "from handwork import Manus"}),
    (imports.breaches_of_table, {"session.py": "from handwork import cli", "cli/__init__.py": ""}),
    (imports.breaches_of_table, {"cli/x.py": "import handwork.__main__", "__main__.py": ""}),
    (imports.breaches_of_table, {"novelty/x.py": "from handwork.errors import HandworkError"}),
    (
        imports.cycles,
        {"llm/a.py": "from handwork.llm import b", "llm/b.py": "def f():\n    from handwork.llm.a import x"},
    ),
    (imports.cycles, {"tool/a.py": "import handwork.mcp.b", "mcp/b.py": "", "mcp/c.py": "import handwork.tool.a"}),
    (imports.lazy_imports_of_our_own, {"agent/x.py": "async def f():\n    from handwork.session import Session"}),
    (imports.imports_by_name, {"tool/x.py": "from importlib import import_module"}),
    (imports.type_checking_imports, {"tool/x.py": "from typing import Any, TYPE_CHECKING"}),
    (imports.misplaced_dependencies, {"llm/x.py": "import aiohttp"}),
    (imports.misplaced_dependencies, {"llm/x.py": "class A:\n    import aiohttp"}),
    (imports.misplaced_dependencies, {"tool/x.py": "def f():\n    from aiohttp.client import ClientSession"}),
    (imports.misplaced_dependencies, {"agent/x.py": "def f():\n    import rich"}),
    (imports.misplaced_dependencies, {"tool/x.py": "def f():\n    import novelty"}),
    (imports.private_imports, {"agent/x.py": "from handwork.session import _secret"}),
    (imports.private_imports, {"agent/x.py": "import handwork.llm._wire"}),
]

HEAVY = {*imports.HEAVY, "httpx2", "IPython", "tornado"}


def write_package(folder: Path, files: dict[str, str]) -> list[Module]:
    for name, text in files.items():
        path = folder / "handwork" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_package(folder)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_our_package_keeps(rule: Rule) -> None:
    assert list(rule(our_package())) == []


@pytest.mark.parametrize(("rule", "files"), BAD, ids=lambda value: getattr(value, "__name__", None) or " ".join(value))
def test_a_package_that_breaks_the_rule_is_caught(rule: Rule, files: dict[str, str], tmp_path: Path) -> None:
    assert list(rule(write_package(tmp_path, files))) != []


def test_the_table_permits_what_the_design_permits(tmp_path: Path) -> None:
    modules = write_package(
        tmp_path,
        {
            "tool/x.py": "from handwork.sandbox.base import Sandbox\nfrom . import y",
            "tool/y.py": "def f():\n    import jsonschema",
            "agent/x.py": "from handwork.session import Session\nfrom handwork import errors",
            "errors.py": "",
            "cli/x.py": "from handwork import Manus, agent\nimport typer",
            "agent/__init__.py": "",
        },
    )
    assert [line for rule in RULES for line in rule(modules)] == []


def loaded_after(program: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after it ran `program`."""
    code = f"import sys\ntry:\n    {program}\nexcept SystemExit:\n    pass\nprint('\\n' + ' '.join(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return {name.partition(".")[0] for name in ended.stdout.splitlines()[-1].split()}


VERSION = "sys.argv = ['handwork', '--version']; import handwork.__main__ as entry; sys.exit(entry.main())"


@pytest.mark.parametrize("program", ["import handwork", VERSION], ids=["import handwork", "handwork --version"])
def test_a_start_loads_next_to_nothing(program: str) -> None:
    assert loaded_after(program) & {*HEAVY, "pydantic", "asyncio"} == set()


def test_all_public_names_load_without_a_heavy_dependency() -> None:
    assert loaded_after("from handwork import *") & HEAVY == set()


def test_what_is_loaded_can_be_seen() -> None:
    assert "jsonschema" in loaded_after("import jsonschema")
