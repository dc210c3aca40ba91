"""Manus: the all-round role."""

from __future__ import annotations

from handwork.agent.connecting import Connecting
from handwork.agent.prompt import prompt_file
from handwork.tool.ask_human import AskHuman
from handwork.tool.bash import Bash
from handwork.tool.collection import ToolCollection
from handwork.tool.editor import StrReplaceEditor
from handwork.tool.planning import PlanningTool
from handwork.tool.python_execute import PythonExecute
from handwork.tool.search_files import SearchFiles
from handwork.tool.terminate import Terminate


class Manus(Connecting):
    """An all-round assistant with Python, a shell, an editor, a search in files, a plan, a way to ask and the tools of MCP servers; it
    picks the tools by itself."""

    name = "manus"
    description = "A versatile agent that solves tasks with Python, a shell, files and questions."
    system_prompt = prompt_file("manus_system")
    next_step_prompt = prompt_file("manus_next_step")
    available_tools = ToolCollection(
        PythonExecute, Bash, StrReplaceEditor, SearchFiles, PlanningTool, AskHuman, Terminate
    )
    max_steps = 20
    max_observe = 10_000
