"""Handwork: a general-purpose AI agent (the public names, each imported at its first use)."""

from importlib import import_module

_HOMES = {
    "agent.base": "BaseAgent",
    "agent.manus": "Manus",
    "agent.mcp": "MCPAgent",
    "agent.react": "ReActAgent",
    "agent.swe": "SWEAgent",
    "agent.toolcall": "ToolCallAgent",
    "config": ("Home LimitsSettings LLMSettings load_settings PolicySettings SandboxSettings Settings StoreSettings"),
    "errors": "HandworkError TokenLimitExceeded ToolError",
    "llm.base": "Model",
    "llm.llm": "LLM",
    "llm.scripted": "ScriptedModel",
    "mcp.clients": "MCPClients",
    "mcp.tool": "MCPClientTool",
    "schema": (
        "Action AgentState Approval ApprovalRequest Artifact Budget Function Image Memory Message Mode "
        "Plan PlanStepStatus Question Reply Request Role RunResult Status ToolCall ToolChoice ToolResult Usage"
    ),
    "session": "Session",
    "tool.ask_human": "AskHuman",
    "tool.base": "BaseTool Tool ToolContext",
    "tool.bash": "Bash",
    "tool.collection": "ToolCollection",
    "tool.create_chat_completion": "CreateChatCompletion",
    "tool.editor": "StrReplaceEditor",
    "tool.function": "tool",
    "tool.planning": "PlanningTool",
    "tool.python_execute": "PythonExecute",
    "tool.search_files": "SearchFiles",
    "tool.terminate": "Terminate",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
_SUBMODULES = ("errors", "events")
_OF_UNIX = {"fcntl", "pwd", "resource", "sysconf", "termios"}

__all__ = sorted((*_HOME_OF, *_SUBMODULES))


def __getattr__(name: str) -> object:
    if name in _SUBMODULES:
        return import_module(f"handwork.{name}")
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("handwork")
    elif name in _HOME_OF:
        value = getattr(_module(_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module 'handwork' has no attribute {name!r}")
    globals()[name] = value
    return value


def _module(name: str) -> object:
    """One of our modules; ImportError with what to do where the system lacks what it builds on."""
    try:
        return import_module(f"handwork.{name}")
    except (ModuleNotFoundError, AttributeError) as error:
        if error.name not in _OF_UNIX:
            raise
        why = (
            f"handwork.{name} needs {error.name}, which this system lacks: Handwork runs on Linux (on Windows, in WSL2)"
        )
        raise ImportError(why) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
