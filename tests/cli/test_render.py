"""What each event looks like, on a screen that is only a text."""

from __future__ import annotations

import io
import json

import pytest

from handwork import events as ev
from handwork.cli.calls import arguments_of, exactly, observation_of
from handwork.cli.columns import width
from handwork.cli.lines import Screen
from handwork.cli.render import Renderer
from handwork.schema import Action, ErrorInfo, Function, Limits, Message, Plan, PlanStepStatus, ToolCall


class Live(Screen):
    """A screen that somebody watches; keeps what the spinner said."""

    live = True

    def __init__(self, stream: io.StringIO) -> None:
        super().__init__(stream)
        self.waits: list[str] = []

    def wait(self, what: str) -> None:
        self.waits.append(what)


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def live(stream: io.StringIO) -> Renderer:
    return Renderer(Live(stream))


@pytest.fixture
def log(stream: io.StringIO) -> Renderer:
    return Renderer(Screen(stream))


def call(id: str = "1", name: str = "bash", **arguments: object) -> ToolCall:
    return ToolCall(id=id, function=Function(name=name, arguments=json.dumps(arguments)))


def said(text: str, *calls: ToolCall) -> ev.MessageAdded:
    return ev.MessageAdded(message=Message.from_tool_calls(calls, text))


def sent() -> ev.RequestSent:
    return ev.RequestSent(model="m", key="", tail="", tools="")


def test_a_plan_is_drawn_as_its_marked_steps(log: Renderer, stream: io.StringIO) -> None:
    plan = Plan("p", "Bake\x1b[2J").with_steps(["mix\nwell", "eat"]).with_step(0, PlanStepStatus.COMPLETED)
    details = {"plan": plan.to_dict(), "active": "p"}
    log(ev.ToolCallFinished(call_id="1", observation="Plan: Bake …", details=details))
    assert stream.getvalue().rstrip() == "  ⎿ Bake – 1/2 done\n    [✓] mix well\n    [ ] eat"


def test_a_long_plan_is_folded(log: Renderer, stream: io.StringIO) -> None:
    details = {"plan": Plan("p", "Bake").with_steps([f"step {number}" for number in range(100)]).to_dict()}
    log(ev.ToolCallFinished(call_id="1", observation="", details=details))
    assert len(stream.getvalue().splitlines()) < 20


def test_streamed_text_is_drawn_once(live: Renderer, stream: io.StringIO) -> None:
    for event in (sent(), ev.TextDelta(text="\nHel"), ev.TextDelta(text="lo"), said("\nHello")):
        live(event)
    live.close("Hello")
    assert stream.getvalue() == "Hello\n"
    assert live.last_text == "Hello"


def test_text_that_was_not_streamed_is_drawn_when_it_is_stored(live: Renderer, stream: io.StringIO) -> None:
    live(sent())
    live(said("Hello"))
    assert stream.getvalue() == "Hello\n"


def test_the_same_text_in_the_next_reply_is_drawn_again(live: Renderer, stream: io.StringIO) -> None:
    for _ in range(2):
        for event in (sent(), ev.TextDelta(text="Again"), said("Again")):
            live(event)
    assert stream.getvalue() == "Again\nAgain\n"


def test_a_discarded_reply_is_struck_and_the_new_one_drawn_whole(live: Renderer, stream: io.StringIO) -> None:
    error = ErrorInfo(type="BrokenStreamError", message="cut")
    for event in (
        sent(),
        ev.TextDelta(text="Hal"),
        ev.ToolArgsDelta(index=0, call_id="1", name="bash", text="{"),
        ev.ReplyDiscarded(),
        ev.RetryScheduled(error=error, wait=2, attempt=1),
        ev.TextDelta(text="Hello"),
        said("Hello"),
    ):
        live(event)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "Hal"
    assert "void" in lines[1]
    assert lines[2] == "↻ cut – trying again in 2 s"
    assert lines[3:] == ["Hello"]


def test_a_discarded_reply_of_which_nothing_was_shown_needs_no_word(live: Renderer, stream: io.StringIO) -> None:
    live(sent())
    live(ev.ReplyDiscarded())
    assert stream.getvalue() == ""


def test_a_log_gets_whole_texts_and_no_deltas_and_not_the_answer(log: Renderer, stream: io.StringIO) -> None:
    for event in (sent(), ev.TextDelta(text="I lo"), ev.ThinkingDelta(text="hm"), said("I look.", call(command="ls"))):
        log(event)
    log(said("The answer"))
    assert stream.getvalue() == "I look.\n"
    log.close("The answer")
    assert stream.getvalue() == "I look.\n"


def test_a_text_that_is_not_the_answer_stays_in_the_log(log: Renderer, stream: io.StringIO) -> None:
    log(said("Only a part"))
    log.close("Something else")
    assert stream.getvalue() == "Only a part\n"


def test_a_short_call_stands_on_one_line_and_code_below_its_name(log: Renderer, stream: io.StringIO) -> None:
    log(ev.ToolCallStarted(call=call(command="ls -la"), actions=()))
    code = "\n".join(f"print({number})" for number in range(20))
    log(ev.ToolCallStarted(call=call("2", "python_execute", code=code), actions=()))
    lines = stream.getvalue().splitlines()
    assert lines[:3] == ["▸ bash  ls -la", "▸ python_execute", "  │ print(0)"]
    assert lines[-1] == "  │ … 12 more lines"


def test_a_result_is_folded_unwrapped_and_cleaned(log: Renderer, stream: io.StringIO) -> None:
    text = "Observed output of cmd `bash` executed:\n" + "\n".join(f"\x1b[31m{number}" for number in range(9))
    log(ev.ToolCallFinished(call_id="1", observation=text, seconds=2.5))
    log(ev.ToolCallFinished(call_id="2", observation="Error: no such tool", is_error=True))
    assert stream.getvalue().splitlines() == [
        "  ⎿ 0", "    1", "    2", "    3", "    4", "    … 4 more lines  (2.5 s)", "  ✗ Error: no such tool",
    ]  # fmt: skip


def test_a_traceback_shows_what_was_raised(log: Renderer, stream: io.StringIO) -> None:
    text = (
        "Error: \n"
        + "\n".join(f'  File "{number}.py"' for number in range(9))
        + "\nZeroDivisionError: division by zero"
    )
    log(ev.ToolCallFinished(call_id="1", observation=text, is_error=True))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "  ✗ … 6 earlier lines"
    assert lines[-1] == "    ZeroDivisionError: division by zero"


def test_a_call_that_a_killed_run_left_open_names_nothing_in_the_next_run(log: Renderer, stream: io.StringIO) -> None:
    log(ev.ToolCallStarted(call=call("1", "one"), actions=()))
    log(ev.RunStarted(request=None, model="m", workspace="w", limits=Limits()))
    log(ev.ToolCallStarted(call=call("2", "two"), actions=()))
    log(ev.ToolCallFinished(call_id="2", observation="b"))
    assert stream.getvalue().splitlines()[-1] == "  ⎿ b"


def test_results_of_calls_that_run_together_are_named(log: Renderer, stream: io.StringIO) -> None:
    for id, name in (("1", "one"), ("2", "two")):
        log(ev.ToolCallStarted(call=call(id, name), actions=()))
    log(ev.ToolCallFinished(call_id="2", observation="b"))
    log(ev.ToolCallFinished(call_id="1", observation="a"))
    assert stream.getvalue().splitlines() == ["▸ one", "▸ two", "  ⎿ two: b", "  ⎿ a"]


def test_notices_denials_and_fitting_are_visible(log: Renderer, stream: io.StringIO) -> None:
    log(ev.Notice(level="warning", text="first\nsecond\x1b[2J"))
    log(ev.ApprovalResolved(id="1", decision="deny", by="human", reason="no"))
    log(ev.ApprovalResolved(id="1", decision="allow", by="mode"))
    log(ev.ContextFitted(before=2000, after=1000, how="dropped"))
    assert stream.getvalue().splitlines() == [
        "! first", "  second", "  ✗ denied (human): no", "· context shortened from 2,000 to 1,000 tokens: dropped",
    ]  # fmt: skip


def test_the_verdict_about_a_host_names_it_wherever_it_stands(log: Renderer, stream: io.StringIO) -> None:
    action = (Action(kind="network", resource="x.org:443"),)
    log(ev.ApprovalRequested(id="n", call=call("n", "network", host="x.org"), action=action, why="it is not listed"))
    log(ev.ToolCallStarted(call=call("2", "two"), actions=()))
    log(ev.ApprovalResolved(id="n", decision="allow_session", by="human"))
    log(ev.ApprovalResolved(id="m", decision="deny", by="human"))
    assert stream.getvalue().splitlines()[1:] == [
        "  ✓ allowed x.org:443 for this session (human)",
        "  ✗ denied (human)",
    ]


def test_nothing_in_any_event_acts_on_the_terminal(live: Renderer, stream: io.StringIO) -> None:
    evil = "\x1b]0;t\x07\x1b[2Ja\x9b2Jb\u202ec\rd"
    for event in (
        ev.RunStarted(request=evil, model=evil, workspace=evil, limits=Limits()),
        ev.TextDelta(text=evil[:3]),
        ev.TextDelta(text=evil[3:]),
        ev.ThinkingDelta(text=evil),
        ev.ToolArgsDelta(index=0, call_id=evil, name=evil, text=evil),
        said(evil),
        ev.ToolCallStarted(call=call(evil, evil, **{evil: evil, "b": [evil]}), actions=()),
        ev.ToolCallStarted(call=ToolCall(id="2", function=Function(name=evil, arguments=evil)), actions=()),
        ev.ToolOutputDelta(call_id=evil, text=evil),
        ev.ToolCallFinished(call_id=evil, observation=evil),
        ev.RetryScheduled(error=ErrorInfo(type="E", message=evil), wait=1, attempt=1),
        ev.Notice(level="error", text=evil),
        ev.ApprovalResolved(id="1", decision="deny", by="human", reason=evil),
        ev.ContextFitted(before=2, after=1, how=evil),
    ):
        live(event)
    live.close()
    shown = stream.getvalue()
    assert not set(shown) & set("\x1b\x07\x9b\u202e\r")


def test_what_comes_while_a_question_is_asked_is_drawn_after_it(stream: io.StringIO) -> None:
    screen = Screen(stream)
    with screen.asking() as write:
        screen.line("later")
        write("question\n", "")
    assert stream.getvalue() == "question\nlater\n"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ('{"command": "ls"}', "ls"),
        ("", ""),
        ("{}", ""),
        ('{"a": 1, "b": "x\\ny", "c": [true]}', "a=1, b=x y, c=[true]"),
        ("{broken", "{broken"),
        ('["no", "object"]', '["no", "object"]'),
        ('{"command": "sleep 50", "timeout": 2}', "sleep 50  (timeout=2)"),
        ('{"command": "ls", "timeout": null, "job": null}', "ls"),
        ('{"command": "python3", "pty": true}', "python3  (pty=true)"),
        ('{"code": "a = 1\\n\\tb", "timeout": 5}', "(timeout=5)\na = 1\n\tb"),
        ('{"command": "view", "path": "a"}', "command=view, path=a"),
        ('{"job": "list"}', "job=list"),
        ('{"job": "t9", "stop": true}', "job=t9, stop=true"),
        ('{"restart": true}', "restart=true"),
        ('{"query": "needle"}', "needle"),
    ],
)
def test_arguments_in_short(raw: str, shown: str) -> None:
    assert arguments_of(raw) == shown


def test_a_commands_escapes_are_shown_as_the_question_shows_them() -> None:
    command = "echo safe\x1b[31mRED\rrm -rf x\u202e"
    shown = arguments_of(json.dumps({"command": command}))
    assert shown == "echo safe⟨U+001B⟩[31mRED⟨U+000D⟩rm -rf x⟨U+202E⟩"
    assert shown == exactly(call("bash", command=command))


def test_an_approval_leaves_nothing_out() -> None:
    code = "print(1)\n" * 50 + "evil()"
    assert exactly(call(code=code)) == code
    assert exactly(call(path="a\u200b", deep={"x": "\x1b"})) == 'path: a⟨U+200B⟩\ndeep: {\n    "x": "\\u001b"\n  }'
    assert exactly(ToolCall(id="1", function=Function(name="x", arguments="{\u202e"))) == "{⟨U+202E⟩"


def test_only_our_own_frame_is_taken_off_a_result() -> None:
    assert observation_of("Observed output of cmd `bash` executed:\nx") == "x"
    assert observation_of("Cmd `bash` completed with no output") == ""
    assert observation_of("See: Observed output of cmd `bash` executed:\nx").startswith("See")


def test_an_edit_is_drawn_as_what_it_changed(log: Renderer, stream: io.StringIO) -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n-two\n+t\x1b[2Jwo\n three\n"
    log(ev.ToolCallStarted(call=call(name="str_replace_editor"), actions=()))
    log(ev.ToolCallFinished(call_id="1", observation="The file …", details={"path": "/w/x", "diff": diff}))
    assert stream.getvalue().endswith("  ⎿ /w/x\n    +1 −1 lines\n     one\n    -two\n    +two\n     three\n")


def test_a_large_edit_is_folded(log: Renderer, stream: io.StringIO) -> None:
    diff = "@@ -0,0 +1,500 @@\n" + "".join(f"+line {number} {'x' * 200}\n" for number in range(500))
    log(ev.ToolCallFinished(call_id="1", observation="", details={"path": "/w/x", "diff": diff}))
    rows = stream.getvalue().splitlines()
    assert len(rows) < 30
    assert max(map(len, rows)) <= 100
    assert rows[1:3] == ["    +500 −0 lines", f"    +line 0 {'x' * 86}…"]
    assert "480 more rows" in rows[-1]


def test_what_was_asked_on_the_same_screen_is_not_drawn_again(stream: io.StringIO) -> None:
    renderer = Renderer(Screen(stream), asks=True)
    renderer(ev.ApprovalRequested(id="1", call=call(command="ls"), action=(), why="it would run a program"))
    renderer(ev.ToolCallStarted(call=call(command="ls"), actions=()))
    renderer(ev.ToolCallFinished(call_id="1", observation="a"))
    renderer(ev.ToolCallStarted(call=call("2", "ask_human", inquire="Which?"), actions=()))
    renderer(ev.ToolCallFinished(call_id="2", observation="this"))
    assert stream.getvalue() == "  ⎿ a\n"


def test_a_line_that_was_cut_still_has_room_for_its_time(log: Renderer, stream: io.StringIO) -> None:
    for id, text in (("1", "x" * 300), ("2", "漢" * 300)):
        log(ev.ToolCallFinished(call_id=id, observation=text, seconds=5))
    rows = stream.getvalue().splitlines()
    assert all(row.endswith("…  (5.0 s)") for row in rows)
    assert max(map(width, rows)) <= 100


@pytest.mark.parametrize("length", range(40, 56))
def test_a_call_with_wide_letters_stands_on_one_line_only_where_it_fits(
    log: Renderer, stream: io.StringIO, length: int
) -> None:
    log(ev.ToolCallStarted(call=call(command="漢" * length), actions=()))
    assert max(map(width, stream.getvalue().splitlines())) <= 100


def test_a_failure_that_comes_again_is_said_in_short(log: Renderer, stream: io.StringIO) -> None:
    error = ErrorInfo(type="ModelConnectionError", message="openai:m: nothing answers at http://127.0.0.1:9")
    log(sent())
    for attempt, wait in ((1, 0.3), (2, 1.6)):
        log(ev.RetryScheduled(error=error, wait=wait, attempt=attempt))
    log(sent())
    log(ev.RetryScheduled(error=error, wait=0.3, attempt=1))
    first, again, anew = stream.getvalue().splitlines()
    assert first == anew == "↻ openai:m: nothing answers at http://127.0.0.1:9 – trying again"
    assert again == "↻ Failed again – trying again in 2 s (attempt 3)"
