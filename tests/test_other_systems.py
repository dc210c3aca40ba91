"""Systems that are not Linux, and installations that lack a part: said in two lines, never a traceback."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.command import Ended, handwork
from tests.support.strict_server import StrictServer, tool

_DRIVER = Path(__file__).parent / "support" / "other_system.py"
_COMMANDS = (
    "run hello",
    "chat",
    "demo",
    "setup",
    "doctor",
    "model list",
    "sessions list",
    "sessions show x",
    "config show",
)
_ON_MACOS = ("run hello", "demo", "setup", "doctor", "model detect", "sessions list", "config show")


async def _on(system: str, arguments: str, cwd: Path, *blocked: str, **environ: str) -> Ended:
    program = (sys.executable, str(_DRIVER), system, *(f"-{name}" for name in blocked), "--")
    return await handwork(*arguments.split(), cwd=cwd, program=program, **environ)


def _two_lines(said: str) -> bool:
    lines = said.strip().splitlines()
    return len(lines) == 2 and lines[0].startswith("handwork: ") and lines[1].startswith("→ ")


async def test_on_windows_every_command_names_the_way_in_two_lines(tmp_path: Path) -> None:
    ended = await _on("win32", " + ".join(_COMMANDS), tmp_path)
    said = ended.err.split("exit code 2\n")
    assert len(said) == len(_COMMANDS) + 1, ended.err
    assert ended.out == "exit code 2\n" * len(_COMMANDS)
    assert all(_two_lines(each) and "WSL2" in each for each in said[:-1]), ended.err


async def test_on_windows_version_and_help_work(tmp_path: Path) -> None:
    commands = ("--version", "--help", "run --help", "doctor --help", "sessions list --help")
    ended = await _on("win32", " + ".join(commands), tmp_path)
    assert ended.err == "exit code 0\n" * len(commands)
    assert ended.out.count("exit code 0\n") == len(commands)
    assert ended.out.lower().count("usage: handwork") == 4


@pytest.mark.parametrize("command", _ON_MACOS)
async def test_on_macos_nothing_fails_unexplained(command: str, tmp_path: Path) -> None:
    ended = await _on("darwin", command, tmp_path)
    said = ended.out + ended.err
    assert "Traceback" not in said
    assert "bug in Handwork" not in said
    assert "apt-get" not in said
    assert ended.code == 0 or "→" in said or "Linux" in said or "no session" in said
    assert ended.code in (0, 1, 2)


@pytest.mark.parametrize("backend", ["auto", "host"])
async def test_on_macos_doctor_says_what_works_and_what_needs_linux(backend: str, tmp_path: Path, home: Path) -> None:
    (home / "config.toml").write_text(f'[sandbox]\nbackend = "{backend}"\n')
    ended = await _on("darwin", "doctor --json", tmp_path)
    found = {each["id"]: each for each in json.loads(ended.out)["findings"]}
    assert ended.code == 1
    assert "tools need Linux" in found["system"]["text"]
    assert "Linux" in found["sandbox.starts"]["text"]
    assert "virtual machine" in found["sandbox.starts"]["fix"] or "container" in found["sandbox.starts"]["fix"]
    assert "this check broke" not in ended.out


async def test_on_macos_a_task_without_tools_works_and_the_store_keeps_it(tmp_path: Path) -> None:
    async with StrictServer(["It is 42."]) as server:
        ended = await _on("darwin", f"run Question --model openai:any --base-url {server.url}", tmp_path)
    assert (ended.code, ended.out) == (0, "It is 42.\n")
    listed = await _on("darwin", "sessions list", tmp_path)
    assert "Question" in listed.out


async def test_on_macos_a_tool_that_needs_the_sandbox_is_explained(tmp_path: Path) -> None:
    async with StrictServer([tool("bash", command="true"), "done"]) as server:
        ended = await _on("darwin", f"run Task --model openai:any --base-url {server.url}", tmp_path)
    assert ended.code == 2
    assert "Traceback" not in ended.err
    assert "for Linux only" in ended.err
    assert "virtual machine" in ended.err


@pytest.mark.parametrize("module", ["pydantic", "typer", "sqlite3", "fcntl"])
async def test_an_installation_that_lacks_a_part_says_how_to_get_it(module: str, tmp_path: Path) -> None:
    ended = await _on("linux", "sessions list", tmp_path, module)
    assert ended.code == 2
    assert _two_lines(ended.err), ended.err
    assert module in ended.err
    assert "install" in ended.err


async def test_a_part_that_only_a_run_needs_is_told_by_the_run(tmp_path: Path) -> None:
    ended = await _on("linux", "run Task --model openai:any --base-url http://127.0.0.1:9/v1", tmp_path, "aiohttp")
    assert ended.code == 1
    assert "Traceback" not in ended.err
    assert "a package that Handwork needs is missing or broken" in ended.err
    assert "→ install Handwork anew" in ended.err


async def test_an_import_that_fails_by_our_own_mistake_is_still_called_a_bug(tmp_path: Path) -> None:
    ended = await _on("linux", "sessions list", tmp_path, "handwork.cli.sessions")
    assert ended.code == 1
    assert "this is a bug in Handwork" in ended.err


async def test_on_windows_the_library_says_where_it_runs(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import other_system; other_system.become('win32')\n"
        "from handwork import Message, ToolResult\n"
        "try:\n    from handwork import Manus\nexcept ImportError as error:\n    print(error)"
    )
    ended = await handwork(cwd=tmp_path, program=(sys.executable, "-c", code, str(_DRIVER.parent)))
    assert (ended.code, ended.err) == (0, "")
    assert "WSL2" in ended.out
