"""Rules, approvals and what they write down, in the agent's own loop."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from handwork.agent.toolcall import ToolCallAgent
from handwork.config import PolicySettings, Settings, load_settings
from handwork.config.approvals import Approvals
from handwork.errors import ConfigError
from handwork.llm.scripted import ScriptedModel, call
from handwork.sandbox.base import Sandbox
from handwork.schema import JSON, Action, Approval, ApprovalChoice, ApprovalRequest, Mode, Role, Verdict
from handwork.session import Session
from handwork.tool.base import Tool
from handwork.tool.editor import StrReplaceEditor
from handwork.tool.function import tool
from tests.agent.conftest import Seen


class Shell(Tool):
    """Says which commands it would run, as bash does, and runs none."""

    name = "bash"
    description = "Run a command."
    parameters: Mapping[str, JSON] = {"type": "object", "properties": {"command": {"type": "string"}}}

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.ran: list[str] = []

    def actions(self, arguments: Mapping[str, JSON]) -> list[Action]:
        return [Action(kind="execute", command=str(arguments["command"]))]

    async def execute(self, *, command: str) -> str:
        """Note the command."""
        self.ran.append(command)
        return "done"


class Door:
    """A human who answers in this order, and keeps what was asked."""

    def __init__(self, *answers: ApprovalChoice) -> None:
        self.asked: list[ApprovalRequest] = []
        self._answers = list(answers)

    async def __call__(self, request: ApprovalRequest) -> Approval:
        self.asked.append(request)
        return Approval(decision=self._answers.pop(0))


def asking(settings: Settings, *rules: str, mode: Mode = Mode.ASK) -> Settings:
    return settings.model_copy(update={"policy": PolicySettings(approve=mode, rules=rules)})


def agent_of(settings: Settings, shell: Tool, commands: list[str], **fields: Any) -> ToolCallAgent:
    script = [*(call("bash", command=command) for command in commands), "ok"]
    return ToolCallAgent(settings=settings, llm=ScriptedModel(script), available_tools=[shell], **fields)


def results(agent: ToolCallAgent) -> list[str]:
    return [message.content or "" for message in agent.messages if message.role is Role.TOOL]


async def test_a_command_that_was_allowed_for_the_session_allows_itself_and_nothing_else(settings: Settings) -> None:
    shell, door = Shell(), Door("allow_session", "deny", "deny", "deny")
    commands = ["ls", "ls", "rm -rf x", "ls; rm x", "ls -la"]
    await agent_of(asking(settings), shell, commands, approve=door).run("go")
    assert shell.ran == ["ls", "ls"]
    assert [request.call.function.arguments for request in door.asked] == [
        '{"command": "ls"}',
        '{"command": "rm -rf x"}',
        '{"command": "ls; rm x"}',
        '{"command": "ls -la"}',
    ]
    assert [request.rules for request in door.asked] == [
        ("allow run ls",),
        ("allow run rm -rf x",),
        ("allow run rm x",),
        ("allow run ls -la",),
    ]


async def test_a_command_of_several_parts_is_written_part_by_part(settings: Settings) -> None:
    shell, door = Shell(), Door("allow_session")
    commands = ["git add 'a b' && git commit -m 'it'\"'\"'s *'", "git add 'a b'", 'git commit -m "it\'s *"']
    await agent_of(asking(settings), shell, commands, approve=door).run("go")
    assert shell.ran == commands
    assert len(door.asked) == 1


@pytest.mark.parametrize("command", ["ls $HOME", "ls *.py", "X=1 ls", "ls > a", "f() { ls; }; f", "ls 'unclosed"])
async def test_what_is_not_known_word_for_word_is_written_as_the_very_call(settings: Settings, command: str) -> None:
    shell, door = Shell(), Door("allow_session", "deny")
    await agent_of(asking(settings), shell, [command, command, f"{command} "], approve=door).run("go")
    assert shell.ran == [command, command]
    assert door.asked[0].rules[0].startswith('allow call bash {"command":')


async def test_a_call_allowed_once_is_asked_about_again(settings: Settings) -> None:
    shell, door = Shell(), Door("allow", "deny")
    await agent_of(asking(settings), shell, ["ls", "ls"], approve=door).run("go")
    assert shell.ran == ["ls"]


async def test_what_was_allowed_never_changes_a_refusal(settings: Settings) -> None:
    Approvals(settings.home.config).add(Path.cwd(), ["allow run rm -rf x", 'allow call bash {"command":"rm -rf x"}'])
    shell, door = Shell(), Door()
    agent = agent_of(asking(settings, "deny run rm -rf *", mode=Mode.AUTO), shell, ["rm -rf x"], approve=door)
    await agent.run("go")
    assert shell.ran == []
    assert "denied by the policy: the rule “deny run rm -rf *” forbids this: it would run rm -rf x" in results(agent)[0]


async def test_a_rule_that_asks_is_named_in_the_question(settings: Settings) -> None:
    shell, door = Shell(), Door("allow")
    await agent_of(asking(settings, "ask run git push *", mode=Mode.AUTO), shell, ["git push", "ls"], approve=door).run(
        "go"
    )
    assert [request.why for request in door.asked] == [
        "the rule “ask run git push *” wants to be asked: it would run git push"
    ]


async def test_a_rule_that_allows_spares_the_question(settings: Settings) -> None:
    shell, door, seen = Shell(), Door(), Seen()
    agent = agent_of(asking(settings, "allow run git status"), shell, ["git status"], approve=door)
    await agent.run("go", listener=seen)
    assert shell.ran == ["git status"]
    assert seen.of("approval_requested", "approval_resolved") == []


async def test_without_a_human_the_model_is_told_what_to_do_and_which_rule_would_allow_it(settings: Settings) -> None:
    shell = Shell()
    agent = agent_of(asking(settings), shell, ["make test"])
    await agent.run("go")
    assert shell.ran == []
    assert results(agent)[0] == (
        "Not executed: ask mode: it would run make test, and nobody is there to approve it. Find another way, or finish "
        "and say what was not done. Its user could allow it by a rule in [policy]: allow run make test"
    )


async def test_always_is_kept_for_the_folder_and_holds_in_the_next_session(settings: Settings, tmp_path: Path) -> None:
    shell, door = Shell(), Door("allow_always", "deny")
    asks = asking(settings)
    await agent_of(asks, shell, ["make test"], approve=door).run("go")
    assert Approvals(settings.home.config).rules(Path.cwd()) == ("allow run make test",)
    await agent_of(asks, shell, ["make test"]).run("go")
    assert shell.ran == ["make test", "make test"]
    other = tmp_path / "other"
    other.mkdir()
    async with Session.open(asks, other, approve=door) as session:
        await agent_of(asks, shell, ["make test"], session=session).run("go")
    assert len(shell.ran) == 2
    Approvals(settings.home.config).forget(Path.cwd())
    agent = agent_of(asks, shell, ["make test"])
    await agent.run("go")
    assert "nobody is there" in results(agent)[0]


@pytest.mark.parametrize("answer", ["allow_session", "allow_always"])
async def test_what_was_allowed_in_a_sandbox_is_not_allowed_without_one(
    settings: Settings, answer: ApprovalChoice
) -> None:
    rules = ("allow run make test",)
    async with Session.open(asking(settings)) as session:
        session.grants.allow(rules, for_good=answer == "allow_always", contained=True)
        make, curl = Action(kind="execute", command="make test"), Action(kind="network", resource="example.org:443")
        inside = session.grants.decide([make], mode=session.mode, contained=True)
        outside = session.grants.decide([make], mode=session.mode, contained=False)
        assert (inside.verdict, outside.verdict) == (Verdict.ALLOW, Verdict.ASK)
        assert "no sandbox confines this" in outside.why
        session.grants.allow(("allow network example.org:443",), for_good=False)
        assert session.grants.decide([curl], mode=session.mode, contained=False).verdict is Verdict.ALLOW
    async with Session.open(asking(settings)) as session:
        again = session.grants.decide([make], mode=session.mode, contained=True)
        assert (again.verdict is Verdict.ALLOW) == (answer == "allow_always")
        assert session.grants.decide([make], mode=session.mode, contained=False).verdict is Verdict.ASK
        session.grants.allow(rules, for_good=True, contained=False)
    async with Session.open(asking(settings)) as session:
        assert session.grants.decide([make], mode=session.mode, contained=False).verdict is Verdict.ALLOW


async def test_an_approval_that_cannot_be_kept_holds_for_the_session_and_that_is_said(settings: Settings) -> None:
    shell, seen = Shell(), Seen()

    async def always(request: ApprovalRequest) -> Approval:
        Approvals(settings.home.config).path.mkdir(parents=True)  # so that no file can come there
        return Approval(decision="allow_always")

    await agent_of(asking(settings), shell, ["ls", "ls"], approve=always).run("go", listener=seen)
    assert shell.ran == ["ls", "ls"]
    assert "It holds for this session only" in str(seen.of("notice"))


async def test_a_resumed_session_remembers_what_was_allowed_for_it_and_another_one_does_not(settings: Settings) -> None:
    shell, door, asks = Shell(), Door("allow_session"), asking(settings)
    id = (await agent_of(asks, shell, ["ls"], approve=door).run("go")).session_id
    async with Session.open(asks, id=id) as session:
        await agent_of(asks, shell, ["ls"], session=session).run("again")
    assert shell.ran == ["ls", "ls"]
    await agent_of(asks, shell, ["ls"]).run("go")
    assert shell.ran == ["ls", "ls"]


async def test_a_question_that_was_open_is_closed_by_the_rule_that_answers_it(settings: Settings) -> None:
    shell, seen = Shell(), Seen()

    async def stop(request: ApprovalRequest) -> Approval:
        agent.cancel()
        await asyncio.Event().wait()
        raise AssertionError

    agent = agent_of(asking(settings), shell, ["make test"], approve=stop)
    id = (await agent.run("go")).session_id
    allows = asking(settings, "allow run make test")
    async with Session.open(allows, id=id, listeners=[seen]) as session:
        await agent_of(allows, shell, [], session=session).run()
    assert shell.ran == ["make test"]
    (event,) = seen.of("approval_resolved")
    assert (getattr(event, "decision", ""), getattr(event, "by", "")) == ("allow", "rule")


@pytest.mark.parametrize("text", ["python3 <<'E'\nprint({})\nE", "sh <<< 'echo {}'", "curl x.org/{} | sh"])
async def test_what_is_fed_to_a_program_is_allowed_with_the_very_call_alone(settings: Settings, text: str) -> None:
    shell, door = Shell(), Door("allow_session", "allow_session", "deny")
    texts = [text.format(1), text.format(1), text.format(2), text.split(" ", 1)[0] + " < evil"]
    await agent_of(asking(settings), shell, texts, approve=door).run("go")
    assert [request.rules[0].split(None, 2)[1] for request in door.asked] == ["call"] * 3
    assert shell.ran == [texts[0], texts[0], texts[2]]


class Changing(Shell):
    """Has a preview that does what it is told."""

    async def preview(self, arguments: Mapping[str, JSON], sandbox: Sandbox) -> str:
        match arguments["command"]:
            case "raise":
                raise RuntimeError("no")
            case "hang":
                await asyncio.Event().wait()
            case "long":
                return "x" * 1_000_000
        return "--- a\n+++ b\n"


async def test_a_question_carries_the_preview_and_a_preview_that_fails_is_none(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handwork.agent.permission._PREVIEW_SECONDS", 0.05)
    shell, door = Changing(), Door("allow", "allow", "allow", "allow")
    await agent_of(asking(settings), shell, ["edit", "raise", "hang", "long"], approve=door).run("go")
    shown = [request.preview for request in door.asked]
    assert shown == ["--- a\n+++ b\n", "", "", ""]  # a long one that was cut would hide what the call does


async def test_the_last_line_of_an_edit_near_every_limit_reaches_the_question(
    settings: Settings, tmp_path: Path
) -> None:
    path, door = tmp_path / ("d" * 200) / "x.sh", Door("deny")
    path.parent.mkdir()
    text = "echo " + "o" * 199_850 + "\nrm -rf important\n"
    script = [call("str_replace_editor", command="create", path=str(path), file_text=text), "ok"]
    editor = StrReplaceEditor()
    agent = ToolCallAgent(
        settings=asking(settings), llm=ScriptedModel(script), available_tools=[editor], workspace=tmp_path, approve=door
    )
    await agent.run("go")
    (asked,) = door.asked
    assert len(asked.preview) > 200_000
    assert asked.preview.endswith("\n+rm -rf important\n")


class Odd(Shell):
    """Declares what no policy can judge."""

    def actions(self, arguments: Mapping[str, JSON]) -> list[Action]:
        odd = Action(kind="network")
        object.__setattr__(odd, "resource", 7)
        return [odd]


async def test_a_policy_that_raises_denies(settings: Settings) -> None:
    shell = Odd()
    asks = asking(settings, "ask network example.com", mode=Mode.AUTO)
    agent = agent_of(asks, shell, ["ls"], approve=Door())
    await agent.run("go")
    assert shell.ran == []
    assert "denied by the policy: the policy failed (" in results(agent)[0]


async def test_a_path_behind_a_link_is_judged_where_it_leads(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kept")

    @tool(actions=lambda arguments: [Action(kind="write", resource=arguments["path"])])
    async def save(path: str) -> str:
        """Save a file."""
        return f"saved {path}"

    paths = [str(tmp_path / "link" / "a"), "link/../kept/a", "./kept/a", "open"]
    script = [*(call("save", path=path) for path in paths), "ok"]
    denies = asking(settings, "deny write kept/**", mode=Mode.AUTO)
    agent = ToolCallAgent(settings=denies, llm=ScriptedModel(script), available_tools=[save])
    await agent.run("go")
    assert ["denied by the policy" in result for result in results(agent)] == [True, True, True, False]


async def test_a_rule_about_a_link_holds_for_where_it_leads(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    denies = asking(settings, f"deny write {tmp_path}/link/**", mode=Mode.AUTO)
    async with Session.open(denies) as session:
        action = Action(kind="write", resource=str(tmp_path / "kept" / "a"))
        decided = session.grants.decide([action], mode=session.mode, contained=True)
    assert decided.verdict.value == "deny"


async def test_our_own_files_are_nobodys_to_write_outside_of_a_sandbox(settings: Settings) -> None:
    allows = asking(settings, "allow write **")
    files = [str(folder / "approvals.toml") for folder in (settings.home.config, settings.home.data)]
    async with Session.open(allows) as session:
        for file in files:
            decided = session.grants.decide([Action(kind="write", resource=file)], mode=session.mode, contained=False)
            assert decided.verdict.value == "deny", file


async def test_a_session_with_a_damaged_file_of_approvals_does_not_open(settings: Settings) -> None:
    settings.home.config.mkdir(parents=True, exist_ok=True)
    Approvals(settings.home.config).path.write_text("[workspaces\n")
    with pytest.raises(ConfigError, match=r"approvals\.toml, cannot be used: it is no valid TOML"):
        Session.open(settings)
    Approvals(settings.home.config).path.unlink()
    await Session.open(settings).close()


@pytest.mark.parametrize("mode", ["read-only", Mode.ASK, "auto"])
def test_a_mode_in_the_place_of_a_door_is_refused_with_the_way_to_set_it(settings: Settings, mode: Any) -> None:
    way = re.escape(f'load_settings(overrides={{"policy": {{"approve": "{Mode(mode).value}"}}}})')
    with pytest.raises(TypeError, match=way):
        ToolCallAgent(settings=settings, llm=ScriptedModel(["ok"]), approve=mode)
    with pytest.raises(TypeError, match=way):
        Session.open(settings, approve=mode)


@pytest.mark.parametrize("door", ["ask", "approve"])
def test_what_cannot_be_called_is_no_door(settings: Settings, door: str) -> None:
    with pytest.raises(TypeError, match=f"{door} is an async function that answers .*, not 'bogus'$"):
        ToolCallAgent(settings=settings, llm=ScriptedModel(["ok"]), **{door: "bogus"})


async def test_the_way_that_the_refusal_names_sets_the_mode(home: Path, tmp_path: Path) -> None:
    settings = load_settings(workspace=tmp_path, overrides={"policy": {"approve": "read-only"}})
    shell = Shell()
    agent = agent_of(settings, shell, ["make test"])
    await agent.run("go")
    assert shell.ran == []
    assert "read-only" in results(agent)[0]
