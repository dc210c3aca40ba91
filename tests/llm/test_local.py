"""The local model: what is missing is named, and (slow) the real file works in this process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handwork import Manus
from handwork.config import load_settings
from handwork.errors import ConfigError, ModelError, ModelTimeoutError, TokenLimitExceeded
from handwork.llm.asking import close_model
from handwork.llm.base import Model
from handwork.llm.local.catalog import LOCAL_MODELS
from handwork.llm.local.engine import LlamaEngine, open_local_model
from handwork.llm.local.fetch import fetch_model
from handwork.llm.local.tiny_demo import DEMO_CONTENT, DEMO_FILE, DEMO_TASK
from handwork.llm.local.tiny_prompts import LABELS
from handwork.session import Session

NAME = LOCAL_MODELS[0].name


def put_file(folder: Path, data: bytes = b"not a model") -> None:
    (folder / LOCAL_MODELS[0].file).write_bytes(data)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of the name can be found, whether or not the real one is installed."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "xllamacpp.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


async def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    put_file(tmp_path)
    with pytest.raises(ConfigError, match=r"get it with: .*\[local\]"):
        open_local_model(NAME, tmp_path)


async def test_without_the_file_the_command_that_fetches_it_is_named(tmp_path: Path, package: None) -> None:
    with pytest.raises(ConfigError, match=f"handwork model fetch {NAME}"):
        open_local_model(NAME, tmp_path)


async def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=NAME):
        open_local_model("no-such", tmp_path)


async def test_opening_loads_nothing_and_is_a_model(tmp_path: Path, package: None) -> None:
    put_file(tmp_path)
    model = open_local_model(NAME, tmp_path)
    assert isinstance(model, Model)
    assert model.name == f"local:{NAME}"


async def test_a_damaged_file_never_reaches_llama_cpp(tmp_path: Path) -> None:
    put_file(tmp_path)
    engine = LlamaEngine(tmp_path / LOCAL_MODELS[0].file, LOCAL_MODELS[0])
    with pytest.raises(ConfigError, match="is damaged"):
        await engine.complete("x", max_tokens=1)
    await engine.aclose()


async def test_a_file_that_went_away_is_named(tmp_path: Path) -> None:
    engine = LlamaEngine(tmp_path / "gone.gguf", LOCAL_MODELS[0])
    with pytest.raises(ConfigError, match="is gone"):
        await engine.complete("x", max_tokens=1)
    await engine.aclose()


async def test_closing_what_was_never_loaded_is_fine(tmp_path: Path) -> None:
    engine = LlamaEngine(tmp_path / "x.gguf")
    await engine.aclose()
    await engine.aclose()


# ---- the real thing


def private_sockets(folder: Path) -> list[str] | None:
    """The sockets of a folder that only its owner may enter; None if there is no such folder."""
    if not folder.exists():
        return None
    assert folder.stat().st_mode & 0o777 == 0o700
    return [path.name for path in folder.iterdir() if path.is_socket()]


@pytest.fixture(scope="session")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("xllamacpp")
    folder = tmp_path_factory.mktemp("models")
    asyncio.run(fetch_model(NAME, folder, environ=dict(os.environ)))
    return folder


@pytest.fixture
async def engine(models_dir: Path) -> AsyncIterator[LlamaEngine]:
    engine = LlamaEngine(models_dir / LOCAL_MODELS[0].file, LOCAL_MODELS[0])
    yield engine
    await engine.aclose()


@pytest.mark.slow
async def test_it_continues_text_under_a_grammar(engine: LlamaEngine) -> None:
    done = await engine.complete("The capital of France is", max_tokens=8, grammar='root ::= " Lyon" | " Paris"')
    assert done.text == " Paris"
    assert done.prompt_tokens == 5
    assert done.tokens > 0


@pytest.mark.slow
async def test_every_label_is_one_token_with_a_score(engine: LlamaEngine) -> None:
    shots = "".join(f"Tool:{label}\n" for label in LABELS * 2)
    first = (await engine.complete(f"{shots}Tool:", max_tokens=1, probs=200)).first
    assert set(LABELS) <= set(first)


@pytest.mark.slow
async def test_a_request_that_does_not_fit_is_a_token_limit(engine: LlamaEngine) -> None:
    with pytest.raises(TokenLimitExceeded):
        await engine.complete("hello " * 6000, max_tokens=1)


@pytest.mark.slow
async def test_a_deadline_ends_the_generation_and_the_engine_goes_on(engine: LlamaEngine) -> None:
    await engine.complete("x", max_tokens=1)
    loop = asyncio.get_running_loop()
    with pytest.raises(ModelTimeoutError):
        await engine.complete("Once upon a time", max_tokens=3000, deadline=loop.time() + 0.3)
    assert (await engine.complete("The capital of France is", max_tokens=1)).text == " Paris"


@pytest.mark.slow
async def test_cancelling_stops_the_generation(engine: LlamaEngine) -> None:
    await engine.complete("x", max_tokens=1)
    task = asyncio.create_task(engine.complete("Once upon a time", max_tokens=3000))
    await asyncio.wait({task}, timeout=0.3)
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 5


@pytest.mark.slow
async def test_the_loop_lives_while_it_generates(engine: LlamaEngine) -> None:
    await engine.complete("x", max_tokens=1)
    task = asyncio.create_task(engine.complete("Once upon a time", max_tokens=100))
    turns = 0
    while not task.done():
        await asyncio.wait({task}, timeout=0.01)
        turns += 1
    assert turns > 10


@pytest.mark.slow
async def test_nobody_else_can_reach_its_listener_and_closing_removes_it(engine: LlamaEngine) -> None:
    await engine.complete("x", max_tokens=1)
    folder = Path(engine._folder)
    assert private_sockets(folder) == ["llm.sock"]
    await engine.aclose()
    assert private_sockets(folder) is None
    assert (await engine.complete("The capital of France is", max_tokens=1)).text == " Paris"


@pytest.mark.slow
async def test_a_file_that_is_no_model_is_a_typed_error(tmp_path: Path, models_dir: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"GGUF" + b"\0" * 1000)
    engine = LlamaEngine(tmp_path / "x.gguf")
    with pytest.raises(ModelError, match="cannot load"):
        await engine.complete("x", max_tokens=1)
    await engine.aclose()


@pytest.mark.slow
def test_it_writes_nothing_to_the_terminal_and_lets_the_program_end(models_dir: Path) -> None:
    code = f"""
        import asyncio
        from pathlib import Path
        from handwork.llm.local.engine import LlamaEngine
        async def main():
            engine = LlamaEngine(Path({str(models_dir / LOCAL_MODELS[0].file)!r}))
            await engine.complete("x", max_tokens=2)
        asyncio.run(main())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
async def test_the_demo_task_is_done_by_the_real_model_and_tools(models_dir: Path, tmp_path: Path, home: Path) -> None:
    model = open_local_model(NAME, models_dir)
    settings = load_settings(environ={"HANDWORK_HOME": str(home), "HOME": str(home)})
    async with Session.open(settings, tmp_path) as session:
        result = await Manus(llm=model, session=session, settings=settings).run(DEMO_TASK)
    await close_model(model)
    assert result.status == "finished"
    assert (tmp_path / DEMO_FILE).read_text().strip() == DEMO_CONTENT
