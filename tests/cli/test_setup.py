"""`handwork setup` at a real terminal: each way to a model, each way out, and what is left behind."""

from __future__ import annotations

import json
import signal
import tomllib
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import handwork
from tests.cli.terminal import Terminal
from tests.support.fault_server import Answer, Fault, FaultServer, Received, error_answer, json_answer, stream_of

pytestmark = pytest.mark.whole

KEY = "sk-proj-" + "a1B2" * 10
OTHER = "sk-proj-" + "c3D4" * 10
MENU = "Which? ("


class Provider(FaultServer):
    """Takes one key, knows some models, and says `ready`."""

    def __init__(self, *models: str, key: str = "") -> None:
        super().__init__(self._answer_to)
        self.models, self.key = models or ("gpt-5.4",), key

    def _answer_to(self, received: Received) -> Answer:
        if self.key and received.headers.get("authorization") != f"Bearer {self.key}":
            return error_answer(401, "Incorrect API key provided", "invalid_api_key")
        if received.method == "GET":
            there = received.path == "/v1/models"
            rows = [{"id": name} for name in self.models]
            return json_answer({"object": "list", "data": rows}) if there else error_answer(404)
        if received.path != "/v1/chat/completions":
            return error_answer(404)
        if received.json["model"] not in self.models:
            return error_answer(404, "The model does not exist", "model_not_found")
        return stream_of("ready")


@pytest.fixture
async def openai() -> AsyncIterator[Provider]:
    async with Provider(key=KEY) as server:
        yield server


async def begin(cwd: Path, *arguments: str, **environ: str) -> Terminal:
    terminal = await Terminal.run(*(arguments or ("setup",)), cwd=cwd, **environ)
    if not arguments:
        await terminal.expect(MENU)
    return terminal


async def say(terminal: Terminal, text: str, then: str) -> None:
    terminal.type(f"{text}\n")
    await terminal.expect(then)


async def pasted(cwd: Path, text: str, then: str, **environ: str) -> Terminal:
    """A setup in which this was pasted as a key."""
    terminal = await begin(cwd, **environ)
    await say(terminal, "1", "Paste the key")
    await say(terminal, text, then)
    return terminal


def leave(terminal: Terminal, typed: str) -> None:
    """Type something, or press Ctrl-C: the terminal of tests sends no signals by itself."""
    if typed:
        terminal.type(typed)
    else:
        terminal.process.send_signal(signal.SIGINT)


def kept(home: Path) -> list[str]:
    return sorted(path.name for path in home.iterdir())


def stored(home: Path) -> dict[str, Any]:
    path = home / "keys.json"
    keys: dict[str, Any] = json.loads(path.read_text())["keys"] if path.exists() else {}
    return keys


def configured(home: Path) -> dict[str, Any]:
    path = home / "setup.toml"
    return tomllib.loads(path.read_text())["llm"] if path.exists() else {}


# ---- a key


async def test_a_newcomer_pastes_a_key_that_is_tried_once_stored_and_used(
    home: Path, workspace: Path, openai: Provider
) -> None:
    environ = {"OPENAI_BASE_URL": openai.url}
    terminal = await pasted(workspace, f'export OPENAI_API_KEY="{KEY}"', "Model (", **environ)
    await say(terminal, "", "Type next:")
    assert await terminal.end() == 0
    assert "A key of OpenAI: sk-proj-…a1B2" in terminal.plain
    assert KEY not in terminal.seen
    assert [request.method for request in openai.requests] == ["POST"]
    assert stored(home)["openai"] == {"key": KEY, "base_url": openai.url, "model": "gpt-5.4"}
    assert (home / "keys.json").stat().st_mode & 0o777 == 0o600
    assert configured(home) == {}
    ended = await handwork("run", "Say it.", cwd=workspace, **environ)
    assert (ended.code, ended.out) == (0, "ready\n")
    assert f"Model: openai:gpt-5.4 at {openai.url} (its key is stored)" in ended.err


async def test_a_key_stored_while_a_variable_moved_its_provider_works_without_it_and_every_place_says_so(
    home: Path, workspace: Path, openai: Provider
) -> None:
    terminal = await pasted(workspace, KEY, "Model (", OPENAI_BASE_URL=openai.url)
    await say(terminal, "", "Ready:")
    assert await terminal.end() == 0
    place = f"openai:gpt-5.4 at {openai.url}"
    ended = await handwork("run", "Say it.", cwd=workspace)
    assert (ended.code, ended.out) == (0, "ready\n")
    assert f"Model: {place} (its key is stored for that address)" in ended.err
    for command in (("model", "list"), ("model", "detect"), ("doctor",)):
        assert place in (await handwork(*command, cwd=workspace)).out, command
    terminal = await begin(workspace)
    terminal.type("q\n")
    await terminal.end()
    assert f"Now: {place}" in terminal.plain


async def test_a_wrong_key_is_said_in_two_lines_and_another_can_be_pasted(
    home: Path, workspace: Path, openai: Provider
) -> None:
    terminal = await pasted(workspace, OTHER, "Model (", OPENAI_BASE_URL=openai.url)
    await say(terminal, "", "What now?")
    assert "✗ openai:gpt-5.4: " in terminal.plain
    assert "\n→ " in terminal.plain
    assert "keep it" not in terminal.plain
    assert stored(home) == {}
    await say(terminal, "2", "other key")
    await say(terminal, KEY, "Type next:")
    assert await terminal.end() == 0
    assert stored(home)["openai"]["key"] == KEY
    assert OTHER not in terminal.seen


async def test_a_wrong_model_is_said_and_another_can_be_named(home: Path, workspace: Path, openai: Provider) -> None:
    terminal = await pasted(workspace, KEY, "Model (", OPENAI_BASE_URL=openai.url)
    await say(terminal, "gpt-nine", "What now?")
    await say(terminal, "3", "Model (")
    await say(terminal, "openai:gpt-5.4", "Type next:")
    assert await terminal.end() == 0
    assert stored(home)["openai"]["model"] == "gpt-5.4"


async def test_a_provider_that_does_not_answer_can_be_tried_again_or_the_key_kept(home: Path, workspace: Path) -> None:
    answers = [error_answer(503), error_answer(503)]
    async with FaultServer(answers) as server:
        terminal = await pasted(workspace, KEY, "Model (", OPENAI_BASE_URL=server.url)
        await say(terminal, "", "What now?")
        await say(terminal, "1", "What now?")
        await say(terminal, "4", "Type next:")
        assert await terminal.end() == 0
        assert len(server.requests) == 2
    assert stored(home)["openai"]["key"] == KEY


async def test_a_key_whose_form_is_shared_is_asked_about(home: Path, workspace: Path) -> None:
    key = "sk-" + "0123456789abcdef" * 2
    async with Provider("deepseek-flash", key=key) as server:
        terminal = await pasted(workspace, key, MENU, DEEPSEEK_BASE_URL=server.url)
        assert "More than one provider" in terminal.plain
        await say(terminal, "1", "Model (Enter takes deepseek-flash)")
        await say(terminal, "", "Type next:")
        assert await terminal.end() == 0
    assert list(stored(home)) == ["deepseek"]


async def test_nonsense_is_refused_kindly_and_asked_again(home: Path, workspace: Path) -> None:
    terminal = await pasted(workspace, "hello", "Paste the key")
    assert "That is no API key: it has only 5 characters" in terminal.plain
    await say(terminal, "what is this all about", "Paste the key")
    await say(terminal, "", MENU)
    terminal.type("q\n")
    assert await terminal.end() == 0
    assert stored(home) == {}


async def test_a_key_that_was_broken_into_lines_is_one(home: Path, workspace: Path, openai: Provider) -> None:
    terminal = await pasted(workspace, f"\n{KEY[:20]}\n{KEY[20:]}\n", "Model (", OPENAI_BASE_URL=openai.url)
    await say(terminal, "", "Type next:")
    assert await terminal.end() == 0
    assert stored(home)["openai"]["key"] == KEY


# ---- leaving


@pytest.mark.parametrize("depth", range(4))
@pytest.mark.parametrize(
    ("typed", "code"), [("q\n", 0), ("\x1b", 0), ("\x04", 0), ("", 130)], ids=["q", "Esc", "Ctrl-D", "Ctrl-C"]
)
async def test_it_can_be_left_at_any_point_with_nothing_half_stored(
    home: Path, workspace: Path, openai: Provider, depth: int, typed: str, code: int
) -> None:
    terminal = await begin(workspace, OPENAI_BASE_URL=openai.url)
    for text, then in (("1", "Paste the key"), (OTHER, "Model ("), ("", "What now?"))[:depth]:
        await say(terminal, text, then)
    leave(terminal, typed)
    assert await terminal.end() == code
    assert "Left; nothing was changed" in terminal.plain
    assert "Traceback" not in terminal.plain
    assert kept(home) == []


async def test_a_key_that_begins_as_esc_does_is_none(workspace: Path) -> None:
    terminal = await begin(workspace)
    terminal.type("\x1b[D")
    await say(terminal, "2", "Install one")
    await terminal.expect(MENU)
    terminal.type("\x1b[D")
    await terminal.expect("^[[D" + "\b \b" * 4)  # and nothing of it is left to be seen
    leave(terminal, "\x1b")
    assert await terminal.end() == 0


async def test_it_can_be_left_while_the_provider_is_silent(home: Path, workspace: Path) -> None:
    async with FaultServer([Answer(before=Fault.SILENCE)]) as server:
        terminal = await pasted(workspace, KEY, "Model (", OPENAI_BASE_URL=server.url)
        terminal.type("\n")
        await server.asked()
        leave(terminal, "")
        assert await terminal.end() == 130
    assert stored(home) == {}
    assert "Traceback" not in terminal.plain


# ---- servers and addresses


async def test_a_running_server_is_offered_with_its_models_and_the_choice_is_kept(home: Path, workspace: Path) -> None:
    async with Provider("qwen3:8b", "llama3.2:1b", "nomic-embed-text") as server:
        environ = {"OLLAMA_BASE_URL": server.url}
        terminal = await begin(workspace, **environ)
        assert "Ollama, which runs at" in terminal.plain
        assert "(3 models)" in terminal.plain
        await say(terminal, "2", "Enter takes qwen3:8b")
        await say(terminal, "llama3.2:1b", "Use ollama:llama3.2:1b from now on?")
        await say(terminal, "", "Type next:")
        assert await terminal.end() == 0
        assert configured(home) == {"model": "ollama:llama3.2:1b"}
        models = list(server.models)
        ended = await handwork("run", "Say it.", "--json", cwd=workspace, **environ)
    assert ended.events[0]["model"] == "ollama:llama3.2:1b"
    assert models


async def test_a_server_without_models_is_explained(workspace: Path) -> None:
    empty = json_answer({"object": "list", "data": []})
    async with FaultServer(lambda _: empty) as server:
        terminal = await begin(workspace, OLLAMA_BASE_URL=server.url)
        await say(terminal, "2", "ollama pull")
        await terminal.expect(MENU)
        terminal.type("\n")
        assert await terminal.end() == 0


async def test_another_address_with_a_key_is_listed_tried_and_used(home: Path, workspace: Path) -> None:
    async with Provider("house-model", key="a-house-made-token") as server:
        terminal = await begin(workspace)
        await say(terminal, "3", "Base URL")
        await say(terminal, server.url.removesuffix("/v1").removeprefix("http://"), "Its key")
        await say(terminal, "a-house-made-token", "Enter takes house-model")
        await say(terminal, "", "Type next:")
        assert await terminal.end() == 0
        assert stored(home)[server.url]["key"] == "a-house-made-token"
        ended = await handwork("run", "Say it.", cwd=workspace)
    assert (ended.code, ended.out) == (0, "ready\n")
    assert "a-house-made-token" not in terminal.seen


async def test_another_address_without_a_key_becomes_the_configured_choice(home: Path, workspace: Path) -> None:
    async with Provider("small-model", "house-model") as server:
        terminal = await begin(workspace)
        await say(terminal, "3", "Base URL")
        await say(terminal, server.url, "Its key")
        await say(terminal, "", "Enter takes small-model")
        await say(terminal, "2", "Type next:")
        assert await terminal.end() == 0
        assert configured(home) == {"model": "house-model", "base_url": server.url}
        assert stored(home) == {}
        ended = await handwork("run", "Say it.", cwd=workspace)
    assert (ended.code, ended.out) == (0, "ready\n")
    assert "Model:" not in ended.err


async def test_an_address_where_nobody_is_is_said_and_leads_back(home: Path, workspace: Path) -> None:
    terminal = await begin(workspace)
    await say(terminal, "3", "Base URL")
    await say(terminal, "127.0.0.1:9", "Its key")
    await say(terminal, "", "Try again? [Y/n]")
    assert "✗ 127.0.0.1:9: the connection failed: connection refused" in terminal.plain
    await say(terminal, "n", MENU)
    await say(terminal, "3", "Base URL")
    await say(terminal, "no address at all", "Base URL")
    assert "is no address: expected http(s)://" in " ".join(terminal.plain.split())
    terminal.type("q\n")
    assert await terminal.end() == 0
    assert kept(home) == []


# ---- what was there before


async def test_what_would_be_used_instead_is_said_and_the_new_one_can_be_preferred(
    home: Path, workspace: Path, openai: Provider
) -> None:
    environ = {"OPENAI_BASE_URL": openai.url, "GROQ_API_KEY": "gsk_" + "a1B2" * 10}
    terminal = await pasted(workspace, KEY, "Model (", **environ)
    await say(terminal, "", "Use openai:gpt-5.4 from now on?")
    assert "groq:openai/gpt-oss-120b is used (GROQ_API_KEY is set)" in terminal.plain.replace("\n", " ")
    await say(terminal, "y", "Type next:")
    assert await terminal.end() == 0
    assert configured(home) == {"model": "openai:gpt-5.4", "base_url": openai.url}
    detected = await handwork("model", "detect", cwd=workspace, **environ)
    assert f"→ openai:gpt-5.4 at {openai.url} is used: chosen in `handwork setup`" in detected.out


async def test_declining_leaves_the_order_as_it_is(home: Path, workspace: Path, openai: Provider) -> None:
    terminal = await pasted(workspace, KEY, "Model (", OPENAI_BASE_URL=openai.url, GROQ_API_KEY="gsk_" + "a1B2" * 10)
    await say(terminal, "", "from now on?")
    await say(terminal, "n", "Ready: groq:")
    assert await terminal.end() == 0
    assert configured(home) == {}
    assert stored(home)["openai"]["key"] == KEY


async def test_a_configuration_of_ones_own_goes_over_the_choice_and_that_is_said(
    home: Path, workspace: Path, openai: Provider
) -> None:
    (home / "config.toml").write_text('[llm]\nmodel = "groq:mine"\n')
    terminal = await pasted(workspace, KEY, "Model (", OPENAI_BASE_URL=openai.url)
    await say(terminal, "", "from now on?")
    await say(terminal, "y", "Type next:")
    assert await terminal.end() == 0
    assert "groq:mine goes over this choice (configured: " in " ".join(terminal.plain.split())


async def test_keys_and_the_choice_can_be_removed_again(home: Path, workspace: Path, openai: Provider) -> None:
    terminal = await pasted(workspace, KEY, "Model (", OPENAI_BASE_URL=openai.url)
    await say(terminal, "", "Type next:")
    await terminal.end()
    (home / "setup.toml").write_text('[llm]\nmodel = "openai:gpt-5.4"\n')
    terminal = await begin(workspace)
    assert "Remove the stored key of OpenAI" in terminal.plain
    await say(terminal, "5", "Remove the key of OpenAI? [Y/n]")
    await say(terminal, "y", MENU)
    await say(terminal, "5", MENU)
    terminal.type("\n")
    assert await terminal.end() == 0
    assert stored(home) == {}
    assert not (home / "setup.toml").exists()


async def test_a_damaged_file_of_keys_is_said_and_setup_still_goes_on(home: Path, workspace: Path) -> None:
    (home / "keys.json").write_text("{")
    terminal = await begin(workspace)
    assert "keys.json" in terminal.plain
    await say(terminal, "9", "Type a number from 1 to 4")
    terminal.type("q\n")
    assert await terminal.end() == 0


# ---- headless, and offered by others


async def test_headless_it_says_how_to_do_without(workspace: Path) -> None:
    ended = await handwork("setup", cwd=workspace)
    assert (ended.code, ended.out) == (2, "")
    first, second = ended.err.splitlines()
    assert "there is no terminal" in first
    for word in ("OPENAI_API_KEY", "--model", "--base-url"):
        assert word in second


async def test_a_run_without_a_model_is_two_lines_when_headless(workspace: Path) -> None:
    ended = await handwork("run", "Do it.", cwd=workspace)
    assert (ended.code, ended.out) == (2, "")
    first, second = ended.err.splitlines()
    assert first.startswith("handwork: No model is configured")
    assert second.startswith("→ run `handwork setup`")


async def test_at_a_terminal_a_run_offers_setup_and_then_does_the_task(
    home: Path, workspace: Path, openai: Provider
) -> None:
    terminal = await begin(workspace, "run", "Say it.", OPENAI_BASE_URL=openai.url)
    await terminal.expect("No model yet. Set one up now? [Y/n]")
    await say(terminal, "", MENU)
    await say(terminal, "1", "Paste the key")
    await say(terminal, KEY, "Model (")
    await say(terminal, "", "Ready: openai:gpt-5.4 is used.")
    await terminal.expect("finished")
    assert await terminal.end() == 0
    assert "Type next" not in terminal.plain
    assert "Say it." in json.dumps(openai.requests[-1].json)


@pytest.mark.parametrize("answer", ["n\n", "q\n", "\x1b", "\x04"])
async def test_whoever_declines_is_told_the_ways_on(workspace: Path, answer: str) -> None:
    terminal = await begin(workspace, "run", "Say it.")
    await terminal.expect("Set one up now? [Y/n]")
    terminal.type(answer)
    assert await terminal.end() == 2
    assert "→ run `handwork setup`" in terminal.plain


async def test_ctrl_c_at_the_offer_ends_its_line(workspace: Path) -> None:
    terminal = await begin(workspace, "run", "Say it.")
    await terminal.expect("Set one up now? [Y/n] ")
    leave(terminal, "")
    assert await terminal.end() == 130
    assert terminal.plain.endswith("[Y/n] \n")


async def test_a_named_model_without_a_key_is_named_in_the_offer(workspace: Path) -> None:
    terminal = await begin(workspace, "run", "Say it.", "--model", "groq:mine")
    await terminal.expect("groq:mine needs a key, and there is none. Set one up now? [Y/n]")
    terminal.type("n\n")
    assert await terminal.end() == 2


@pytest.mark.parametrize("columns", [80, 200])
async def test_no_line_is_broken_by_the_terminal(workspace: Path, columns: int) -> None:
    terminal = await begin(workspace, COLUMNS=str(columns))
    await say(terminal, "2", MENU)
    terminal.type("q\n")
    await terminal.end()
    assert max(map(len, terminal.plain.splitlines())) < columns


async def test_a_variable_that_goes_over_the_key_just_stored_is_told(workspace: Path, openai: Provider) -> None:
    terminal = await pasted(workspace, KEY, "Model (", OPENAI_BASE_URL=openai.url, OPENAI_API_KEY=OTHER)
    await say(terminal, "", "Type next:")
    assert await terminal.end() == 0
    assert "! OPENAI_API_KEY is set, and its key goes over the stored one" in " ".join(terminal.plain.split())


async def test_a_local_model_is_offered_with_its_size_and_licence_and_nothing_is_fetched_unasked(
    home: Path, workspace: Path
) -> None:
    terminal = await begin(workspace)
    await say(terminal, "4", "[Y/n]" if find_spec("xllamacpp") else "handwork[local]")
    assert "licence Apache-2.0: 93 MB to download" in " ".join(terminal.plain.split())
    if find_spec("xllamacpp"):
        await say(terminal, "n", MENU)
    else:
        await terminal.expect(MENU)
    terminal.type("\n")
    assert await terminal.end() == 0
    assert kept(home) == []


async def test_a_home_that_cannot_be_written_is_said_in_two_lines(
    home: Path, workspace: Path, openai: Provider
) -> None:
    (home / "file").write_text("")
    environ = {"HANDWORK_HOME": str(home / "file" / "below"), "OPENAI_BASE_URL": openai.url}
    terminal = await pasted(workspace, KEY, "Model (", **environ)
    await say(terminal, "", MENU)
    told = " ".join(terminal.plain.split())
    assert "✗ The key cannot be stored in" in told
    assert "→ free or open that folder, or name another in HANDWORK_HOME" in told
    terminal.type("q\n")
    assert await terminal.end() == 0
