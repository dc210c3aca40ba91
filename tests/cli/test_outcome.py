"""How to go on: what is printed works as it stands."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import Ended, handwork
from tests.support.fault_server import error_answer
from tests.support.strict_server import StrictServer, tool
from typer.core import TyperGroup
from typer.main import get_command

from handwork.cli.app import app
from handwork.cli.options import RunOptions
from handwork.cli.outcome import way_on
from handwork.cli.program import program
from handwork.config import load_settings
from handwork.errors import AuthenticationError, BudgetExceeded, RateLimitError
from handwork.schema import Budget, Mode, RunResult, Status
from handwork.session import Session

pytestmark = pytest.mark.whole


def hint_of(ended: Ended) -> list[str]:
    """The words of the printed command, behind the program's own name."""
    line = ended.err.splitlines()[-1]
    words = shlex.split(line[line.index(program()) :])
    return words[words.index("run") :]


@pytest.mark.parametrize(
    ("options", "script"),
    [
        (("--max-steps", "1"), [tool("bash", command="echo a")]),
        ((), [error_answer(401, "bad key")]),
        ((), [tool("ask_human", inquire="Which colour?")]),
        (("--agent", "swe", "--timeout", "1"), [tool("bash", command="sleep 30")]),
    ],
)
async def test_the_printed_command_goes_on_as_it_stands(
    workspace: Path, tmp_path: Path, options: tuple[str, ...], script: list[Any]
) -> None:
    (tmp_path / "mine.toml").write_text("[limits]\nmax_steps = 9\n")
    given = ("--workspace", str(workspace), "--config", "mine.toml", *options)
    async with StrictServer([*script, "Went on."]) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        first = await handwork("run", "Do it.", *given, *model, cwd=tmp_path)
        again = await handwork(*hint_of(first), cwd=tmp_path)
    assert (again.code, again.out) == (0, "Went on.\n")
    assert str(workspace) in again.err.splitlines()[0]
    assert ("swe" in hint_of(first)) is ("swe" in options)


async def test_what_the_configuration_says_itself_is_not_repeated(workspace: Path, home: Path) -> None:
    async with StrictServer([error_answer(401, "bad key")]) as server:
        (home / "config.toml").write_text(f'[llm]\nmodel = "openai:any"\nbase_url = "{server.url}"\n')
        ended = await handwork(
            "run", "Do it.", "--session", "mine", "--model", "openai:any", "--sandbox", "auto", cwd=workspace
        )
    assert hint_of(ended) == ["run", "--session", "mine"]
    assert " When that is mended: " in ended.err.splitlines()[-1]


def test_every_option_that_makes_a_run_another_one_is_repeated_and_quoted(tmp_path: Path) -> None:
    config = tmp_path / "my own.toml"
    config.write_text('[llm]\nmodel = "openai:any"\n[policy]\napprove = "ask"\n')
    options = RunOptions(
        config=config, model="openai:any", base_url="http://x/a b", sandbox="host", approve=Mode.ASK, net=True,
        workspace=tmp_path, max_steps=3,
    )  # fmt: skip
    assert options.again() == {
        "--config": f"'{config}'", "--base-url": "'http://x/a b'", "--sandbox": "host", "--net": "",
    }  # fmt: skip
    assert RunOptions(workspace=tmp_path).again() == {}


def result(status: Status, error: Exception | None = None) -> RunResult:
    return RunResult(status=status, session_id="mine", error=error, detail=str(error or ""))


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (
            result(Status.BUDGET, BudgetExceeded("Spent", option="--max-total-tokens 200")),
            'Spent\n→ To go on: {} run --session mine --model openai:m --max-total-tokens 200 "go on"',
        ),
        (
            result(Status.BUDGET, BudgetExceeded("Spent")),
            'Spent\n→ To go on: {} run --session mine --model openai:m "go on"',
        ),
        (
            result(Status.TOKEN_LIMIT),
            '→ To go on, best with a --model of a larger context window: {} run --session mine --model openai:m "go on"',
        ),
        (
            result(Status.ERROR, AuthenticationError("No", hint="Mend it")),
            "No\n→ Mend it. When that is mended: {} run --session mine --model openai:m",
        ),
        (
            result(Status.ERROR, RateLimitError("No", hint="Wait")),
            "No\n→ Wait. To go on: {} run --session mine --model openai:m",
        ),
        (result(Status.FINISHED), ""),
    ],
)
def test_the_hint_says_what_must_be_different_the_next_time(ended: RunResult, expected: str) -> None:
    assert way_on(ended, {"--model": "openai:m"}) == expected.format(program())


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://me:pass-word@gw:8080/v1", "http://gw:8080/v1"),
        ("'http://me:p ss@w@gw/v1?a=b'", "'http://gw/v1?a=b'"),
        ("'https://gw/v1?api-key=pass-word&api-version=1'", "'https://gw/v1?api-version=1'"),
        ("'https://gw/v1?sig=pass-word'", "https://gw/v1"),
    ],
)
def test_a_password_in_the_base_url_is_not_printed_and_the_hint_says_so(url: str, shown: str) -> None:
    ended = way_on(result(Status.MAX_STEPS), {"--base-url": url})
    where = "→ To go on (the secret in the base URL is not shown)"
    assert ended == f'{where}: {program()} run --session mine --base-url {shown} "go on"'
    assert way_on(result(Status.MAX_STEPS), {"--base-url": "http://gw/v1@x"}).endswith(' http://gw/v1@x "go on"')


async def test_the_printed_command_after_a_spent_budget_goes_on_with_twice_as_much(workspace: Path) -> None:
    async with StrictServer([tool("bash", command="echo a"), "Went on."]) as server:
        model = ("--base-url", server.url, "--model", "openai:any", "--workspace", str(workspace))
        first = await handwork("run", "Do it.", *model, "--max-total-tokens", "1", cwd=workspace)
        again = await handwork(*hint_of(first), cwd=workspace)
    assert (first.code, again.code, again.out) == (3, 0, "Went on.\n")


@pytest.mark.parametrize(
    ("budget", "cost", "words"),
    [
        (Budget(usd=0.01), 0.0123, ["--budget", "0.0246"]),
        (Budget(usd=0.0), 0.0, ["--budget", "1"]),
        (Budget(usd=200_000.0), 200_000.0, ["--budget", "400000"]),
        (Budget(tokens=0), 0.0, ["--max-total-tokens", "100000"]),
    ],
)
async def test_a_spent_budget_names_an_option_that_the_command_line_takes(
    tmp_path: Path, budget: Budget, cost: float, words: list[str]
) -> None:
    settings = load_settings(environ={"HANDWORK_HOME": str(tmp_path)}, workspace=tmp_path)
    async with Session.open(settings, tmp_path) as session:
        session.budget, session.past.cost = budget, cost
        with pytest.raises(BudgetExceeded) as caught:
            session.check_budget()
    hint = way_on(result(Status.BUDGET, caught.value), {})
    typed = shlex.split(hint.splitlines()[-1].partition(": ")[2])
    typed = typed[typed.index("run") :]
    assert typed[3:5] == words
    command = get_command(app)
    assert isinstance(command, TyperGroup)
    parsed = command.commands["run"].make_context("run", typed[1:])
    assert float(words[1]) in (parsed.params["budget"], parsed.params["max_total_tokens"])


def test_the_program_is_named_as_a_shell_here_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bin = tmp_path / "my env" / "bin"
    bin.mkdir(parents=True)
    script = bin / "handwork"
    script.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(bin))
    assert program() == "handwork"
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", str(bin / "python"))
    monkeypatch.chdir(tmp_path)
    assert program() == "'my env/bin/handwork'"
    monkeypatch.chdir(bin)
    assert program() == "./handwork"
    monkeypatch.chdir("/")
    assert program() == shlex.quote(os.path.relpath(script))
    script.unlink()
    assert program() == f"{shlex.quote(sys.executable)} -m handwork"
