"""The house rules hold, and each check of them can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.architecture import style
from tests.architecture.source import ROOT, Module, our_package
from tests.architecture.test_imports import write_package

Rule = Callable[[list[Module]], Iterator[str]]
RULES: list[Rule] = [
    style.modules_without_a_docstring,
    style.broad_handlers,
    style.handlers_that_are_gone,
    style.printing,
    style.programs_started_elsewhere,
    style.starters_that_are_gone,
]

BAD: list[tuple[Rule, str]] = [
    (style.modules_without_a_docstring, "import os"),
    (style.broad_handlers, "def f():\n try: g()\n except Exception: pass"),
    (style.broad_handlers, "def f():\n try: g()\n except: return"),
    (style.broad_handlers, "def f():\n try: g()\n except (OSError, BaseException) as e: h(e)"),
    (style.broad_handlers, "with contextlib.suppress(Exception): g()"),
    (style.printing, "def f(): print('hello')"),
    (style.printing, "import logging"),
    (style.programs_started_elsewhere, "def f(): subprocess.run(['x'])"),
    (style.programs_started_elsewhere, "async def f(): await asyncio.create_subprocess_exec('x')"),
    (style.programs_started_elsewhere, "from os import execv\ndef f(): execv('x', ['x'])"),
    (style.programs_started_elsewhere, "import os\ndef f(): os.system('x')"),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_our_package_keeps(rule: Rule) -> None:
    assert list(rule(our_package())) == []


@pytest.mark.parametrize(("rule", "text"), BAD)
def test_a_module_that_breaks_the_rule_is_caught(rule: Rule, text: str, tmp_path: Path) -> None:
    assert list(rule(write_package(tmp_path, {"agent/x.py": text}))) != []


def test_a_handler_that_cleans_up_and_raises_again_is_fine_everywhere(tmp_path: Path) -> None:
    text = "def f():\n try: g()\n except BaseException:\n  close()\n  raise"
    assert list(style.broad_handlers(write_package(tmp_path, {"agent/x.py": text}))) == []


def test_a_boundary_is_one_function_and_leaves_the_list_with_its_handler(tmp_path: Path) -> None:
    text = "class A:\n def f(self):\n  try: g()\n  except Exception: pass\n def h(self): pass"
    modules = write_package(tmp_path, {"agent/x.py": text})
    assert list(style.broad_handlers(modules, {"agent.x:A.f": "a tool call"})) == []
    assert list(style.broad_handlers(modules, {"agent.x:A.h": "a tool call"})) != []
    assert list(style.handlers_that_are_gone(modules, {"agent.x:A.h": "a tool call"})) != []


def test_only_one_module_runs_git_and_who_starts_nothing_leaves_the_list(tmp_path: Path) -> None:
    text = "def f(): subprocess.run(['git', 'status'])"
    modules = write_package(tmp_path, {"cli/x.py": text, "store/own_git.py": text, "agent/y.py": "names = {'git'}"})
    allowed = {"cli.x": "no keys", "store.own_git": "its own"}
    found = list(style.programs_started_elsewhere(modules, allowed))
    assert len(found) == 1
    assert "handwork.cli.x" in found[0]
    assert list(style.starters_that_are_gone(modules, allowed)) == []
    assert list(style.starters_that_are_gone(modules, {"agent.y": "nothing"})) != []


@pytest.mark.parametrize("folder", ["src", "tests"])
def test_no_check_is_switched_off_in_a_line(folder: str) -> None:
    assert list(style.switched_off_checks(ROOT / folder)) == []


def test_a_switched_off_check_is_caught(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("import os  # " + "noqa: F401\n")
    assert list(style.switched_off_checks(tmp_path)) == ["x.py:1: checks are switched off once, in pyproject.toml"]
