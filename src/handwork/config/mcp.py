"""MCP servers: what [mcp] and mcp.json say of them."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from handwork.config.allow_list import AllowedHost
from handwork.config.table import SettingsTable

_SPELLINGS = {
    "streamable": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
}


def _type(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    name = _SPELLINGS.get(value.lower(), value.lower())
    if name not in ("stdio", "sse", "http"):
        raise PydanticCustomError("connection_type", "Unsupported connection type: {name}", {"name": value})
    return name


def _as_tuple(value: Any) -> Any:
    """A list is as good: `_type_of_the_others` has seen the server, so its values are no JSON any more."""
    return tuple(value) if isinstance(value, list) else value


class MCPLoginSettings(SettingsTable):
    """How Handwork logs in at a server (OAuth), where it cannot find out by itself: a client that was registered by hand.

    `grant`: authorization_code sends a person to their browser; client_credentials logs in as the client itself, whenever the
    server wants it. `issuer` is who gives out the logins: the client is shown to nobody else, whatever the server says."""

    client_id: str = ""
    client_secret: str = Field(default="", repr=False)
    scope: str = ""
    redirect_port: int = Field(default=0, ge=0, le=65535)
    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"
    issuer: str = ""

    @property
    def alone(self) -> bool:
        """Whether nobody is needed to log in."""
        return self.grant == "client_credentials"

    @model_validator(mode="after")
    def _can_be_alone(self) -> MCPLoginSettings:
        if self.alone and not (self.client_id and self.client_secret):
            raise PydanticCustomError("incomplete", "client_id and client_secret are required for client_credentials")
        return self


class MCPServerSettings(SettingsTable):
    """One server. `type`: stdio starts `command` with `args`; sse and http (streamable) ask `url`. Left out, it is what the
    other keys mean. `timeout` bounds connecting and each call, in seconds. Values of `env` and `headers` may be `env:NAME`.

    A stdio server runs in the session's sandbox, which then has `paths` (folders and files, read-only) and the hosts of
    `allow_net` as well; `sandbox = false` starts it beside the sandbox, with the user's rights and network. `new_tools` takes
    tools that the server adds later without a question; those that it changes are always asked about. Of its tools, those
    are taken that `tools` names, but for those of `without_tools`; `*` stands for any letters."""

    type: Annotated[Literal["stdio", "sse", "http"], BeforeValidator(_type)] = "stdio"
    url: str = ""
    command: str = ""
    args: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = ()
    env: Mapping[str, str] = Field(default={}, repr=False)
    headers: Mapping[str, str] = Field(default={}, repr=False)
    timeout: float = Field(default=60.0, gt=0)
    cwd: str = ""
    disabled: bool = False
    sandbox: bool = True
    paths: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = ()
    allow_net: Annotated[tuple[AllowedHost, ...], BeforeValidator(_as_tuple)] = ()
    new_tools: bool = False
    tools: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = ("*",)
    without_tools: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = ()
    oauth: MCPLoginSettings = MCPLoginSettings()

    _unset: tuple[str, ...] = PrivateAttr(default=())
    _written: MCPServerSettings | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _type_of_the_others(cls, data: Any) -> Any:
        """A server without a type that names an address is asked there."""
        if isinstance(data, Mapping) and "type" not in data and data.get("url") and not data.get("command"):
            sse = str(data["url"]).partition("?")[0].rstrip("/").endswith("/sse")
            return {**data, "type": "sse" if sse else "http"}
        return data

    @model_validator(mode="after")
    def _complete(self) -> MCPServerSettings:
        if self.type == "stdio" and not self.command.strip():
            raise PydanticCustomError("incomplete", "Command is required for stdio connection")
        if self.type != "stdio" and not self.url.strip():
            kind = {"sse": "SSE", "http": "HTTP"}[self.type]
            raise PydanticCustomError("incomplete", "Server URL is required for {kind} connection", {"kind": kind})
        return self

    @property
    def unset(self) -> tuple[str, ...]:
        """The variables that this server needs and that are not set here: it cannot start."""
        return self._unset

    def takes(self, tool: str) -> bool:
        """Whether a tool of that name (the server's own) is one of those that the user wants of it."""
        wanted = any(_fits(tool, pattern) for pattern in self.tools)
        return wanted and not any(_fits(tool, pattern) for pattern in self.without_tools)

    @property
    def written(self) -> MCPServerSettings:
        """This as it was written, before the values of variables and the names of folders were put in."""
        return self._written or self

    def filled(self, values: Mapping[str, Any], unset: tuple[str, ...] = ()) -> MCPServerSettings:
        """This with values put in, for which variables of these names are missing."""
        if not values and not unset:
            return self
        found = self.model_copy(update=values)
        found._unset, found._written = unset, self.written
        return found


def _fits(tool: str, pattern: str) -> bool:
    """`*` alone is special: other signs stand for themselves."""
    return fnmatchcase(tool, pattern.replace("[", "[[]").replace("?", "[?]"))


class MCPSettings(SettingsTable):
    """[mcp]. `server_reference` is the module of the server that the agent `mcp` starts when none is named; OpenManus's own means
    `handwork mcp serve`. `servers` come from mcp.json, by their names there."""

    server_reference: str = "app.mcp.server"
    servers: Mapping[str, MCPServerSettings] = {}
