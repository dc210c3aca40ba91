"""The public names: one list, all of them there, and the types in step."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from importlib.metadata import version
from types import ModuleType

import pytest
from tests.architecture.source import ROOT

import handwork

PUBLIC = {
    name
    for line in (
        "Action AgentState Approval ApprovalRequest Artifact AskHuman BaseAgent BaseTool Bash Budget",
        "CreateChatCompletion errors events Function HandworkError Home Image LimitsSettings LLM LLMSettings",
        "load_settings Manus MCPAgent MCPClients MCPClientTool Memory Message Mode Model Plan PlanningTool",
        "PlanStepStatus PolicySettings PythonExecute Question ReActAgent Reply Request Role RunResult",
        "SandboxSettings ScriptedModel SearchFiles Session Settings Status StoreSettings",
        "StrReplaceEditor SWEAgent Terminate TokenLimitExceeded Tool tool ToolCall ToolCallAgent ToolChoice",
        "ToolCollection ToolContext ToolError ToolResult Usage",
    )
    for name in line.split()
}


def stub() -> ast.Module:
    return ast.parse((ROOT / "src/handwork/__init__.pyi").read_text())


def test_the_public_names_are_these() -> None:
    assert set(handwork.__all__) == PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_name_is_what_its_home_calls_so(name: str) -> None:
    homes = {
        alias.name: node.module for node in stub().body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    home = importlib.import_module(str(homes[name]))
    if name == "tool":
        assert callable(handwork.tool)
        assert homes[name] == "handwork.tool.function"
    else:
        assert getattr(handwork, name) is getattr(home, name)


def test_the_stub_types_exactly_the_public_names() -> None:
    imported = {alias.asname for node in stub().body if isinstance(node, ast.ImportFrom) for alias in node.names}
    listed = next(node.value for node in stub().body if isinstance(node, ast.Assign))
    assert imported == PUBLIC
    assert set(ast.literal_eval(listed)) == PUBLIC


def test_the_decorator_works_whatever_was_imported_before() -> None:
    use = (
        "from handwork import tool, ToolCollection\n"
        "@tool(name='plus')\ndef add(a: int, b: int) -> int:\n  'Add.'\n  return a + b\n"
        "assert add(1, 2) == 3 and 'plus' in ToolCollection(add)"
    )
    for before in ("", "import handwork.tool.base", "import handwork.tool.function", "from handwork import Tool"):
        subprocess.run([sys.executable, "-c", f"{before}\n{use}"], check=True, timeout=60)
    assert isinstance(sys.modules["handwork.tool"], ModuleType)


def test_an_unknown_name_is_an_attribute_error_as_everywhere() -> None:
    with pytest.raises(AttributeError, match=r"handwork.*no attribute 'Nonsense'"):
        _ = handwork.Nonsense
    assert set(dir(handwork)) >= PUBLIC


def test_the_version_is_the_installed_one_and_that_of_pyproject() -> None:
    declared = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert declared
    assert handwork.__version__ == version("handwork") == declared[1]
