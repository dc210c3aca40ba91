"""The policy that lets a very small model drive an agent: the host splits and checks, the model chooses tools and words."""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from handwork.llm.local import tiny_prompts as prompts
from handwork.llm.local.tiny_prompts import APPEND, COMPUTE, READ, TALK, WRITE
from handwork.llm.local.tiny_request import (
    MAX_PARTS,
    Progress,
    append_code,
    first_line,
    numbers_in,
    paths_in,
    progress_of,
    split_request,
    unquoted,
    words_in,
)
from handwork.schema import (
    JSON,
    Function,
    ModelNotice,
    Reply,
    Request,
    StreamItem,
    TextDelta,
    ToolArgsDelta,
    ToolCall,
    ToolChoice,
    Usage,
)

NOTICE = (
    "This is a demo-sized model (135 million parameters): the program splits the request and checks facts, the model chooses "
    "tools and words. Expect mistakes, and use a larger model for real work."
)
EDITOR, PYTHON, BASH, TERMINATE = "str_replace_editor", "python_execute", "bash", "terminate"
MAX_WORDS = 200
"""Words and signs that one part may have."""
_LOOK = "look-"
_ANSWER_TOKENS = 160
_PROBS = 200
_FLOOR = -20.0
_FILL_SLOT = {WRITE: 3, APPEND: 4, COMPUTE: 5, READ: 6, TALK: 6}
SLOTS = 7
"""Prompts that an engine should keep apart in its cache, so that the shots are read once."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What an engine wrote: `first` holds the log probabilities of the candidates for the first token."""

    text: str
    first: Mapping[str, float] = field(default_factory=dict)
    prompt_tokens: int = 0
    tokens: int = 0


class Engine(Protocol):
    """Continues a text at temperature 0; see LlamaEngine."""

    async def complete(
        self,
        prompt: str,
        *,
        max_tokens: int,
        grammar: str = "",
        stop: tuple[str, ...] = (),
        probs: int = 0,
        slot: int = 0,
        deadline: float | None = None,
    ) -> Completion: ...

    async def aclose(self) -> None: ...


class _Cannot(Exception):
    """The part cannot be done; the message says why, to the human."""


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    arguments: dict[str, JSON]


class TinyModel:
    """A Model on top of an engine. It keeps nothing between requests: where it stands is read off the history."""

    def __init__(self, engine: Engine, *, name: str) -> None:
        self._engine, self._name = engine, name

    @property
    def name(self) -> str:
        return self._name

    async def stream(self, request: Request) -> AsyncIterator[StreamItem]:
        turn = _Turn(self._engine, request)
        if turn.is_first:
            yield ModelNotice("warning", NOTICE)
        text, call = await turn.answer()
        calls: tuple[ToolCall, ...] = ()
        if text:
            yield TextDelta(text)
        if call is not None:
            id = f"{_LOOK if call is _LOOKING else 'tiny-'}{len(request.messages)}"
            arguments = json.dumps(call.arguments, ensure_ascii=False)
            yield ToolArgsDelta(0, id, call.name, arguments)
            calls = (ToolCall(id=id, function=Function(name=call.name, arguments=arguments)),)
        reason = "tool_calls" if calls else "stop"
        yield Reply(text or None, calls, usage=turn.usage, finish_reason=reason, model=self._name, cost_usd=0.0)

    async def aclose(self) -> None:
        """Free the engine."""
        await self._engine.aclose()


_LOOKING = _Call(EDITOR, {"command": "view", "path": "."})


class _Turn:
    """One request: which part of the task is next, and what the model makes of it."""

    def __init__(self, engine: Engine, request: Request) -> None:
        self._engine, self._deadline = engine, request.deadline
        offered = () if request.tool_choice is ToolChoice.NONE else request.tools
        self._tools = {tool["function"]["name"] for tool in offered}
        self._progress: Progress = progress_of(request.messages, _LOOK)
        self.usage = Usage()

    @property
    def is_first(self) -> bool:
        return not self._progress.calls and not self._progress.looked

    async def answer(self) -> tuple[str, _Call | None]:
        """The text and the call of the reply."""
        task = self._progress.request
        if not self._tools:
            return await self._talk(task), None
        if self._progress.failed:
            return self._end(f"It failed: {first_line(self._progress.last)}", "failure")
        parts = split_request(task)
        done = self._progress.calls
        if parts and done >= len(parts):
            return self._end("\n".join(self._progress.told), "success")
        try:
            if not parts or len(parts) > MAX_PARTS:
                raise _Cannot(f"I take one to {MAX_PARTS} steps at once, this has {len(parts)}.")
            return await self._next(parts[done], len(parts) == 1)
        except _Cannot as error:
            return self._end(str(error), "failure")

    async def _next(self, part: str, alone: bool) -> tuple[str, _Call | None]:
        if len(words_in(part)) > MAX_WORDS:
            raise _Cannot(f"A step of more than {MAX_WORDS} words is too long for this model.")
        paths = paths_in(part) or paths_in(self._progress.request)
        if paths and EDITOR in self._tools and not self._progress.looked:
            return "", _LOOKING
        label = await self._route(part, bool(paths), bool(numbers_in(part)))
        if label == TALK:
            if not alone:
                raise _Cannot(f"I do not know which tool to use for: {part}")
            return await self._talk(part), None
        if label == COMPUTE:
            return "", await self._compute(part)
        path = await self._choose_path(part, label, paths)
        return "", await self._on_file(label, part, path)

    # ---- what the model chooses

    async def _route(self, part: str, has_path: bool, has_number: bool) -> str:
        """The label with the best mean score over the orders; a file needs a name, a computation a number."""
        possible = [
            label for label in prompts.LABELS if (has_number if label == COMPUTE else has_path or label == TALK)
        ]
        scores = dict.fromkeys(possible, 0.0)
        for order in range(prompts.ORDERS):
            prompt = prompts.route_prompt(part, order)
            first = (await self._ask(prompt, max_tokens=1, probs=_PROBS, slot=order)).first
            for label in possible:
                scores[label] += first.get(label, _FLOOR) / prompts.ORDERS
        return max(possible, key=lambda label: scores[label] + prompts.BIAS[label])

    async def _choose_path(self, part: str, label: str, paths: Sequence[str]) -> str:
        if len(paths) == 1:
            return paths[0]
        return await self._fill(prompts.path_prompt(part, label), prompts.one_of(paths), READ)

    async def _fill(self, prompt: str, grammar: str, label: str) -> str:
        """What the model writes under a grammar that ends with the line."""
        done = await self._ask(prompt, max_tokens=2 * MAX_WORDS, grammar=grammar, slot=_FILL_SLOT[label])
        if not done.text.endswith("\n"):
            raise _Cannot("The model did not finish the arguments of its call.")
        return done.text.strip()

    async def _talk(self, task: str) -> str:
        prompt = f"<|im_start|>user\n{task}<|im_end|>\n<|im_start|>assistant\n"
        done = await self._ask(prompt, max_tokens=_ANSWER_TOKENS, stop=("<|im_end|>",), slot=_FILL_SLOT[TALK])
        return done.text.strip() or "I have no answer to that."

    async def _ask(self, prompt: str, **options: Any) -> Completion:
        done = await self._engine.complete(prompt, deadline=self._deadline, **options)
        self.usage += Usage(input=done.prompt_tokens, output=done.tokens)
        return done

    # ---- what becomes of it

    async def _on_file(self, label: str, part: str, path: str) -> _Call:
        """The call for a file, where facts allow it. Adding to a missing file makes a new one; nothing is ever overwritten."""
        exists = self._progress.exists(path)
        if label == WRITE and exists:
            raise _Cannot(f"{path} exists already, and I do not overwrite files.")
        if label == APPEND and exists is False:
            label = WRITE
        if label == READ:
            if exists is False:
                raise _Cannot(f"There is no file {path} in the workspace.")
            return self._call(EDITOR, {"command": "view", "path": path})
        if label == APPEND:
            text = await self._fill(prompts.append_prompt(part, path), prompts.a_span(part, path), APPEND)
            return self._python(append_code(path, unquoted(text)))
        if path.endswith(".py"):
            text = await self._fill(
                prompts.script_prompt(part, path), prompts.a_script(part, path, numbers_in(part)), WRITE
            )
        else:
            text = unquoted(await self._fill(prompts.write_prompt(part, path), prompts.a_span(part, path), WRITE))
        return self._call(EDITOR, {"command": "create", "path": path, "file_text": text + "\n"})

    async def _compute(self, part: str) -> _Call:
        expression = await self._fill(prompts.sum_prompt(part), prompts.a_sum(numbers_in(part)), COMPUTE)
        return self._python(f"print({expression})")

    def _python(self, code: str) -> _Call:
        if PYTHON not in self._tools and BASH in self._tools:
            return _Call(BASH, {"command": shlex.join(("python3", "-c", code))})
        return self._call(PYTHON, {"code": code})

    def _call(self, name: str, arguments: dict[str, JSON]) -> _Call:
        if name not in self._tools:
            raise _Cannot(f"I would need the tool {name}, which this agent does not have.")
        return _Call(name, arguments)

    def _end(self, text: str, status: str) -> tuple[str, _Call | None]:
        return text, _Call(TERMINATE, {"status": status}) if TERMINATE in self._tools else None
