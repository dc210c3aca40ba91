"""Starting with `python -m handwork`: the current folder is the workspace, and nothing in it is code of ours."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

_OURS = {"pydantic", "pydantic_core", "typer", "rich", "click", "aiohttp", "annotated_types", "typing_extensions"}


async def _python(*arguments: str, cwd: Path) -> str:
    program = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await asyncio.wait_for(program.communicate(), 60)
    assert program.returncode == 0, output.decode()
    return output.decode()


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["sessions", "list"]], ids=str)
async def test_no_module_of_a_hostile_workspace_runs(tmp_path: Path, arguments: list[str]) -> None:
    workspace = tmp_path / "hostile"
    workspace.mkdir()
    (tmp_path / "loaded.py").write_text("import sys; print(*sys.modules)")
    for name in {*sys.stdlib_module_names, *_OURS}:
        (workspace / f"{name}.py").write_text(f"print({name!r})\nraise ImportError('a module of the workspace')\n")
    (workspace / "handwork-6.6.6.dist-info").mkdir()
    # What python needs to come as far as our first line, it takes from there: only `python -P`, or `handwork`, helps.
    for name in (await _python("-m", "loaded", cwd=tmp_path)).split():
        (workspace / f"{name}.py").unlink(missing_ok=True)
    output = await _python("-m", "handwork", *arguments, cwd=workspace)
    assert not {*output.split("\n")} & {*sys.stdlib_module_names, *_OURS}
    assert "6.6.6" not in output
