"""The tiny-model policy, with an engine that plays: what the host does, and what it leaves to the model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from handwork.errors import ModelTimeoutError
from handwork.llm.asking import reply_of
from handwork.llm.base import Model
from handwork.llm.local.tiny import NOTICE, Completion, TinyModel
from handwork.llm.local.tiny_prompts import APPEND, COMPUTE, READ, TALK, WRITE, a_script, a_span
from handwork.schema import (
    JSON,
    Function,
    Message,
    ModelNotice,
    Reply,
    Request,
    StreamItem,
    ToolCall,
    ToolChoice,
)

ALL = ("bash", "python_execute", "str_replace_editor", "terminate")
LISTING = "Observed output of cmd `str_replace_editor` executed:\n"


def tools(*names: str) -> tuple[dict[str, JSON], ...]:
    return tuple({"type": "function", "function": {"name": name, "parameters": {}}} for name in names)


@dataclass
class PlayedEngine:
    """Routes every part to `label` (or by a function of the prompt) and fills with `lines`, in order."""

    label: str | Callable[[str], str] = WRITE
    second: str = TALK
    lines: list[str] = field(default_factory=list)
    error: Exception | None = None
    asked: list[tuple[str, str]] = field(default_factory=list)
    closed: bool = False

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
    ) -> Completion:
        self.asked.append((prompt, grammar))
        if self.error is not None:
            raise self.error
        if probs:
            label = self.label if isinstance(self.label, str) else self.label(prompt)
            return Completion(label, {label: -0.1, self.second: -1.0}, 10, 1)
        return Completion(self.lines.pop(0), {}, 10, 2)

    async def aclose(self) -> None:
        self.closed = True


def listing(*paths: str) -> str:
    shown = "\n".join(f"./{path}" for path in paths) or "(nothing)"
    return f"{LISTING}Here's the files and directories up to 2 levels deep in ., excluding hidden items:\n{shown}"


class Conversation:
    """A history that grows by the model's replies and given results."""

    def __init__(self, engine: PlayedEngine, task: str, offered: Sequence[str] = ALL) -> None:
        self.model = TinyModel(engine, name="local:played")
        self.messages = [Message.user_message(task)]
        self.offered = tools(*offered)

    async def next(self) -> Reply:
        reply = await reply_of(self.model, Request(messages=self.messages, tools=self.offered, system="a long prompt"))
        self.messages.append(reply.to_message())
        return reply

    def result(self, text: str, *, is_error: bool = False) -> None:
        call = self.messages[-1].tool_calls[0]
        self.messages.append(Message.tool_message(text, call.function.name, call.id, is_error=is_error))

    async def look(self, *paths: str) -> None:
        """The first call, which lists the workspace, and its result."""
        assert called(await self.next()) == ("str_replace_editor", {"command": "view", "path": "."})
        self.result(listing(*paths))


def called(reply: Reply) -> tuple[str, dict[str, JSON]]:
    (call,) = reply.tool_calls
    return call.function.name, json.loads(call.function.arguments)


async def test_a_file_task_looks_writes_and_ends() -> None:
    talk = Conversation(PlayedEngine(WRITE, lines=[" hello world\n"]), "Create notes.txt with the content hello world")
    await talk.look()
    assert called(await talk.next()) == (
        "str_replace_editor",
        {"command": "create", "path": "notes.txt", "file_text": "hello world\n"},
    )
    talk.result("Observed output of cmd `str_replace_editor` executed:\nFile created successfully at: notes.txt")
    last = await talk.next()
    assert called(last) == ("terminate", {"status": "success"})
    assert last.content == "Wrote notes.txt."


async def test_a_person_is_told_once_that_the_model_is_demo_sized() -> None:
    talk = Conversation(PlayedEngine(READ), "Read a.txt")
    first = [item async for item in talk.model.stream(Request(messages=talk.messages, tools=talk.offered))]
    assert isinstance(first[0], ModelNotice)
    assert first[0].text == NOTICE
    assert isinstance(first[-1], Reply)
    await talk.look("a.txt")
    later = [item async for item in talk.model.stream(Request(messages=talk.messages, tools=talk.offered))]
    assert not [item for item in later if isinstance(item, ModelNotice)]


async def test_arguments_come_as_a_delta_that_equals_the_call() -> None:
    talk = Conversation(PlayedEngine(COMPUTE, lines=[" 2 + 3\n"]), "What is 2 + 3?")
    items: list[StreamItem] = [
        item async for item in talk.model.stream(Request(messages=talk.messages, tools=talk.offered))
    ]
    reply = items[-1]
    assert isinstance(reply, Reply)
    assert [getattr(item, "text", "") for item in items[1:-1]] == [reply.tool_calls[0].function.arguments]
    assert reply.finish_reason == "tool_calls"
    assert reply.usage is not None
    assert reply.usage.input == 40
    assert reply.cost_usd == 0.0


async def test_a_sum_is_computed_by_python_not_by_the_host() -> None:
    talk = Conversation(PlayedEngine(COMPUTE, lines=[" 17 * 23\n"]), "Calculate 17*23")
    assert called(await talk.next()) == ("python_execute", {"code": "print(17 * 23)"})
    talk.result("Observed output of cmd `python_execute` executed:\n391\n")
    assert (await talk.next()).content == "391"


async def test_parts_are_done_in_order_and_counted_from_the_history() -> None:
    engine = PlayedEngine(
        lambda prompt: READ if prompt.endswith("Task: read a.txt\nTool:") else WRITE, lines=[" hello\n"]
    )
    talk = Conversation(engine, "Write hello to a.txt, then read a.txt")
    await talk.look()
    assert called(await talk.next())[1]["command"] == "create"
    talk.result("created")
    assert called(await talk.next()) == ("str_replace_editor", {"command": "view", "path": "a.txt"})
    talk.result("     1\thello")
    assert (await talk.next()).content == "Wrote a.txt.\n1\thello"


async def test_a_new_request_of_the_human_starts_anew() -> None:
    talk = Conversation(PlayedEngine(COMPUTE, lines=[" 1 + 1\n", " 2 + 2\n"]), "What is 1 + 1?")
    await talk.next()
    talk.result("2")
    await talk.next()
    talk.result("The interaction has been completed")
    talk.messages.append(Message.user_message("What is 2 + 2?"))
    assert called(await talk.next())[1]["code"] == "print(2 + 2)"


async def test_a_note_of_an_image_is_no_new_request() -> None:
    talk = Conversation(PlayedEngine(COMPUTE, lines=[" 1 + 1\n"]), "What is 1 + 1?")
    await talk.next()
    talk.result("2")
    talk.messages.append(Message.user_message("Image returned by python_execute:"))
    assert called(await talk.next())[0] == "terminate"


async def test_call_ids_are_unique_in_a_history() -> None:
    talk = Conversation(PlayedEngine(WRITE, lines=[" a\n", " b\n"]), "Write a to a.txt, then write b to b.txt")
    await talk.look()
    for _ in range(3):
        await talk.next()
        talk.result("ok")
    ids = [call.id for message in talk.messages for call in message.tool_calls]
    assert len(ids) == len(set(ids)) == 4


@pytest.mark.parametrize(
    ("text", "is_error"),
    [
        ("Error: ⚠️ Tool 'python_execute' encountered a problem: boom", True),
        (
            "Observed output of cmd `python_execute` executed:\nTraceback (most recent call last)\n  …\nZeroDivisionError: x",
            False,
        ),
        ("Outcome unknown: the process died", False),
        ("Not executed: the user denied this call", False),
        ("Observed output of cmd `python_execute` executed:\nError: timed out", False),
    ],
)
async def test_after_an_error_the_run_ends_as_failed_and_is_not_tried_again(text: str, is_error: bool) -> None:
    talk = Conversation(PlayedEngine(COMPUTE, lines=[" 1 / 0\n"]), "Divide 1 by 0, then say 1 + 1")
    await talk.next()
    talk.result(text, is_error=is_error)
    last = await talk.next()
    assert called(last) == ("terminate", {"status": "failure"})
    assert last.content is not None
    assert last.content.startswith("It failed: ")


@pytest.mark.parametrize("second", [APPEND, READ])
async def test_an_existing_file_is_never_overwritten(second: str) -> None:
    talk = Conversation(PlayedEngine(WRITE, second=second), "Write news to memo.txt")
    await talk.look("memo.txt")
    last = await talk.next()
    assert called(last) == ("terminate", {"status": "failure"})
    assert "memo.txt exists already" in str(last.content)


async def test_a_missing_file_is_not_read() -> None:
    talk = Conversation(PlayedEngine(READ), "Read gone.txt")
    await talk.look("other.txt", "folder/gone.txt")
    assert "There is no file gone.txt" in str((await talk.next()).content)


@pytest.mark.parametrize("path", ["deep/er/x.txt", "/etc/x.txt"])
async def test_what_the_listing_cannot_show_is_not_taken_for_missing(path: str) -> None:
    talk = Conversation(PlayedEngine(READ), f"Read {path}")
    await talk.look()
    assert called(await talk.next())[1]["path"] == path


async def test_a_line_is_added_by_code_that_refuses_a_missing_file() -> None:
    talk = Conversation(PlayedEngine(APPEND, lines=[" 'buy milk'\n"]), "Append the line 'buy milk' to list.txt")
    await talk.look("list.txt")
    name, arguments = called(await talk.next())
    assert name == "python_execute"
    assert "'r+'" in arguments["code"]
    assert "+ 'buy milk' +" in arguments["code"]


async def test_a_line_for_a_missing_file_makes_a_new_file() -> None:
    talk = Conversation(PlayedEngine(APPEND, lines=[" milk\n"]), "Add milk to list.txt")
    await talk.look()
    assert called(await talk.next())[1]["command"] == "create"


async def test_of_several_files_the_model_chooses() -> None:
    engine = PlayedEngine(READ, lines=[" b.txt\n"])
    talk = Conversation(engine, "Compare a.txt with b.txt")
    await talk.look("a.txt", "b.txt")
    assert called(await talk.next())[1]["path"] == "b.txt"
    assert '"a.txt" | "b.txt"' in engine.asked[-1][1]


async def test_without_the_tool_it_needs_it_says_so() -> None:
    talk = Conversation(PlayedEngine(COMPUTE, lines=[" 1 + 1\n"]), "What is 1 + 1?", ["terminate"])
    last = await talk.next()
    assert "python_execute" in str(last.content)
    assert called(last) == ("terminate", {"status": "failure"})


async def test_without_python_the_shell_computes() -> None:
    talk = Conversation(PlayedEngine(COMPUTE, lines=[" 1 + 1\n"]), "What is 1 + 1?", ["bash", "terminate"])
    assert called(await talk.next()) == ("bash", {"command": "python3 -c 'print(1 + 1)'"})


async def test_without_terminate_it_ends_with_text() -> None:
    talk = Conversation(PlayedEngine(COMPUTE, lines=[" 1 + 1\n"]), "What is 1 + 1?", ["python_execute"])
    await talk.next()
    talk.result("2")
    last = await talk.next()
    assert last.content == "2"
    assert not last.tool_calls


@pytest.mark.parametrize("offered", [(), ALL])
async def test_without_tools_or_with_tool_choice_none_it_answers_in_text(offered: tuple[str, ...]) -> None:
    model: Model = TinyModel(PlayedEngine(lines=[" Paris. "]), name="local:played")
    request = Request(
        messages=[Message.user_message("Capital of France?")], tools=tools(*offered), tool_choice=ToolChoice.NONE
    )
    reply = await reply_of(model, request)
    assert reply.content == "Paris."
    assert not reply.tool_calls


async def test_a_question_is_answered_in_text() -> None:
    talk = Conversation(PlayedEngine(TALK, lines=["It is blue."]), "Why is the sky blue?")
    assert (await talk.next()).content == "It is blue."


@pytest.mark.parametrize("task", ["", "a 1, then b 1, then c 1, then d 1, then e 1", "1 " + "word " * 300])
async def test_what_is_too_much_for_it_is_refused(task: str) -> None:
    last = await Conversation(PlayedEngine(COMPUTE), task).next()
    assert called(last) == ("terminate", {"status": "failure"})


async def test_arguments_that_were_cut_off_are_not_executed() -> None:
    talk = Conversation(PlayedEngine(COMPUTE, lines=[" 1 + "]), "What is 1 + 1?")
    assert called(await talk.next()) == ("terminate", {"status": "failure"})


async def test_an_error_of_the_engine_is_raised_as_it_is() -> None:
    talk = Conversation(PlayedEngine(error=ModelTimeoutError("slow")), "What is 1 + 1?")
    with pytest.raises(ModelTimeoutError):
        await talk.next()


async def test_a_history_that_another_model_began_is_gone_on_with() -> None:
    talk = Conversation(PlayedEngine(), "What is 1 + 1?")
    call = ToolCall(id="call_1", function=Function(name="bash", arguments="not json"))
    talk.messages += [Message.from_tool_calls([call]), Message.tool_message("2", "bash", "call_1")]
    assert called(await talk.next()) == ("terminate", {"status": "success"})


async def test_closing_it_frees_the_engine() -> None:
    engine = PlayedEngine()
    await TinyModel(engine, name="local:played").aclose()
    assert engine.closed


def test_a_span_never_holds_the_name_of_the_file() -> None:
    grammar = a_span("put a.txt b into a.txt", "a.txt")
    assert "txt" not in grammar


def test_what_stands_in_quotes_or_braces_is_one_word_of_a_grammar() -> None:
    assert r'("\"a b\"" | "a b")' in a_span('Save "a b" in x.txt', "x.txt")
    assert r'"{\"a\": 1}"' in a_span('Create x.json with {"a": 1}', "x.json")


def test_a_script_offers_sums_only_where_there_are_numbers() -> None:
    assert "number" not in a_script("x.py prints hi", "x.py", [])
    assert 'number ::= "4"' in a_script("x.py prints 4", "x.py", ["4"])
