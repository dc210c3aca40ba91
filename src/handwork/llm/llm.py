"""LLM: a configured model by name, built at its first request; itself a Model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from handwork.config import LLMSettings, Settings, load_settings
from handwork.config.llm_tables import Settled, with_model
from handwork.errors import ConfigError
from handwork.llm.aside import aside
from handwork.llm.asking import asking, close_model, reply_of
from handwork.llm.base import Model
from handwork.llm.build import build_model
from handwork.llm.choice import choose
from handwork.llm.facts import sees_images
from handwork.llm.sight import Sight
from handwork.llm.written.calls import with_written_calls
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

_VISION = "vision"
"""The table of the model for images, where an agent's own takes none."""


class LLM:
    """The model of `[llm.<config_name>]` over `[llm]`. Each LLM is its own: nothing is shared between two.

    Where none is configured, the first that is found is taken: see `handwork.llm.choice`. Construction needs no key, file or
    network; a missing model is a NoModelError at the first request.

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
        """`provider:model`; '' while none is configured, and none was looked for."""
        if self._model is not None:
            return self._model.name
        return self._llm_settings().settings.model

    @property
    def model(self) -> Model:
        """The model behind this, built now if it was not yet. Raises NoModelError or ConfigError.

        Looking for one blocks for a quarter of a second at most; `ready()` does it in a thread.
        """
        if self._model is None:
            self._build(self._chosen(self._llm_settings()))
        return self._made()

    async def ready(self) -> None:
        """Settle which model this is and build it, so that `name` says it. Raises what `model` raises, and ModelError."""
        if self._model is not None:
            return
        known = self._llm_settings()
        if not known.settings.model:  # servers have to be asked
            known = await aside(partial(self._chosen, known))
        if self._model is None:
            self._build(known)

    def goes_to(self, request: Request) -> str:
        """The name of the model that a request will be sent to: that of [llm.vision], if this one takes no images."""
        return self._model.goes_to(request) if isinstance(self._model, Sight) else self.name

    @property
    def secrets(self) -> frozenset[str]:
        """The keys that this has used or could use, so that a session can mask them."""
        if self._settings is None:
            return frozenset()
        return frozenset({*self._settings.keys.used, self._llm_settings().settings.api_key} - {""})

    async def stream(self, request: Request) -> AsyncIterator[StreamItem]:
        await self.ready()
        async with asking(self._made(), request) as items:
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
        await self.ready()
        reply = await reply_of(self._made(), request)
        return with_written_calls(reply, request) or reply

    async def aclose(self) -> None:
        """Free the connections; the next request opens them again."""
        if self._model is not None:
            await close_model(self._model)

    def _made(self) -> Model:
        assert self._model is not None
        return self._model

    def _chosen(self, known: Settled) -> Settled:
        """The settings as they are, or with the first model that is found; that one is told."""
        if known.settings.model:
            return known
        found = choose(self._resolved(), known.settings)
        return Settled(found.over(known.settings), known.notices, known.withheld, found.notice())

    def _build(self, known: Settled) -> None:
        resolved = self._resolved()
        model = build_model(known.settings, resolved.environ, self._notify, known.withheld, resolved.keys)
        self._model = Sight(model, sees=self._sees(model, known.settings), eyes=self._eyes(known.settings))
        if self._notify is None:
            return
        for text in (*known.notices, *resolved.keys.take_notices()):
            self._notify("warning", text)
        if known.chosen:
            self._notify("info", known.chosen)

    def _sees(self, model: Model, settings: LLMSettings) -> bool:
        if settings.sees_images is not None:
            return settings.sees_images
        return self.config_name.lower() == _VISION or sees_images(model.name)

    def _eyes(self, settings: LLMSettings) -> LLM | None:
        """The model of [llm.vision], if there is one that is another than this."""
        table = self._resolved().llm.get(_VISION)
        if table is None or self.config_name.lower() == _VISION or table.sees_images is False:
            return None
        if not table.model or (table.model, table.base_url) == (settings.model, settings.base_url):
            return None
        eyes = LLM(_VISION, self._resolved(), notify=self._notify)
        try:
            _ = eyes.model  # built now: its name is told before it is asked
        except ConfigError as error:
            if self._notify is not None:
                self._notify("warning", f"The model of [llm.vision] cannot be used: {error}")
            return None
        return eyes

    def _resolved(self) -> Settings:
        if self._settings is None:
            self._settings = load_settings()
        return self._settings

    def _llm_settings(self) -> Settled:
        """The settings of this model; and what of the configured ones cannot be used for the model named in code."""
        resolved = self._resolved()
        settings, withheld = resolved.llm_for(self.config_name), resolved.withheld_for(self.config_name)
        if self._wanted is None or self._wanted == settings.model:
            return Settled(settings, resolved.notices_for(self.config_name), withheld)
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
