"""The addresses of a name, asked of the system's resolver within a time limit."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from handwork.sandbox.network.refusal import Refusal

Resolve: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]
"""resolve(name): its IP addresses, the best first. Raises OSError if it has none."""

_LIMIT = 15.0
_THREADS = 16
_busy = threading.BoundedSemaphore(_THREADS)


async def resolve(name: str) -> Sequence[str]:
    """Ask the system in a thread that nobody waits for: a resolver that hangs holds up neither the loop nor the program's end.

    Raises Refusal (504) when no answer comes in time.
    """
    if not _busy.acquire(blocking=False):
        raise Refusal(503, f"too many names are being looked up, so {name} was not")
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Sequence[str]] = loop.create_future()
    threading.Thread(target=_look_up, args=(name, loop, answer), name=f"resolve {name}", daemon=True).start()
    try:
        async with asyncio.timeout(_LIMIT):
            return await answer
    except TimeoutError:
        raise Refusal(504, f"the name server does not answer about {name}") from None


def _look_up(name: str, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Sequence[str]]) -> None:
    found: Sequence[str] = ()
    problem: OSError | None = None
    try:
        rows = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        found = list(dict.fromkeys(str(row[4][0]) for row in rows))
    except (OSError, UnicodeError) as error:
        problem = error if isinstance(error, OSError) else OSError(str(error))
    finally:
        _busy.release()

    def tell() -> None:
        if answer.done():
            return
        if problem is not None:
            answer.set_exception(problem)
        else:
            answer.set_result(found)

    try:
        loop.call_soon_threadsafe(tell)
    except RuntimeError:
        return  # the loop is closed: nobody waits any more
