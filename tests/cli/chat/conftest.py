"""What holds for every test of the chat: none leaves one open."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from tests.cli.chat.window import opened


@pytest_asyncio.fixture(autouse=True)
async def no_chat_left() -> AsyncIterator[None]:
    """A test that fails has not left its chat."""
    yield
    while opened:
        process = opened.pop().process
        if process.returncode is None:
            process.kill()
            await process.wait()
