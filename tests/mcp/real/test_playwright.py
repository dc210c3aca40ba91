"""@playwright/mcp with the system's Chromium, both inside the sandbox: it sees the sandbox's own loopback network only."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from handwork.mcp.connection import Connection
from tests.mcp.real.place import Place, pictures_of, place_in, text_of
from tests.support.node import MODULES, node, script

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

_PAGE = """<!doctype html><title>A page inside</title>
<h1>Hello from the sandbox</h1><button onclick="this.textContent = 'Pressed'">Press me</button>
<script>console.log('the page said so')</script>"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    async with place_in(tmp_path_factory.mktemp("browser"), readable=[MODULES]) as place:
        (place.workspace / "page.html").write_text(_PAGE)
        yield place


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(place: Place) -> AsyncIterator[Connection]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium here")
    options = [
        "--headless",
        "--isolated",
        "--no-sandbox",
        "--executable-path",
        chromium,
        "--allow-unrestricted-file-access",
    ]
    yield place.connect("browser", command=node(), args=[script("playwright"), *options], timeout=120)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(place: Place) -> AsyncIterator[str]:
    """A server inside the sandbox, which nothing out here can reach."""
    serve = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    process = await place.sandbox.spawn(serve, cwd=str(place.workspace))
    said = b""
    while b"port " not in said:
        said += await process.read()
    port = said.partition(b"port ")[2].split()[0].decode()
    yield f"http://127.0.0.1:{port}"
    await process.kill()


async def test_it_offers_small_tools_for_a_browser(browser: Connection) -> None:
    tools = {tool.name: tool for tool in (await browser.ready()).tools}
    assert {"browser_navigate", "browser_snapshot", "browser_click", "browser_take_screenshot"} <= set(tools)
    assert tools["browser_snapshot"].annotations["readOnlyHint"] is True


async def test_a_page_inside_is_opened_read_and_used(browser: Connection, site: str) -> None:
    opened = await browser.call("browser_navigate", {"url": f"{site}/page.html"})
    assert not opened.failed, text_of(opened)
    seen = text_of(await browser.call("browser_snapshot", {}))
    assert "Hello from the sandbox" in seen
    ref = seen.partition('button "Press me" [ref=')[2].partition("]")[0]
    pressed = await browser.call("browser_click", {"element": "the button", "target": ref})
    assert not pressed.failed, text_of(pressed)
    assert 'button "Pressed"' in text_of(await browser.call("browser_snapshot", {}))


async def test_a_screenshot_comes_as_a_picture(browser: Connection, site: str) -> None:
    await browser.call("browser_navigate", {"url": f"{site}/page.html"})
    answer = await browser.call("browser_take_screenshot", {})
    (picture,) = pictures_of(answer)
    assert picture.media_type in ("image/png", "image/jpeg")
    assert len(picture.data) > 1000


async def test_what_a_page_writes_on_its_console_is_told(browser: Connection, site: str) -> None:
    await browser.call("browser_navigate", {"url": f"{site}/page.html"})
    answer = await browser.call("browser_console_messages", {"level": "info"})
    assert "the page said so" in text_of(answer)


async def test_an_address_at_which_nobody_answers_is_an_error_that_the_model_can_read(browser: Connection) -> None:
    answer = await browser.call("browser_navigate", {"url": "http://127.0.0.1:9/"})
    assert answer.failed
    assert "ERR_CONNECTION_REFUSED" in text_of(answer) or "ERR_UNSAFE_PORT" in text_of(answer)


async def test_the_browser_reaches_nothing_outside_of_the_sandbox(browser: Connection, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("not for a server")
    answer = await browser.call("browser_navigate", {"url": secret.as_uri()})
    assert "ERR_FILE_NOT_FOUND" in text_of(answer)
    reached = list[object]()
    server = await asyncio.start_server(lambda reader, writer: reached.append(writer), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        outside = await browser.call("browser_navigate", {"url": f"http://127.0.0.1:{port}/"})
    assert "ERR_CONNECTION_REFUSED" in text_of(outside)
    assert reached == []
