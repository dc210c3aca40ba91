"""Events are written strictly and read leniently."""

from __future__ import annotations

import json

import pytest

from handwork.events import MessageAdded, RunStarted, ToolCallFinished, ToolCallStarted, UnknownEvent, UsageReported
from handwork.events import read_event as read
from handwork.events import write_event as write
from handwork.schema import Action, Artifact, Function, Image, Limits, Message, Thinking, ToolCall

CALL = ToolCall("c1", Function("bash", '{"command": "ls"}'))
IMAGE = Image(hash="h", media_type="image/png")
EVENTS = [
    RunStarted(request="go", model="m", workspace="w", limits=Limits(max_steps=3)),
    MessageAdded(message=Message.from_tool_calls([CALL], "text")),
    MessageAdded(message=Message(role="user", content="x", images=(IMAGE,), thinking=(Thinking("t", {"sig": 1}),))),
    ToolCallStarted(call=CALL, actions=(Action(kind="write", resource="/a"),)),
    ToolCallFinished(call_id="c1", observation="o", artifacts=(Artifact(path="/a"),), images=(IMAGE,)),
    UsageReported(input=1, cached=0, written=0, output=2, reasoning=0, cost_usd=None),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.type)
def test_what_was_written_is_read_again(event: MessageAdded) -> None:
    assert read(write(event)) == event


def everywhere(value: object) -> object:
    """The same JSON with a field of a later version in every object."""
    if isinstance(value, dict):
        return {**{name: everywhere(item) if name != "opaque" else item for name, item in value.items()}, "later": 1}
    return [everywhere(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.type)
def test_fields_of_a_later_version_are_passed_over_at_any_depth(event: MessageAdded) -> None:
    assert read(json.dumps(everywhere(json.loads(write(event)))).encode()) == event


def test_a_kind_of_a_later_version_is_kept_and_written_back_unchanged() -> None:
    raw = b'{"type":"hologram","v":9,"seq":4,"shape":{"x":1}}'
    event = read(raw)
    assert isinstance(event, UnknownEvent)
    assert (event.type, event.seq, write(event)) == ("hologram", 4, raw)


def test_an_event_from_before_a_field_came_is_read_with_its_default() -> None:
    old = json.loads(write(EVENTS[4]))
    del old["ending"], old["images"]
    event = read(json.dumps(old).encode())
    assert isinstance(event, ToolCallFinished)
    assert (event.ending, event.images) == ("done", ())
