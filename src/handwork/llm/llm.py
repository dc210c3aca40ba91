"""LLM: a configured model by name, built at its first request; itself a Model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from handwork.config import Settings, load_settings
from handwork.config.llm_tables import Settled, with_model
from handwork.llm.asking import asking, close_model, reply_of
from handwork.llm.base import Model
from handwork.llm.build import build_model
from handwork.schema import (
    JSON,
    Function,
    Image,
    Message,
    Notify,
    Reply,
    Request,
    Role,
    StreamItem,
    ToolCall,
    ToolChoice,
)


class LLM:
    """The model of `[llm.<config_name>]` over `[llm]`. Each LLM is its own: nothing is shared between two.

    Construction needs no key, file or network; a missing model is a NoModelError at the first request.

    Args:
        config_name: the table's name; names ignore case.
        settings: None looks them up (file and environment) at the first use.
        model: `provider:model` in place of the configured one, or a Model, which is used as it is.
        notify: hears what a person should know about the configuration.
    """

    def __init__(
        self,
        config_name: str = "default",
        settings: Settings | None = None,
        model: str | Model | None = None,
        *,
        notify: Notify | None = None,
    ) -> None:
        self.config_name = config_name
        self._settings, self._notify = settings, notify
        self._wanted = model if isinstance(model, str) else None
        self._model: Model | None = None if isinstance(model, str) else model

    @property
    def name(self) -> str:
        """`provider:model`; '' while none is configured."""
        if self._model is not None:
            return self._model.name
        return self._llm_settings().settings.model

    @property
    def model(self) -> Model:
        """The model behind this, built now if it was not yet. Raises NoModelError or ConfigError."""
        if self._model is None:
            chosen = self._llm_settings()
            if self._notify is not None:
                for notice in chosen.notices:
                    self._notify("warning", notice)
            self._model = build_model(chosen.settings, self._resolved().environ, self._notify, chosen.withheld)
        return self._model

    async def stream(self, request: Request) -> AsyncIterator[StreamItem]:
        async with asking(self.model, request) as items:
            async for item in items:
                yield item

    async def ask(
        self,
        messages: Sequence[Message | Mapping[str, Any]],
        system_msgs: Sequence[Message | Mapping[str, Any]] | None = None,
    ) -> str:
        """The model's text in answer to some messages; dicts in OpenAI's form are accepted. Raises ModelError."""
        reply = await self.ask_tool(messages, system_msgs, tool_choice=ToolChoice.NONE)
        return reply.content or ""

    async def ask_tool(
        self,
        messages: Sequence[Message | Mapping[str, Any]],
        system_msgs: Sequence[Message | Mapping[str, Any]] | None = None,
        tools: Sequence[Mapping[str, JSON]] | None = None,
        tool_choice: str = ToolChoice.AUTO,
    ) -> Reply:
        """The model's whole reply. `tools` are OpenAI function dicts, `tool_choice` none, auto or required.

        Raises:
            ValueError: a message or tool_choice that makes no sense.
            ModelError: the request failed.
        """
        if tool_choice not in list(ToolChoice):
            raise ValueError(f"Invalid tool_choice: {tool_choice}")
        system = "\n\n".join(text for item in system_msgs or () if (text := to_message(item).content))
        request = Request(
            messages=[to_message(item) for item in messages],
            system=system or None,
            tools=tuple(sorted(tools or (), key=lambda tool: str(tool["function"]["name"]))),
            tool_choice=ToolChoice(tool_choice),
        )
        return await reply_of(self.model, request)

    async def aclose(self) -> None:
        """Free the connections; the next request opens them again."""
        if self._model is not None:
            await close_model(self._model)

    def _resolved(self) -> Settings:
        if self._settings is None:
            self._settings = load_settings()
        return self._settings

    def _llm_settings(self) -> Settled:
        """The settings of this model; and what of the configured ones cannot be used for the model named in code."""
        resolved = self._resolved()
        settings, withheld = resolved.llm_for(self.config_name), resolved.withheld_for(self.config_name)
        if self._wanted is None or self._wanted == settings.model:
            return Settled(settings, (), withheld)
        found = with_model(settings, self._wanted, resolved.environ)
        return found if found.withheld else replace(found, withheld=withheld)


def to_message(item: Message | Mapping[str, Any]) -> Message:
    """A Message as it is; a dict in OpenAI's form (also with `base64_image`, as in OpenManus) as a Message.

    Raises:
        ValueError: no role, or an unknown one.
    """
    if isinstance(item, Message):
        return item
    if not isinstance(item, Mapping):
        raise ValueError(f"Expected a Message or a dict, got {type(item).__name__}")
    try:
        role = Role("system" if item["role"] == "developer" else item["role"])
    except (KeyError, ValueError):
        raise ValueError(f"Unsupported message role: {item.get('role')}") from None
    text, images = _content(item.get("content"))
    if item.get("base64_image"):
        images = (*images, Image.from_base64(item["base64_image"]))
    calls = tuple(
        ToolCall(
            id=call.get("id") or "",
            function=Function(name=call["function"]["name"], arguments=call["function"].get("arguments") or "{}"),
        )
        for call in item.get("tool_calls") or ()
    )
    return Message(
        role=role,
        content=text,
        images=images,
        tool_calls=calls,
        tool_call_id=item.get("tool_call_id"),
        name=item.get("name"),
    )


def _content(content: Any) -> tuple[str | None, tuple[Image, ...]]:
    """Text and images of a content: a string, or OpenAI's list of parts."""
    if content is None or isinstance(content, str):
        return content, ()
    texts, images = [], []
    for part in content:
        if part.get("type") == "text":
            texts.append(part["text"])
        elif part.get("type") == "image_url":
            url = part["image_url"]["url"]
            head, _, data = url.partition(";base64,")
            if not head.startswith("data:") or not data:
                raise ValueError("Images must be data URLs: data:image/png;base64,…")
            images.append(Image.from_base64(data, head.removeprefix("data:")))
        else:
            raise ValueError(f"Unsupported content part: {part.get('type')}")
    return "\n".join(texts), tuple(images)
