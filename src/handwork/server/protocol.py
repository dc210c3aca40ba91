"""The MCP server: what a client may ask of us, and who of the guests it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from handwork import __version__
from handwork.agent.surroundings import network_words
from handwork.errors import HandworkError
from handwork.schema import JSON
from handwork.server.answer import Answer, of_error
from handwork.server.conversation import converse, replied
from handwork.server.described import contents_of, resource_of, result_of, tool_of
from handwork.server.desk import Desk
from handwork.server.exchange import Exchange
from handwork.server.guest import Guest
from handwork.server.parked import Parked
from handwork.server.task import RunTask
from handwork.tool.threads import run_in_thread

SESSION_HEADER = "mcp-session-id"
_STDIO = "stdio"
_TOO_LATE = Answer("Error: the question is not open any more; call the tool again", is_error=True)


def build_server(desk: Desk) -> Any:
    """The SDK's server over our guests; it speaks both eras of the protocol, over any transport."""
    from mcp.server.lowlevel.server import Server

    parked = Parked()
    return Server(
        "handwork",
        version=__version__,
        title="Handwork",
        instructions=_instructions(desk),
        on_list_tools=partial(_list_tools, desk),
        on_call_tool=partial(_call_tool, desk, parked),
        on_list_resources=partial(_list_resources, desk),
        on_read_resource=partial(_read_resource, desk),
    )


def _instructions(desk: Desk) -> str:
    house = desk.house
    words = [f"Tools that work in the folder {house.workspace}.", network_words(house.settings.sandbox)]
    return " ".join(filter(None, words))


async def _list_tools(desk: Desk, context: Any, params: Any) -> Any:
    import mcp_types as types

    handles = _has_no_session(context)
    tools = [tool_of(tool, desk.house.settings, handles=handles) for tool in desk.house.tools]
    return types.ListToolsResult(tools=tools)


async def _call_tool(desk: Desk, parked: Parked, context: Any, params: Any) -> Any:
    if params.request_state is not None:
        if (waiting := parked.take(params.request_state)) is None:
            return result_of(_TOO_LATE)
        waiting.exchange.answer(waiting.form, replied(params.input_responses))
        return await converse(context, waiting.work, waiting.exchange, parked, waiting.handle)
    arguments: dict[str, JSON] = dict(params.arguments or {})
    try:
        handle, guest = _caller(desk, context, params.name, arguments)
    except HandworkError as error:
        return result_of(of_error(error))
    exchange = Exchange(can_ask=_can_ask(context))
    work = guest.begin(params.name, arguments, exchange, _origin(context))
    return await converse(context, work, exchange, parked, handle)


def _caller(desk: Desk, context: Any, name: str, arguments: dict[str, JSON]) -> tuple[str | None, Guest]:
    """Whose call it is, and the handle that the answer is to name."""
    label = _label(context)
    if not _has_no_session(context):
        return None, desk.guest(_key(context), label)
    if name == RunTask.name:  # it names its session by itself
        return None, desk.guest("tasks", label)
    named = arguments.pop("session", None)
    return desk.by_handle(None if named is None else str(named), label, _origin(context))


async def _list_resources(desk: Desk, context: Any, params: Any) -> Any:
    """A client without a session finds its files in its answers alone: nothing tells them from those of others."""
    import mcp_types as types

    files = {} if _has_no_session(context) else _files(desk, context)
    return types.ListResourcesResult(resources=[resource_of(*file) for file in files.items()])


async def _read_resource(desk: Desk, context: Any, params: Any) -> Any:
    """Only what was linked to in an answer: a client reads no other file by this."""
    import mcp_types as types
    from mcp.shared.exceptions import MCPError

    for path, media_type in _files(desk, context).items():
        if Path(path).as_uri() == str(params.uri):
            try:
                return contents_of(path, media_type, await run_in_thread(Path(path).read_bytes))
            except OSError:
                break
    raise MCPError(code=types.INVALID_PARAMS, message=f"There is no resource {params.uri}")


def _files(desk: Desk, context: Any) -> Mapping[str, str]:
    guests: Iterable[Guest | None] = [desk.known(_key(context))]
    if _has_no_session(context):
        guests = [*desk.handles, desk.known("tasks")]
    return {path: kind for guest in guests if guest is not None for path, kind in guest.files.items()}


# ---- who it is


def _has_no_session(context: Any) -> bool:
    """Over HTTP, a request of 2026-07-28 stands for itself: nothing but its arguments says what it belongs to."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    return context.request is not None and context.protocol_version in MODERN_PROTOCOL_VERSIONS


def _key(context: Any) -> str:
    return _STDIO if context.request is None else session_key(context.request.headers.get(SESSION_HEADER) or "")


def session_key(id: str) -> str:
    """The guest's key of a session of the transport."""
    return f"http {id}"


def _label(context: Any) -> str:
    params = context.session.client_params
    info = params.client_info if params is not None else None
    return f"{info.name}-{info.version}" if info is not None else "client"


def _origin(context: Any) -> str:
    """Which client it is, as far as that shows: what it calls itself and the machine that it is on."""
    place = context.request.client if context.request is not None else None
    return f"{_label(context)} at {place.host if place is not None else ''}"


def _can_ask(context: Any) -> bool:
    """Whether the client shows forms to a human: it says so by `elicitation`, and by `form` in it if it names a mode at all."""
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)
