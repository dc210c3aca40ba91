"""The model over a real socket, against a provider that misbehaves in every way."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import textwrap
import warnings
from contextlib import AsyncExitStack
from typing import Any

import pytest

from handwork.config import LLMSettings
from handwork.config.user_proxy import proxy_for
from handwork.errors import (
    AuthenticationError,
    BadRequestError,
    BrokenStreamError,
    HandworkError,
    ModelConnectionError,
    ModelError,
    ModelNotFoundError,
    ModelTimeoutError,
    OverloadedError,
    RateLimitError,
    ServerError,
)
from handwork.llm import sessions
from handwork.llm.asking import asking, close_model, reply_of
from handwork.llm.base import Model
from handwork.llm.build import build_model
from handwork.llm.retry import Retry
from handwork.llm.transport import _plain
from handwork.schema import (
    Discarded,
    Image,
    Message,
    ModelNotice,
    Reply,
    Request,
    Retrying,
    Role,
    StreamItem,
    Tail,
    TextDelta,
)
from tests.support.fault_server import (
    DONE,
    Answer,
    Fault,
    FaultServer,
    delta,
    error_answer,
    event,
    json_answer,
    stream,
    stream_of,
    usage_event,
)
from tests.support.strict_server import StrictServer

ASK = Request([Message.user_message("Hi")])
KEY = "secret-key-123456"


def model_at(url: str, **settings: Any) -> Model:
    """A model without waits: one try unless told otherwise."""
    given = {"model": "m", "base_url": url, "api_key": KEY, "retries": 0} | settings
    return build_model(LLMSettings.model_validate(given), {})


async def items_of(model: Model, request: Request = ASK) -> list[StreamItem]:
    return [item async for item in model.stream(request)]


async def test_a_good_stream_is_text_and_a_reply() -> None:
    async with FaultServer([stream_of("Hello")]) as server:
        items = await items_of(model_at(server.url))
    assert isinstance(items[-1], Reply)
    assert items[-1].content == "Hello"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.requests[0].path == "/v1/chat/completions"


async def test_a_connection_is_used_again_also_by_another_model() -> None:
    async with FaultServer([stream_of("a")] * 3) as server:
        first, second = model_at(server.url), model_at(server.url)
        for model in (first, first, second):
            await reply_of(model, ASK)
        assert server.connections == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (error_answer(400), BadRequestError),
        (error_answer(401), AuthenticationError),
        (error_answer(404), ModelNotFoundError),
        (error_answer(429), RateLimitError),
        (error_answer(500), ServerError),
        (error_answer(503), OverloadedError),
        (error_answer(529), OverloadedError),
        (Answer(before=Fault.RESET), ModelConnectionError),
        (Answer(before=Fault.CUT), ModelConnectionError),
        (Answer(before=Fault.SILENCE), ModelTimeoutError),
        (stream(Fault.SILENCE), ModelTimeoutError),
        (stream(delta(content="x"), Fault.SILENCE), ModelTimeoutError),
        (stream(delta(content="x"), Fault.CUT), BrokenStreamError),
        (stream(delta(content="x"), Fault.RESET), ModelError),
        (stream(delta(content="x")), BrokenStreamError),
        (stream(), BrokenStreamError),
        (Answer([delta(content="x")], headers={"content-length": "9999"}), HandworkError),
        (stream(delta(content="x"), event({"error": {"message": "Overloaded", "code": 529}})), OverloadedError),
        (stream(b"data: {nonsense\n\n"), BrokenStreamError),
        (Answer([b"nothing like HTTP\r\n\r\n"], raw=True), ModelConnectionError),
        (Answer([b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n<htm"], raw=True, close=True), BrokenStreamError),
        (json_answer({"choices": []}), BrokenStreamError),
        (Answer([b"<html>Sign in</html>"], headers={"content-type": "text/html"}), ModelNotFoundError),
    ],
    ids=str,
)
async def test_every_fault_is_a_typed_error_that_never_shows_the_key(
    answer: Answer, error: type[HandworkError]
) -> None:
    async with FaultServer([answer]) as server:
        model = model_at(server.url, idle_timeout=0.3)
        with pytest.raises(error) as caught:
            await items_of(model)
        await close_model(model)
    assert isinstance(caught.value, ModelError)
    assert KEY not in str(caught.value)
    assert "custom:m" in str(caught.value)
    assert len(server.requests) == 1


async def test_nobody_listening_and_no_such_host_are_connection_errors() -> None:
    async with FaultServer([]) as server:
        url = server.url
    for address, words in (
        (url, "failed: connection refused"),
        (url.replace("127.0.0.1", "localhost"), "failed: connection refused"),
        ("http://no-such-host.invalid/v1", "failed: name not resolved"),
    ):
        with pytest.raises(ModelConnectionError, match=words):
            await items_of(model_at(address))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(before=Fault.RESET), "connection reset by peer"),
        (Answer(before=Fault.CUT), "the server closed it without an answer"),
        (Answer([b"nothing like HTTP\r\n\r\n"], raw=True), "what came is no HTTP answer"),
    ],
    ids=str,
)
async def test_a_connection_that_fails_is_told_in_plain_words(answer: Answer, words: str) -> None:
    async with FaultServer([answer]) as server:
        with pytest.raises(ModelConnectionError, match=f"failed: {words} – check the base URL") as caught:
            await items_of(model_at(server.url))
    for jargon in ("ssl:", "[Errno", "Cannot connect", "Connect call"):
        assert jargon not in str(caught.value)


def test_several_addresses_that_fail_for_several_reasons_are_all_told() -> None:
    error = OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 9), [Errno 101] Connect call failed")
    assert _plain(error) == "connection refused, network is unreachable"


async def test_tls_against_a_plain_server_is_a_connection_error() -> None:
    async with FaultServer([]) as server:
        with pytest.raises(ModelConnectionError, match="failed: connection reset by peer"):
            await items_of(model_at(server.url.replace("http:", "https:")))


async def test_tls_where_none_is_spoken_points_at_the_address_and_not_at_the_certificate() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ModelConnectionError, match="no encrypted connection: .*no https at that address"):
            await items_of(model_at(f"https://127.0.0.1:{port}/v1"))


async def test_a_redirect_is_not_followed_since_it_would_carry_the_key_along() -> None:
    async with FaultServer([stream_of("stolen")]) as other:
        redirect = Answer(status=307, headers={"location": other.url}, length=True)
        async with FaultServer([redirect]) as server:
            with pytest.raises(ModelNotFoundError, match="redirected"):
                await items_of(model_at(server.url))
        assert other.requests == []


async def test_keep_alive_comments_do_not_stretch_the_total_limit() -> None:
    async with FaultServer([stream(*[b": keep-alive\n\n"] * 5, Fault.SILENCE)]) as server:
        with pytest.raises(ModelTimeoutError, match="not complete after"):
            await items_of(model_at(server.url, timeout=0.3))


async def test_a_request_ends_with_the_runs_deadline() -> None:
    async with FaultServer([stream(Fault.SILENCE)]) as server:
        request = Request(ASK.messages, deadline=asyncio.get_running_loop().time() + 0.2)
        with pytest.raises(ModelTimeoutError):
            await items_of(model_at(server.url, retries=5), request)
        assert len(server.requests) == 1


async def test_closing_the_stream_early_closes_its_connection() -> None:
    async with FaultServer([stream(delta(content="x"), Fault.SILENCE)]) as server:
        async with asking(model_at(server.url, retries=5), ASK) as items:
            assert await anext(items) == TextDelta("x")
        await asyncio.wait_for(server.hung_up(), 5)
        assert server.open == 0


async def test_cancelling_the_task_closes_its_connection() -> None:
    async with FaultServer([stream(delta(content="x"), Fault.SILENCE)]) as server:
        task = asyncio.create_task(items_of(model_at(server.url)))
        await server.asked()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.hung_up(), 5)


@pytest.mark.parametrize("ending", [Fault.SILENCE, Fault.CUT, Fault.RESET])
async def test_an_answer_that_is_whole_counts_whatever_becomes_of_its_connection(ending: Fault) -> None:
    async with FaultServer([stream(delta(content="x"), delta("stop"), usage_event(), ending)]) as server:
        reply = await reply_of(model_at(server.url, idle_timeout=0.3), ASK)
    assert reply.content == "x"
    async with FaultServer([stream(delta(content="x"), delta("stop"), DONE, ending)]) as server:
        assert (await reply_of(model_at(server.url), ASK)).content == "x"


async def test_a_broken_stream_is_discarded_and_asked_again() -> None:
    async with FaultServer(
        [stream(delta(content="ha"), Fault.CUT), error_answer(503, retry_after="0"), stream_of("Hello")]
    ) as server:
        model = Retry(model_at(server.url), random=lambda: 0.0)
        items = await items_of(model)
    kinds = [type(item) for item in items]
    assert kinds == [TextDelta, Discarded, Retrying, Retrying, TextDelta, Reply]
    assert isinstance(items[-1], Reply)
    assert items[-1].content == "Hello"


async def test_a_kept_connection_that_the_server_closed_is_asked_again() -> None:
    async with FaultServer([stream_of("a", close=True), stream_of("b")]) as server:
        model = Retry(model_at(server.url), random=lambda: 0.0)
        assert (await reply_of(model, ASK)).content == "a"
        assert (await reply_of(model, ASK)).content == "b"
        assert server.connections == 2


async def test_a_body_of_megabytes_goes_out_without_a_warning() -> None:
    async with FaultServer([stream_of("a")]) as server:
        await reply_of(model_at(server.url), Request([Message.user_message("x" * 3_000_000)]))
    assert len(server.requests[0].json["messages"][0]["content"]) == 3_000_000


async def test_notices_of_the_codec_come_first() -> None:
    async with FaultServer([stream_of("a")]) as server:
        gone = Message(role=Role.USER, content="see", images=(Image("hash", "image/png"),))
        items = await items_of(model_at(server.url), Request([gone], tail=Tail("next")))
    assert isinstance(items[0], ModelNotice)


async def test_a_tool_whose_schema_is_no_json_is_a_bad_request() -> None:
    tools = ({"type": "function", "function": {"name": "f", "parameters": {"x": object()}}},)
    with pytest.raises(BadRequestError, match="JSON"):
        await items_of(model_at("http://127.0.0.1:9/v1"), Request([], tools=tools))


async def test_two_hundred_requests_run_at_once() -> None:
    async with StrictServer(lambda request: "ok") as server:
        replies = await asyncio.gather(*[reply_of(model_at(server.url), ASK) for _ in range(200)])
    assert {reply.content for reply in replies} == {"ok"}


async def test_a_hundred_and_twenty_streams_are_open_at_the_same_time() -> None:
    async with (
        FaultServer(lambda request: stream(delta(content="x"), Fault.SILENCE)) as server,
        AsyncExitStack() as stack,
    ):
        for _ in range(120):
            items = await stack.enter_async_context(asking(model_at(server.url), ASK))
            assert await asyncio.wait_for(anext(items), 10) == TextDelta("x")
        assert server.open == 120


# ---- who closes what


async def test_the_last_model_that_closes_ends_the_connections_and_can_be_used_again() -> None:
    async with FaultServer([stream_of("a")] * 3) as server:
        first, second = model_at(server.url), model_at(server.url)
        await reply_of(first, ASK)
        await reply_of(second, ASK)
        await close_model(first)
        assert server.open == 1
        await close_model(second)
        await close_model(second)
        await asyncio.wait_for(server.hung_up(), 5)
        assert asyncio.get_running_loop() not in sessions._by_loop
        assert (await reply_of(first, ASK)).content == "a"
        await close_model(first)


def test_a_loop_that_ends_closes_what_nobody_closed_without_a_warning() -> None:
    async def main() -> None:
        async with FaultServer([stream_of("a")]) as server:
            await reply_of(model_at(server.url), ASK)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            asyncio.run(main())
        gc.collect()
    assert sessions._by_loop == {}


def test_importing_the_model_layer_imports_nothing_heavy() -> None:
    code = """
        import sys, handwork.llm.llm, handwork.llm.scripted
        print(sorted({"aiohttp", "genai_prices", "httpx2", "xllamacpp", "jsonschema"} & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---- proxies


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("https://api.x.org/v1", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://api.x.org/v1", {"https_proxy": "p:1"}, "http://p:1"),
        ("https://api.x.org/v1", {"HTTP_PROXY": "http://p:1"}, None),
        ("https://api.x.org/v1", {"ALL_PROXY": "http://p:1"}, "http://p:1"),
        ("http://api.x.org/v1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "a.org, .x.org"}, None),
        ("http://x.org/v1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": ".x.org"}, None),
        ("http://ax.org/v1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "x.org"}, "http://p:1"),
        ("http://x.org:8080/v1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "x.org:8080"}, None),
        ("http://x.org/v1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ("http://x.org/v1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": ""}, "http://p:1"),
        ("http://localhost:1/v1", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://127.0.0.1:1/v1", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://[::1]:1/v1", {"HTTP_PROXY": "http://p:1"}, None),
        ("https://api.x.org/v1", {}, None),
    ],
)
def test_proxies_come_from_the_environment_and_never_for_loopback(
    url: str, environ: dict[str, str], proxy: str | None
) -> None:
    assert proxy_for(url, environ) == proxy


async def test_a_request_goes_through_the_proxy_that_is_named() -> None:
    async with FaultServer([stream_of("through")]) as proxy:
        environ = {"HTTP_PROXY": proxy.url.removesuffix("/v1")}
        model = build_model(LLMSettings(model="m", base_url="http://model.invalid/v1", retries=0), environ)
        assert (await reply_of(model, ASK)).content == "through"
    assert proxy.requests[0].path == "http://model.invalid/v1/chat/completions"


@pytest.mark.parametrize(
    "answer",
    [
        error_answer(401, f"wrong {KEY}"),
        Answer(before=Fault.RESET),
        stream(delta(content="x"), Fault.CUT),
        stream(f"data: {{oops {KEY}\n\n".encode()),
        Answer(status=307, headers={"location": f"http://h/?key={KEY}"}, length=True),
        Answer([b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n<htm"], raw=True, close=True),
    ],
    ids=str,
)
async def test_nothing_behind_an_error_holds_the_request_or_the_key(answer: Answer) -> None:
    async with FaultServer([answer]) as server:
        model = model_at(server.url, idle_timeout=0.3)
        with pytest.raises(ModelError) as caught:
            await items_of(model)
        await close_model(model)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert KEY not in str(caught.value)
