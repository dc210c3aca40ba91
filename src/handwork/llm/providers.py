"""Providers that speak OpenAI chat completions: where they are, which variable holds the key, and what is special."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from handwork.llm.chat_messages import EXTRA, ChatOptions
from handwork.llm.chat_thinking import CONTENT, DETAILS

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider.

    key_variables: environment variables with its key, the first that is set counts; none: no key is needed.
    echo, folds, short_ids, stream_usage: see ChatOptions.
    """

    name: str
    base_url: str
    key_variables: tuple[str, ...] = ()
    base_url_variable: str = ""
    echo: frozenset[str] = _NONE
    folds: bool = False
    short_ids: bool = False
    stream_usage: bool = True

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""


_ALL = (
    Provider("openai", "https://api.openai.com/v1", ("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
    Provider("openrouter", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",), echo=frozenset({DETAILS})),
    Provider("deepseek", "https://api.deepseek.com", ("DEEPSEEK_API_KEY",), echo=frozenset({CONTENT})),
    Provider("groq", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    Provider(
        "mistral", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",), folds=True, short_ids=True, stream_usage=False
    ),
    Provider(
        "google",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        echo=frozenset({EXTRA}),
    ),
    Provider("xai", "https://api.x.ai/v1", ("XAI_API_KEY",)),
    Provider("together", "https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    Provider("fireworks", "https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
    Provider("cerebras", "https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
    Provider("moonshot", "https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",), echo=frozenset({CONTENT})),
    Provider(
        "dashscope",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        ("DASHSCOPE_API_KEY",),
        echo=frozenset({CONTENT}),
    ),
    Provider("ppio", "https://api.ppinfra.com/v3/openai", ("PPIO_API_KEY",), echo=frozenset({CONTENT})),
    Provider("jiekou", "https://api.jiekou.ai/openai", ("JIEKOU_API_KEY",), echo=frozenset({CONTENT})),
    Provider("ollama", "http://localhost:11434/v1", base_url_variable="OLLAMA_BASE_URL"),
    Provider("lmstudio", "http://localhost:1234/v1"),
    Provider("llamacpp", "http://localhost:8080/v1"),
    Provider("vllm", "http://localhost:8000/v1", echo=frozenset({CONTENT})),
)
PROVIDERS = {provider.name: provider for provider in _ALL}
ALIASES = {"gemini": "google", "grok": "xai", "kimi": "moonshot", "qwen": "dashscope", "hosted_vllm": "vllm"}
LOCAL = "local"
"""The prefix of models that run in this process."""
AZURE = Provider("azure", "")
CUSTOM = Provider("custom", "", echo=frozenset({CONTENT, DETAILS, EXTRA}))
"""Any other server, at a base URL of the user's."""

_REASONING = re.compile(r"(?:^|/)(?:o[1-9]\d*(?![a-z0-9])|gpt-[5-9])")
"""OpenAI's names of models that want max_completion_tokens and refuse temperature."""
_MISTRAL = re.compile(
    r"(?:^|/)(?:mistral|ministral|magistral|mixtral|codestral|devstral|pixtral|open-mi[sx]tral)", re.IGNORECASE
)


def options_for(provider: Provider, model: str, max_tokens: int | None, temperature: float | None) -> ChatOptions:
    """What we know about a model of this name at this provider."""
    mistral = bool(_MISTRAL.search(model)) and provider.name in ("mistral", "custom", "openrouter", "vllm")
    return ChatOptions(
        model=model,
        max_tokens=max_tokens,
        temperature=temperature,
        completion_tokens=provider.name in ("openai", "azure", "openrouter", "custom")
        and bool(_REASONING.search(model)),
        stream_usage=provider.stream_usage,
        fold_user_turns=provider.folds or mistral,
        short_ids=provider.short_ids or mistral,
        echo=provider.echo,
    )


def find_provider(name: str) -> Provider | None:
    """The provider of that name or alias, in any case."""
    name = name.lower()
    return AZURE if name == AZURE.name else PROVIDERS.get(ALIASES.get(name, name))


def provider_of(model: str) -> str | None:
    """The provider that `provider:model` names; None if what stands before the colon is no provider."""
    prefix, colon, _ = model.partition(":")
    if not colon:
        return None
    if prefix == LOCAL:
        return LOCAL
    provider = find_provider(prefix)
    return provider.name if provider else None
