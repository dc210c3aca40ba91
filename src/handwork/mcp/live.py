"""One connection while it lives: the SDK's client on one way to the server, with what it asks and tells us answered and heard."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from handwork.errors import MCPUnavailable
from handwork.mcp.elicit import elicit
from handwork.mcp.failing import shown
from handwork.mcp.mending import mended
from handwork.mcp.offer import Offer, ResourceOffer
from handwork.mcp.pages_first import CANCELLED, after_pages, opened
from handwork.mcp.patience import Impatient, Patience
from handwork.mcp.probe import Probe
from handwork.mcp.reading import read_offer, read_resources
from handwork.mcp.surroundings import Surroundings
from handwork.mcp.transport import Way

R = TypeVar("R")

_LISTEN_AGAIN = 5
"""So often a stream of changes that breaks off is opened anew."""


class Hears(Protocol):
    """What a connection does with what its server says unasked."""

    @property
    def asking(self) -> bool:
        """Whether anything is asked of the server just now."""

    def changed(self) -> None:
        """Its lists of tools or prompts are others now."""

    def lacks(self, of: str, text: str) -> None:
        """What of its lists (`offer`, `resources`) cannot be used, as they are now; '' for nothing."""

    async def logged(self, level: str, text: str) -> None:
        """A line of its log."""


class Live:
    """Entered and left by the one task that owns it; asked by any. `over` is set when nothing more comes from the server."""

    def __init__(
        self,
        name: str,
        way: Way,
        surroundings: Surroundings,
        hears: Hears,
        *,
        mode: str,
        limit: float,
        roots: Sequence[Path],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._name, self._way, self._surroundings, self._hears = name, way, surroundings, hears
        self._mode, self._limit, self._places, self._sleep = mode, limit, roots, sleep
        self.patience = Patience(lambda: hears.asking)
        self.over = asyncio.Event()
        self.ended = asyncio.Event()
        """The server itself has ended what comes."""
        self.shaken = False
        """Whether both sides have agreed on the protocol."""
        self._stack = AsyncExitStack()
        self._listening: asyncio.Task[None] | None = None

    # ---- begin and end

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            streams = await stack.enter_async_context(self._way)
            self.client: Any = await stack.enter_async_context(self._new_client(streams))
            self.shaken = True
            self._stack = stack.pop_all()
        return self

    def _new_client(self, streams: tuple[Any, Any]) -> Any:
        from mcp.client.client import Client
        from mcp_types import Implementation

        coming, going = _Watched(streams[0], self.over, self.ended), streams[1]
        probe = Probe(coming, going, self._surroundings.clock, self._limit)
        return Client(
            mended(_Given(probe, probe.going) if self._mode == "auto" else _Given(coming, going)),
            mode=self._mode,
            cache=None,
            client_info=Implementation(name="handwork", version=version("handwork")),
            list_roots_callback=self._roots,
            logging_callback=self._logged,
            log_level="info",
            message_handler=self._told,
            elicitation_callback=self._elicited,  # said always: what a server offers must not depend on who is there
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._listening is not None:
                self._listening.cancel()
                await asyncio.wait([self._listening])
        finally:
            await self._stack.__aexit__(kind, error, trace)

    def failure(self, how: str = "") -> MCPUnavailable:
        """How it ended, in words; `how` goes on behind its name, if that is known better here."""
        words = how or "has closed the connection"
        return self._way.failure(how) or MCPUnavailable(f"The MCP server {self._name} {words}")

    # ---- what is asked of it

    async def answer(self, send: Callable[[], Awaitable[R]]) -> R:
        """The answer to a request; pages that the server first wants opened are put to the person."""
        return await after_pages(self._name, send, self._opened)

    async def offer(self) -> Offer:
        """All that it offers now."""
        return await self._read(read_offer, "offer")

    async def resources(self) -> tuple[ResourceOffer, ...]:
        """The resources that it has now, and their templates."""
        return await self._read(read_resources, "resources")

    async def _read(self, read: Callable[[Any, Callable[[str], None]], Awaitable[R]], what: str) -> R:
        told: list[str] = []
        found = await read(self.client, told.append)
        self._hears.lacks(what, " ".join(told))
        return found

    # ---- what it asks and tells

    async def _roots(self, context: Any) -> Any:
        from mcp_types import ListRootsResult

        roots = [{"uri": place.as_uri(), "name": place.name or str(place)} for place in self._places]
        return ListRootsResult.model_validate({"roots": roots})

    async def _elicited(self, context: Any, params: Any) -> Any:
        from mcp_types import ElicitResult

        if (ask := self._surroundings.ask) is None:
            return ElicitResult(action="cancel")
        try:
            async with self.patience.turn():
                with self._surroundings.clock.stopped():
                    action, content = await elicit(self._name, params, ask)
                if action == "cancel":
                    self.patience.lose()
        except Impatient:
            return ElicitResult(action="cancel")
        return ElicitResult.model_validate({"action": action, "content": content})

    async def _opened(self, address: str, message: Any) -> str:
        try:
            async with self.patience.turn():
                with self._surroundings.clock.stopped():
                    return await opened(self._name, address, message, self._surroundings.ask)
        except Impatient:
            return CANCELLED

    async def _logged(self, params: Any) -> None:
        text = params.data if isinstance(params.data, str) else str(params.data)
        await self._hears.logged(str(params.level), shown(text[:4000], 1000))

    async def _told(self, message: Any) -> None:
        if getattr(message, "method", "") in (
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
        ):
            self._hears.changed()

    def listen(self) -> None:
        """From the protocol of 2026 on, changes are told only to who asks for them."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        offered = self.client.server_capabilities
        wanted = {
            "tools_list_changed": bool(offered.tools and offered.tools.list_changed),
            "prompts_list_changed": bool(offered.prompts and offered.prompts.list_changed),
        }
        if self.client.protocol_version in MODERN_PROTOCOL_VERSIONS and any(wanted.values()):
            self._listening = asyncio.create_task(self._listen(wanted), name=f"mcp {self._name} changes")

    async def _listen(self, wanted: dict[str, bool]) -> None:
        from mcp.client.subscriptions import SubscriptionLost
        from mcp.shared.exceptions import MCPError

        for attempt in range(_LISTEN_AGAIN):
            try:
                async with self.client.listen(**wanted) as changes:
                    if attempt:
                        self._hears.changed()  # what was told in between, nobody heard
                    async for _change in changes:
                        self._hears.changed()
                return
            except SubscriptionLost:
                if self.over.is_set():
                    return
            except (MCPError, RuntimeError):
                return
            await self._sleep(0.5 * 2**attempt)


class _Given:
    """A transport for the SDK whose streams are there already."""

    def __init__(self, reading: Any, writing: Any) -> None:
        self._streams = reading, writing

    async def __aenter__(self) -> tuple[Any, Any]:
        return self._streams

    async def __aexit__(self, *exc: object) -> None:
        return None


class _Watched:
    """A stream of what the server says that tells when it ends."""

    def __init__(self, stream: Any, over: asyncio.Event, ended: asyncio.Event) -> None:
        self._stream, self._over, self._ended = stream, over, ended

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._ended.set()
            self._over.set()
            raise
        except BaseException:
            self._over.set()
            raise

    async def receive(self) -> Any:
        return await self._stream.receive()

    async def aclose(self) -> None:
        self._over.set()
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> Any:
        self._over.set()
        return await self._stream.__aexit__(*exc)
