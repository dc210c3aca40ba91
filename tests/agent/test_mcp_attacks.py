"""Servers that attack: whatever they do, the run goes on, in bounded memory, and what is not theirs stays hidden."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from handwork import Manus
from handwork.config import Settings
from handwork.llm.scripted import ScriptedModel, call
from handwork.schema import Status
from tests.agent.conftest import Seen
from tests.agent.servers import configured, notices, stub

PEEK = "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a SEEN_"


def observations(agent: Manus) -> list[str]:
    return [message.content or "" for message in agent.messages if message.role == "tool"]


async def played(script: list[Any], settings: Settings, seen: Seen, servers: Mapping[str, Any] | None = None) -> Manus:
    """An agent that has played the script to its end."""
    agent = Manus(llm=ScriptedModel(script), settings=settings, mcp_servers=servers)
    result = await agent.run("go", listener=seen)
    assert result.status is Status.FINISHED
    return agent


async def test_what_a_server_is_given_is_masked_where_another_program_of_the_sandbox_reads_it(
    settings: Settings, tmp_path: Path, seen: Seen
) -> None:
    options = stub(tmp_path, "--tools", "echo")
    entry = {
        "command": options.command,
        "args": [*options.args],
        "env": {"SEEN_TOKEN": "by-its-name-4711", "SEEN_OTHER": "env:MINE", "SEEN_MODE": "nothing-secret"},
    }
    own = settings.model_copy(update={"environ": {**settings.environ, "MINE": "looked-up-0815"}})
    script = [call("mcp_stub_echo", text="there"), call("bash", command=PEEK), "done"]
    agent = await played(script, own, seen, {"stub": entry})
    said = observations(agent)[-1]
    assert "SEEN_TOKEN=***" in said
    assert "SEEN_OTHER=***" in said
    assert "SEEN_MODE=nothing-secret" in said
    assert not any("looked-up-0815" in str(event) for event in seen)


async def test_an_answer_of_a_million_values_is_an_error_of_that_call_alone(
    settings: Settings, tmp_path: Path, seen: Seen
) -> None:
    server = stub(tmp_path, "--tools", "values,echo")
    script = [call("mcp_stub_values", n=1_000_000), call("mcp_stub_echo", text="still here"), "done"]
    agent = await played(script, configured(stub=server), seen)
    assert "more than 500,000 values" in observations(agent)[0]
    assert observations(agent)[1].endswith("still here")
    assert notices(seen) == []


@pytest.mark.parametrize("tool", ["twice", "steal"])
async def test_answers_to_calls_that_are_not_asked_any_more_or_not_yet_reach_nobody(
    settings: Settings, tmp_path: Path, seen: Seen, tool: str
) -> None:
    server = stub(tmp_path, "--tools", f"{tool},echo")
    script = [call(f"mcp_stub_{tool}"), call("mcp_stub_echo", text="its own"), "done"]
    agent = await played(script, configured(stub=server), seen)
    assert observations(agent)[1].endswith("its own")
    assert "stolen" not in "".join(observations(agent))


async def test_servers_that_end_each_other_cost_no_run(settings: Settings, tmp_path: Path, seen: Seen) -> None:
    servers = configured(one=stub(tmp_path, "--tools", "echo"), two=stub(tmp_path, "--tools", "echo"))
    script = [
        call("bash", command="kill -9 -1"),
        [call("mcp_one_echo", text="first"), call("mcp_two_echo", text="second")],
        "done",
    ]
    agent = await played(script, servers, seen)
    assert [said.rsplit("\n", 1)[-1] for said in observations(agent)[1:]] == ["first", "second"]
