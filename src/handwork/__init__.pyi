from handwork import errors as errors
from handwork import events as events
from handwork.agent.base import BaseAgent as BaseAgent
from handwork.agent.manus import Manus as Manus
from handwork.agent.mcp import MCPAgent as MCPAgent
from handwork.agent.react import ReActAgent as ReActAgent
from handwork.agent.swe import SWEAgent as SWEAgent
from handwork.agent.toolcall import ToolCallAgent as ToolCallAgent
from handwork.config import Home as Home
from handwork.config import LimitsSettings as LimitsSettings
from handwork.config import LLMSettings as LLMSettings
from handwork.config import PolicySettings as PolicySettings
from handwork.config import SandboxSettings as SandboxSettings
from handwork.config import Settings as Settings
from handwork.config import StoreSettings as StoreSettings
from handwork.config import load_settings as load_settings
from handwork.errors import HandworkError as HandworkError
from handwork.errors import TokenLimitExceeded as TokenLimitExceeded
from handwork.errors import ToolError as ToolError
from handwork.llm.base import Model as Model
from handwork.llm.llm import LLM as LLM
from handwork.llm.scripted import ScriptedModel as ScriptedModel
from handwork.mcp.clients import MCPClients as MCPClients
from handwork.mcp.tool import MCPClientTool as MCPClientTool
from handwork.schema import Action as Action
from handwork.schema import AgentState as AgentState
from handwork.schema import Approval as Approval
from handwork.schema import ApprovalRequest as ApprovalRequest
from handwork.schema import Artifact as Artifact
from handwork.schema import Budget as Budget
from handwork.schema import Function as Function
from handwork.schema import Image as Image
from handwork.schema import Memory as Memory
from handwork.schema import Message as Message
from handwork.schema import Mode as Mode
from handwork.schema import Plan as Plan
from handwork.schema import PlanStepStatus as PlanStepStatus
from handwork.schema import Question as Question
from handwork.schema import Reply as Reply
from handwork.schema import Request as Request
from handwork.schema import Role as Role
from handwork.schema import RunResult as RunResult
from handwork.schema import Status as Status
from handwork.schema import ToolCall as ToolCall
from handwork.schema import ToolChoice as ToolChoice
from handwork.schema import ToolResult as ToolResult
from handwork.schema import Usage as Usage
from handwork.session import Session as Session
from handwork.tool.ask_human import AskHuman as AskHuman
from handwork.tool.base import BaseTool as BaseTool
from handwork.tool.base import Tool as Tool
from handwork.tool.base import ToolContext as ToolContext
from handwork.tool.bash import Bash as Bash
from handwork.tool.collection import ToolCollection as ToolCollection
from handwork.tool.create_chat_completion import CreateChatCompletion as CreateChatCompletion
from handwork.tool.editor import StrReplaceEditor as StrReplaceEditor
from handwork.tool.function import tool as tool
from handwork.tool.planning import PlanningTool as PlanningTool
from handwork.tool.python_execute import PythonExecute as PythonExecute
from handwork.tool.search_files import SearchFiles as SearchFiles
from handwork.tool.terminate import Terminate as Terminate

__version__: str
__all__ = [
    "LLM",
    "Action",
    "AgentState",
    "Approval",
    "ApprovalRequest",
    "Artifact",
    "AskHuman",
    "BaseAgent",
    "BaseTool",
    "Bash",
    "Budget",
    "CreateChatCompletion",
    "Function",
    "HandworkError",
    "Home",
    "Image",
    "LLMSettings",
    "LimitsSettings",
    "MCPAgent",
    "MCPClientTool",
    "MCPClients",
    "Manus",
    "Memory",
    "Message",
    "Mode",
    "Model",
    "Plan",
    "PlanStepStatus",
    "PlanningTool",
    "PolicySettings",
    "PythonExecute",
    "Question",
    "ReActAgent",
    "Reply",
    "Request",
    "Role",
    "RunResult",
    "SWEAgent",
    "SandboxSettings",
    "ScriptedModel",
    "SearchFiles",
    "Session",
    "Settings",
    "Status",
    "StoreSettings",
    "StrReplaceEditor",
    "Terminate",
    "TokenLimitExceeded",
    "Tool",
    "ToolCall",
    "ToolCallAgent",
    "ToolChoice",
    "ToolCollection",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "Usage",
    "errors",
    "events",
    "load_settings",
    "tool",
]
