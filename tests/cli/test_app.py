"""The top of the command line: streams that are missing, and errors that nobody foresaw."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import textwrap
from pathlib import Path

from tests.cli.command import COMMAND, handwork


async def test_a_closed_standard_error_never_ends_up_on_standard_output(workspace: Path) -> None:
    line = f"{shlex.join(COMMAND)} run hello --json 2>&- <&-"
    process = await asyncio.create_subprocess_shell(line, cwd=workspace, stdout=asyncio.subprocess.PIPE)
    out, _ = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, out) == (2, b"")


async def test_a_bug_is_shown_whole_without_acting_on_the_terminal(workspace: Path) -> None:
    program = """
        import sys
        from handwork.cli.app import app, run_command_line

        @app.command()
        def broken() -> None:
            raise ValueError("\\x1b[2Jout of the blue")

        sys.exit(run_command_line(["broken"]))
    """
    ended = await handwork(cwd=workspace, program=(sys.executable, "-c", textwrap.dedent(program)))
    assert ended.code == 1
    assert "this is a bug in Handwork" in ended.err
    assert "Traceback" in ended.err
    assert "ValueError: out of the blue" in ended.err
    assert "\x1b" not in ended.err


async def test_the_version_needs_nothing_heavy(workspace: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-X", "importtime", "-m", "handwork", "--version",
        env=dict(os.environ), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, imported = await asyncio.wait_for(process.communicate(), 30)
    assert out.startswith(b"handwork ")
    for heavy in (b"typer", b"rich", b"pydantic", b"asyncio", b"importlib.metadata", b"handwork.cli"):
        assert heavy not in imported


async def test_a_missing_model_needs_neither_the_network_stack_nor_the_drawing_library(workspace: Path) -> None:
    ended = await handwork("run", "hello", cwd=workspace, PYTHONPROFILEIMPORTTIME="1")
    assert ended.code == 2
    for heavy in ("aiohttp", "rich.console", "jupyter_client", "genai_prices", "xllamacpp"):
        assert f" {heavy}\n" not in ended.err
