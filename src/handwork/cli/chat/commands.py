"""The commands of a chat: what each is called, and what it does."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol

from handwork.cli.chat import reports
from handwork.cli.chat.allowed import show_or_forget
from handwork.cli.chat.conversation import Conversation
from handwork.cli.lines import Screen
from handwork.errors import ConfigError
from handwork.tool.wording import counted

LEAVING = frozenset({"/quit", "/exit", "/q", "quit", "exit", "q"})
_COMMAND = re.compile(r"/([A-Za-z?][\w-]*)(?:\s+(.*))?\Z", re.DOTALL)
_HELP = """\
{commands}

  @path        put a file, a picture or a folder's names into the message
  !command     run it in the session's shell; the agent reads what came of it
"""
_KEYS = """\
  Enter        send; Alt-Enter, Ctrl-J or \\ at the end begin a new line
  Esc          stop the work; what you type meanwhile is read at the next step
  Tab          complete · Ctrl-R search · Ctrl-V paste a picture · Ctrl-D leave"""
_KEYS_OF_LINES = """\
  Enter        send; \\ at the end begins a new line
  Ctrl-C       stop the work · Ctrl-D leave"""


class Prompt(Protocol):
    """Where the human types."""

    has_keys: bool
    """It reads keys while the work goes on, and nothing stays of what was typed; else the terminal takes lines and shows them."""

    @property
    def screen(self) -> Screen: ...

    def say(self, hint: str) -> None:
        """Say something for a moment."""

    def restore(self, text: str) -> None:
        """Put a text back where it can be edited."""

    def refresh(self) -> None:
        """Show what is known now."""


class Room(Protocol):
    """What the commands act on."""

    prompt: Prompt
    screen: Screen
    conversation: Conversation

    async def renew(self) -> None: ...
    async def compact(self, focus: str) -> None: ...
    async def attach(self, path: str) -> None: ...
    def leave(self) -> None: ...


@dataclass(frozen=True)
class Command:
    """`anytime` is what may also be done while the agent works; `stoppable` what Esc may end in its middle."""

    usage: str
    meaning: str
    do: Callable[[Room, str], Coroutine[Any, Any, None]]
    anytime: bool = False
    stoppable: bool = False


async def _help(room: Room, _: str) -> None:
    rows = [f"  {command.usage:<11}  {command.meaning}" for command in COMMANDS.values()]
    if count := len(room.conversation.servers.prompts):
        rows.append(f"  {'/server:…':<11}  {counted(count, 'prompt')} of MCP servers; Tab completes them")
    keys = _KEYS if room.prompt.has_keys else _KEYS_OF_LINES
    room.screen.line(_HELP.format(commands="\n".join(rows)) + keys)


async def _model(room: Room, wanted: str) -> None:
    if not wanted:
        room.screen.line(f"The model is {room.conversation.llm.name}. To use another: /model provider:model", "dim")
        return
    name = await room.conversation.switch(wanted)
    at = f" at {host}" if (host := room.conversation.host) else ""
    room.screen.line(f"From now on: {name}{at}. The conversation is kept.", "dim")


async def _new(room: Room, _: str) -> None:
    await room.renew()
    room.screen.line("A new conversation. The old one is kept: handwork sessions list", "dim")


async def _cost(room: Room, _: str) -> None:
    reports.cost(room.screen, room.conversation.costs)


async def _context(room: Room, _: str) -> None:
    reports.context(room.screen, room.conversation)


async def _tools(room: Room, _: str) -> None:
    reports.tools(room.screen, room.conversation.agent)


async def _mcp(room: Room, _: str) -> None:
    await room.conversation.servers.show(room.screen)


async def _plan(room: Room, _: str) -> None:
    reports.plan(room.screen, room.conversation.plan)


async def _allowed(room: Room, wanted: str) -> None:
    await show_or_forget(room.screen, room.conversation.session, wanted)


async def _undo(room: Room, _: str) -> None:
    reports.undone(room.screen, await room.conversation.undo())


async def _compact(room: Room, focus: str) -> None:
    await room.compact(focus)


async def _image(room: Room, path: str) -> None:
    await room.attach(path)


async def _quit(room: Room, _: str) -> None:
    room.leave()


COMMANDS: Mapping[str, Command] = {
    "help": Command("/help", "what can be done here", _help, anytime=True),
    "model": Command("/model P:M", "use another model from now on", _model, stoppable=True),
    "new": Command("/new", "begin a new conversation", _new),
    "cost": Command("/cost", "tokens and dollars so far, by model", _cost, anytime=True),
    "context": Command("/context", "what fills the model's window", _context, anytime=True),
    "tools": Command("/tools", "what the agent can do", _tools, anytime=True),
    "mcp": Command("/mcp", "the MCP servers and how they are", _mcp, anytime=True),
    "plan": Command("/plan", "the agent's plan", _plan, anytime=True),
    "allowed": Command("/allowed", "what you allowed for this session; forget N takes it back", _allowed, anytime=True),
    "undo": Command("/undo", "take back the last step's changes of files", _undo),
    "compact": Command("/compact", "make room: a summary takes the conversation's place", _compact, stoppable=True),
    "image": Command("/image PATH", "put a picture into the next message", _image),
    "quit": Command("/quit", "leave (also exit, q, Ctrl-D)", _quit, anytime=True),
}


def parse(text: str) -> tuple[Command, str] | None:
    """The command that a text is, with what follows it; None for any other text. Raises ConfigError for an unknown one."""
    found = _COMMAND.match(text.strip())
    if found is None:
        return None
    name = {"?": "help", "exit": "quit", "q": "quit"}.get(found[1].lower(), found[1].lower())
    if name in COMMANDS:
        return COMMANDS[name], (found[2] or "").strip()
    begun = [known for known in COMMANDS if known.startswith(name)]
    if len(begun) == 1 and len(name) > 1:
        return COMMANDS[begun[0]], (found[2] or "").strip()
    near = get_close_matches(name, COMMANDS, 1, 0.5)
    hint = f"did you mean /{near[0]}?" if near else "/help lists them"
    raise ConfigError(f"There is no command /{found[1][:60]}", hint=hint)
