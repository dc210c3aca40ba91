"""Model servers of this machine: found together in a quarter of a second, and nothing else is taken for one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest

from handwork.config import LLMSettings, Settings
from handwork.config.providers import LOCAL_SERVERS, PROVIDERS
from handwork.errors import AuthenticationError, ConfigError, ModelConnectionError, ModelNotFoundError, ServerError
from handwork.llm.detect import Server, best_model, find_servers, list_models
from handwork.llm.llm import LLM
from handwork.schema import Message
from tests.support.fault_server import Answer, Fault, FaultServer, Received, error_answer, json_answer, stream_of

PLENTY = 5.0
"""Seconds, where a test is not about time and the machine may be busy."""


def models(*names: str) -> Answer:
    return json_answer({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})


def answering(**paths: Answer) -> Callable[[Received], Answer]:
    """A server with some paths, named by their last parts."""
    return lambda received: paths.get(received.path.rpartition("/")[2], error_answer(404))


async def found(patience: float = PLENTY, **servers: FaultServer) -> dict[str, Server]:
    environ = os.environ | {PROVIDERS[name].base_url_variable: server.url for name, server in servers.items()}
    return {each.provider.name: each for each in await asyncio.to_thread(find_servers, environ, patience)}


async def test_all_four_are_found_at_their_own_addresses() -> None:
    async with AsyncExitStack() as stack:
        servers = {
            name: await stack.enter_async_context(FaultServer(answering(models=models(f"{name}-7b"))))
            for name in LOCAL_SERVERS
        }
        there = await found(**servers)
    assert {name: (each.state, each.models) for name, each in there.items()} == {
        name: ("models", (f"{name}-7b",)) for name in LOCAL_SERVERS
    }
    assert there["ollama"].where == servers["ollama"].url.removesuffix("/v1")


async def test_where_nothing_listens_nothing_is_found() -> None:
    assert {each.state for each in (await found()).values()} == {"silent"}


@pytest.mark.parametrize(
    "answer",
    [
        Answer([b"<html>It works!</html>"], headers={"content-type": "text/html"}),
        error_answer(404),
        error_answer(500),
        json_answer({"status": "ok"}),
        json_answer({"data": "models"}),
        json_answer({"data": ["a", "b"]}),
        json_answer({"data": [{"name": "a"}]}),
        json_answer({"data": [{"id": 7}]}),
        json_answer({"data": {}}),
        json_answer([{"id": "a"}]),
        json_answer("models"),
        Answer([b"[" * 100_000], length=True),
        Answer([b"\xff\xfe"], length=True),
        Answer(status=302, headers={"location": "/login"}, length=True),
    ],
    ids=range(14),
)
async def test_something_else_at_the_port_is_not_taken_for_a_model_server(answer: Answer) -> None:
    async with FaultServer(answering(models=answer)) as server:
        there = (await found(llamacpp=server))["llamacpp"]
    assert (there.state, there.models, there.best) == ("other", (), "")


async def test_a_name_that_hides_something_is_no_models() -> None:
    odd = ("qwen\x1b[2J", "qwen\nModel: other", "qwen\u202eb07", "qwen\U000e0041", "qwen\ud800", "\u200b")
    async with FaultServer(answering(models=models(*odd, "qwen3-7b"))) as server:
        assert (await found(llamacpp=server))["llamacpp"].models == ("qwen3-7b",)


@pytest.mark.parametrize("data", [[], None])
async def test_a_server_without_models_is_one(data: list[object] | None) -> None:
    async with FaultServer(answering(models=json_answer({"object": "list", "data": data}))) as server:
        assert (await found(ollama=server))["ollama"].state == "empty"


async def test_a_server_that_wants_a_key_is_said() -> None:
    async with FaultServer(answering(models=error_answer(401))) as server:
        assert (await found(vllm=server))["vllm"].state == "locked"


@pytest.mark.parametrize(
    "answer",
    [
        Answer(before=Fault.SILENCE),
        Answer([b"{", Fault.SILENCE], headers={"content-type": "application/json"}),
        Answer([b"HTTP/1.1 200", Fault.SILENCE], raw=True),
    ],
    ids=["says nothing", "stops in the body", "stops in the head"],
)
async def test_a_mute_server_costs_a_quarter_of_a_second_and_hides_no_other(answer: Answer) -> None:
    async with FaultServer(lambda _: answer) as mute, FaultServer(answering(models=models("qwen3:8b"))) as good:
        began = time.monotonic()
        there = await found(patience=0.25, ollama=mute, lmstudio=mute, vllm=good)
        assert time.monotonic() - began < 0.75  # what the machine is busy with comes on top
    assert there["ollama"].state == "silent"
    assert there["vllm"].models == ("qwen3:8b",)


@pytest.mark.parametrize(
    "answer", [Answer(before=Fault.RESET), Answer(before=Fault.CUT), Answer([b"no http\r\n\r\n"], raw=True)]
)
async def test_a_server_that_breaks_off_is_none(answer: Answer) -> None:
    async with FaultServer(lambda _: answer) as server:
        assert (await found(lmstudio=server))["lmstudio"].state == "silent"


async def test_the_model_in_memory_is_preferred() -> None:
    ps = json_answer({"models": [{"name": "qwen3:4b"}]})
    async with FaultServer(answering(models=models("qwen3:32b", "qwen3:4b", "nomic-embed-text"), ps=ps)) as server:
        there = (await found(ollama=server))["ollama"]
    assert there.loaded == {"qwen3:4b"}
    assert there.best == "qwen3:4b"


async def test_lm_studio_says_what_is_loaded_in_a_list_of_its_own() -> None:
    rows = [{"id": "a-7b", "state": "loaded"}, {"id": "b-70b", "state": "not-loaded"}]

    def script(received: Received) -> Answer:
        return json_answer({"data": rows}) if received.path == "/api/v0/models" else models("a-7b", "b-70b")

    async with FaultServer(script) as server:
        assert (await found(lmstudio=server))["lmstudio"].best == "a-7b"


@pytest.mark.parametrize(
    "odd", [json_answer([1]), json_answer({"models": [7]}), error_answer(500), json_answer({"models": 3})]
)
async def test_an_odd_answer_about_memory_takes_no_model_away(odd: Answer) -> None:
    async with FaultServer(answering(models=models("qwen3:8b"), ps=odd)) as server:
        assert (await found(ollama=server))["ollama"].best == "qwen3:8b"


@pytest.mark.parametrize(
    ("names", "best"),
    [
        (["nomic-embed-text", "bge-m3", "whisper-large"], ""),
        (["nomic-embed-text", "qwen3:8b"], "qwen3:8b"),
        (["qwen3:8b", "qwen3:32b", "qwen3:0.6b"], "qwen3:32b"),
        (["gemma2:27b", "qwen3:8b"], "qwen3:8b"),
        (["llama3.2:1b", "llama3.1:8b", "phi3:14b"], "llama3.1:8b"),
        (["openai/gpt-oss-120b", "openai/gpt-oss-20b", "text-embedding-nomic"], "openai/gpt-oss-120b"),
        (["qwen3-30b-a3b", "qwen3-14b"], "qwen3-30b-a3b"),
        (["/models/Qwen3-8B-Q4_K_M.gguf"], "/models/Qwen3-8B-Q4_K_M.gguf"),
        (["llama-guard3:8b", "smollm2:135m"], "smollm2:135m"),
        (["my-own-model", "other"], "my-own-model"),
        ([], ""),
    ],
)
def test_the_best_model_chats_calls_tools_and_is_large(names: list[str], best: str) -> None:
    assert best_model(names) == best


# ---- any server's list


async def test_a_list_is_asked_with_the_key_and_comes_back_in_order() -> None:
    async with FaultServer([models("b", "a", "b", " ")]) as server:
        assert await asyncio.to_thread(list_models, server.url + "/", "sk-secret-key", {}) == ("b", "a")
    (request,) = server.requests
    assert (request.path, request.headers["authorization"]) == ("/v1/models", "Bearer sk-secret-key")


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/messages"])
async def test_anthropics_list_is_asked_with_the_key_in_its_own_header(end: str) -> None:
    async with FaultServer([models("claude-x")]) as server:
        root = server.url.removesuffix("/v1")
        names = await asyncio.to_thread(list_models, root + end, "sk-ant-secret", {"ANTHROPIC_BASE_URL": root})
    (request,) = server.requests
    assert names == ("claude-x",)
    assert (request.path, request.headers["x-api-key"]) == ("/v1/models", "sk-ant-secret")
    assert "anthropic-version" in request.headers
    assert "authorization" not in request.headers


async def test_the_user_in_an_address_is_sent_as_the_model_s_requests_send_it() -> None:
    async with FaultServer([models("a"), stream_of("ready")]) as server:
        url = server.url.replace("://", "://me:p%40ss@")
        assert await asyncio.to_thread(list_models, url, "", {}) == ("a",)
        llm = LLM(settings=Settings(llm={"default": LLMSettings(model="m", base_url=url)}))
        await llm.ask([Message.user_message("x")])
        await llm.aclose()
    listed, asked = server.requests
    assert listed.headers["authorization"] == asked.headers["authorization"] != ""


async def test_the_query_of_an_address_stays_behind_it() -> None:
    async with FaultServer([models("a")]) as server:
        assert await asyncio.to_thread(list_models, server.url + "?tenant=x", "", {}) == ("a",)
    assert server.requests[0].path == "/v1/models?tenant=x"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error_answer(401, "bad key sk-secret-key"), AuthenticationError),
        (error_answer(404), ModelNotFoundError),
        (error_answer(500), ServerError),
        (json_answer({"hello": "world"}), ModelNotFoundError),
        (Answer(before=Fault.RESET), ModelConnectionError),
        (Answer([b"HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\nno size\r\n"], raw=True), ModelConnectionError),
        (Answer(status=301, headers={"location": "https://elsewhere.example"}, length=True), ModelNotFoundError),
    ],
)
async def test_what_goes_wrong_is_typed_has_a_hint_and_never_shows_the_key(
    answer: Answer, kind: type[Exception]
) -> None:
    async with FaultServer(lambda _: answer) as server:
        with pytest.raises(kind) as caught:
            await asyncio.to_thread(list_models, server.url, "sk-secret-key", {})
        assert len(server.requests) <= 1
    assert getattr(caught.value, "hint", "")
    assert "sk-secret-key" not in str(caught.value)


async def test_a_server_that_says_nothing_is_given_up_in_time() -> None:
    async with FaultServer([Answer(before=Fault.SILENCE)]) as server:
        with pytest.raises(ModelConnectionError, match="no answer"):
            await asyncio.to_thread(list_models, server.url, "", {}, 0.1)


async def test_a_server_that_always_says_something_and_never_answers_is_given_up_in_time_and_let_go() -> None:
    gone = asyncio.Event()

    async def for_ever(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                await writer.drain()
        writer.close()
        gone.set()

    async with await asyncio.start_server(for_ever, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        with pytest.raises(ModelConnectionError, match="no answer"):
            await asyncio.wait_for(asyncio.to_thread(list_models, url, "", {}, 0.1), PLENTY)
        await asyncio.wait_for(gone.wait(), PLENTY)


@pytest.mark.parametrize(
    "address",
    ["localhost:11434", "ftp://localhost/v1", "http://[::1", "http://127.0.0.1:99999/v1", "http://", "http://a b/v1"],
)
async def test_an_address_that_is_none_finds_nothing_and_raises_nothing(address: str) -> None:
    environ = os.environ | {"OLLAMA_BASE_URL": address}
    there = await asyncio.to_thread(find_servers, environ, PLENTY)
    assert {each.state for each in there} == {"silent"}
    with pytest.raises(ConfigError, match="is no address"):
        list_models(address, "", environ)


def test_a_file_without_certificates_is_named() -> None:
    with pytest.raises(ConfigError, match="SSL_CERT_FILE names /dev/null"):
        list_models("https://127.0.0.1:9/v1", "", {"SSL_CERT_FILE": "/dev/null"})
