"""SWEAgent: the role that works in a shell and an editor."""

from __future__ import annotations

from handwork.agent.prompt import prompt_file
from handwork.agent.toolcall import ToolCallAgent
from handwork.tool.bash import Bash
from handwork.tool.collection import ToolCollection
from handwork.tool.editor import StrReplaceEditor
from handwork.tool.terminate import Terminate


class SWEAgent(ToolCallAgent):
    """A programmer: small checked steps in a shell and an editor; only the system prompt steers."""

    name = "swe"
    description = "An autonomous programmer that works in a shell and an editor."
    system_prompt = prompt_file("swe_system")
    next_step_prompt = ""
    available_tools = ToolCollection(Bash, StrReplaceEditor, Terminate)
    max_steps = 20
