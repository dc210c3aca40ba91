"""`handwork demo`: a real task on the embedded model in a real sandbox, with an effect that the host checks."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from handwork.cli.lines import Screen
from handwork.cli.models import fetch_with_progress
from handwork.cli.options import RunOptions
from handwork.cli.program import program
from handwork.cli.run import TaskRun
from handwork.cli.screen import open_screen
from handwork.config import LLMSettings, Settings, load_settings
from handwork.config.extras import missing_extra
from handwork.errors import SandboxMissing, SandboxUnavailable
from handwork.llm.local.catalog import SMOLLM2_135M
from handwork.llm.local.openmp import load_openmp
from handwork.llm.local.tiny_demo import DEMO_CONTENT, DEMO_FILE, DEMO_TASK
from handwork.sandbox.open import probe
from handwork.sandbox.unavailable import install_command

ATTEMPTS = 3
_NOT_THE_MODEL = {2, 130}
"""Exit codes that another attempt would not change: something is set up wrong, or the user has stopped it."""
_INTRODUCTION = f"""Handwork demo: a demo-sized model (135M parameters) in this process, no key and no account.

Task: {DEMO_TASK}
Model: {SMOLLM2_135M.describe()}; once only.
The agent works in a new, empty folder, in a sandbox without network. Afterwards this program itself looks whether the file
is there and holds what was asked for. So small a model may fail: it gets up to {ATTEMPTS} attempts.
"""
_NEXT = """
Next, with a model for real work (see `{program} model list` and `{program} run --help`):
  {program} setup
      to paste a key or to choose a server, once; from then on: {program} "your task"
  {program} "your task" --model openai:MODEL
      with the key in OPENAI_API_KEY
  {program} "your task" --model MODEL --base-url URL
      any OpenAI-compatible server, such as Ollama's
"""


def run_demo() -> int:
    """Run the demo; returns the exit code: 0 the effect is there, 2 something is missing here, 4 the model did not manage."""
    user = load_settings()
    settings = Settings(
        llm={"default": LLMSettings(model=f"local:{SMOLLM2_135M.name}")},
        home=user.home,
        environ=user.environ,
        store=user.store,
    )
    screen = open_screen(sys.stdout, spins=False)
    screen.line(_INTRODUCTION)
    if not _is_ready(settings, screen):
        return 2
    fetch_with_progress(SMOLLM2_135M.name, settings, sys.stdout)
    return asyncio.run(try_task(settings, screen))


async def try_task(settings: Settings, screen: Screen) -> int:
    """Let the agent try, each time in a new folder, until the effect is there; the exit code."""
    for attempt in range(1, ATTEMPTS + 1):
        screen.line(f"\nAttempt {attempt} of {ATTEMPTS}", "bold")
        workspace = Path(tempfile.mkdtemp(prefix="handwork-demo-"))
        code = await TaskRun(RunOptions(workspace=workspace), settings, DEMO_TASK).run()
        problem = _problem(workspace)
        if code == 0 and not problem:
            screen.line(f"\nChecked: {workspace / DEMO_FILE} is there and holds {DEMO_CONTENT!r}.", "bold green")
            screen.line(_NEXT.format(program=program()))
            return 0
        shutil.rmtree(workspace, ignore_errors=True)
        if code in _NOT_THE_MODEL:
            return code
        why = problem or f"the file is there, but the agent did not end as finished (exit code {code})"
        screen.line(f"\nChecked: {why}.", "yellow")
    screen.line(f"\nThe demo-sized model did not manage the task in {ATTEMPTS} attempts.", "bold red")
    screen.line(_NEXT.format(program=program()))
    return 4


def _is_ready(settings: Settings, screen: Screen) -> bool:
    """Whether the runtime is installed and the sandbox really runs: found out before anything is downloaded."""
    if find_spec("xllamacpp") is None:
        raise missing_extra("local", "The demo's model needs the package xllamacpp, which is not installed")
    load_openmp()
    try:
        asyncio.run(probe(settings.sandbox))
    except SandboxMissing:
        screen.line(
            f"The sandbox's program, bubblewrap (bwrap), is not installed. Install it and try again:\n  {install_command()}"
        )
        return False
    except SandboxUnavailable as error:
        screen.line(f"The sandbox does not run on this machine, so nothing was downloaded.\n{error}")
        return False
    return True


def _problem(workspace: Path) -> str:
    """What is wrong with the effect; '' if the asked file is there with the asked content."""
    file = workspace / DEMO_FILE
    if file.is_symlink() or not file.is_file():
        return f"there is no file {DEMO_FILE}"
    found = file.read_bytes()[:1000].decode(errors="replace").strip()
    return "" if found == DEMO_CONTENT else f"{DEMO_FILE} holds {found!r} instead of {DEMO_CONTENT!r}"
