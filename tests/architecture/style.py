"""House rules that a linter does not know: docstrings, broad handlers, printing, switched-off checks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import PACKAGE, Module

BROAD_HANDLERS: dict[str, str] = {
    "agent.restoring:_restore": "a tool call: its restore() may raise",
    "agent.turn:Turn._understand": "a tool call: its actions() may raise",
    "agent.turn:Turn._run_tool": "a tool call",
    "agent.permission:_decide": "the policy",
    "session.hosts:Hosts._decided": "the policy",
    "agent.permission:_preview": "a tool call: its preview() may raise",
    "cli.app:_run": "the top of the CLI",
    "cli.completion.answers:print_completions": "the top of the CLI, while somebody types a line in a shell",
    "cli.doctor.examine:_one": "one check of the doctor",
    "config.keys:_perform": "the keyring: its backends raise errors of the services behind them",
    "events.fanout:_Ear._listen": "one listener",
    "events.fanout:_Ear.hear": "one listener",
    "llm.aside:_perform": "work in a thread: it is raised where it is awaited",
    "mcp.connection:Connection._asked": "a tool call: what the library raises over a server's answer has no end",
    "mcp.http:Http._carry": "a supervised background task",
    "mcp.supervise:Supervised._connection": "a supervised background task",
    "session.session:Session.close_part": "one cleanup",
    "tool.kernel_inside.bridge:_main": "a kernel that does not start is told to the tool",
    "tool.kernel_inside.bridge:Kernel.stop": "one cleanup",
    "tool.kernel_inside.tables:_then.exec_module": "a library's own settings; what it refuses is its business",
    "tool.threads:_perform": "a tool call in a thread",
}
"""`module:function` → which of the design's boundaries it is."""

STARTS_PROGRAMS: dict[str, str] = {
    "cli.chat.pasted": "reads the clipboard; the environment is without_keys()",
    "cli.doctor.installation": "imports the packages that we need; the environment is without_keys()",
    "cli.mcp.fetching": "npm and pip; the environment is without_keys(), with what those two are configured by",
    "cli.doctor.tools": "asks bwrap for its version; the environment is without_keys()",
    "cli.mcp.browser": "opens the user's browser; the environment is without_keys()",
    "sandbox.inside.jobs": "inside of the sandbox",
    "sandbox.launch": "starts the sandbox; the environment is base_environment(), beside it passed_on()",
    "store.own_git": "git; the environment is its own",
    "tool.search_inside.ripgrep": "inside of the sandbox",
}
"""Modules that start programs, and what environment these get: our own keys are in none. Nobody else runs git."""
_STARTERS = {
    *("Popen", "create_subprocess_exec", "create_subprocess_shell", "posix_spawn", "posix_spawnp"),
    *("execv", "execve", "execvp", "execvpe", "execl", "execle", "execlp", "execlpe", "spawnv", "spawnve", "spawnvp"),
    *("check_call", "check_output", "getoutput", "getstatusoutput", "forkpty"),
}
_OF_A_MODULE = {("subprocess", "run"), ("subprocess", "call"), ("os", "system"), ("os", "popen"), ("pty", "spawn")}

MAY_PRINT = {"cli", "__main__"}
SILENCES = {"mcp.quiet"}
"""Modules that name logging to keep a library from writing on the terminal."""


def modules_without_a_docstring(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        if not ast.get_docstring(module.tree):
            yield f"{module.name}: a module says in one line what its single responsibility is"


def broad_handlers(modules: list[Module], allowed: dict[str, str] | None = None) -> Iterator[str]:
    """Handlers of everything that never raise again, and stand at none of the named boundaries."""
    allowed = BROAD_HANDLERS if allowed is None else allowed
    for module in modules:
        for node, function in module.nodes:
            if _swallows_all(node) and f"{_short(module)}:{function}" not in allowed:
                yield f"{_short(module)}:{function} (line {getattr(node, 'lineno', 0)}) is no boundary for a broad handler"


def handlers_that_are_gone(modules: list[Module], allowed: dict[str, str] | None = None) -> Iterator[str]:
    allowed = BROAD_HANDLERS if allowed is None else allowed
    there = {
        f"{_short(module)}:{function}" for module in modules for node, function in module.nodes if _swallows_all(node)
    }
    for name in allowed:
        if name not in there:
            yield f"{name} has no broad handler any more: take it off the list"


def programs_started_elsewhere(modules: list[Module], allowed: dict[str, str] | None = None) -> Iterator[str]:
    """Who starts a program without a row that says with which environment, and who runs git besides the one module."""
    allowed = STARTS_PROGRAMS if allowed is None else allowed
    for module in modules:
        starts = [node for node, _ in module.nodes if isinstance(node, ast.Call) and _starts_a_program(node)]
        for node in starts:
            if _short(module) not in allowed:
                yield f"{module.at(node.lineno)}: starts a program: say in STARTS_PROGRAMS with which environment"
        if starts and _short(module) != "store.own_git":
            for node, _ in module.nodes:
                if isinstance(node, ast.Constant) and node.value == "git":
                    yield f"{module.at(node.lineno)}: git is run by store.own_git alone"


def starters_that_are_gone(modules: list[Module], allowed: dict[str, str] | None = None) -> Iterator[str]:
    there = {
        _short(module)
        for module in modules
        if any(isinstance(node, ast.Call) and _starts_a_program(node) for node, _ in module.nodes)
    }
    for name in STARTS_PROGRAMS if allowed is None else allowed:
        if name not in there:
            yield f"{name} starts no program any more: take it off the list"


def _starts_a_program(call: ast.Call) -> bool:
    function = call.func
    owner = _name(function.value) if isinstance(function, ast.Attribute) else ""
    name = _name(function)
    return name in _STARTERS or (owner, name) in _OF_A_MODULE


def _short(module: Module) -> str:
    return module.name.removeprefix(f"{PACKAGE}.")


def _swallows_all(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return _name(node.func) == "suppress" and any(_is_broad(arg) for arg in node.args)
    if not isinstance(node, ast.ExceptHandler) or not (node.type is None or _is_broad(node.type)):
        return False
    return not any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))


def _is_broad(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return any(_is_broad(part) for part in node.elts)
    return _name(node) in {"Exception", "BaseException"}


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def printing(modules: list[Module]) -> Iterator[str]:
    """Who prints or logs: what a run tells, it tells by events."""
    for module in modules:
        if module.part in MAY_PRINT:
            continue
        for node, _ in module.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                yield f"{module.at(node.lineno)}: print() belongs into cli"
        for found in module.imports:
            if found.name == "logging" and _short(module) not in SILENCES:
                yield f"{module.at(found.line)}: nothing logs; emit an event or call notify"


_SWITCHED_OFF = re.compile(r"#\s*(noqa|type:\s*ignore|ruff:\s*noqa|pragma: no cover|mypy:)")


def switched_off_checks(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if _SWITCHED_OFF.search(line):
                yield f"{path.relative_to(folder)}:{number}: checks are switched off once, in pyproject.toml"
