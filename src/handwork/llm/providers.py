"""What is special about each provider's chat completions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from handwork.config.providers import ALIASES, AZURE, LOCAL, PROVIDERS, Provider, find_provider, split_model
from handwork.llm.chat.messages import EXTRA, ChatOptions
from handwork.llm.chat.thinking import CONTENT, DETAILS

__all__ = [
    "ALIASES",
    "AZURE",
    "CUSTOM",
    "LOCAL",
    "PROVIDERS",
    "Provider",
    "find_provider",
    "options_for",
    "split_model",
]

CUSTOM = Provider("custom", "")
"""Any other server, at a base URL of the user's."""


@dataclass(frozen=True, slots=True)
class _Quirks:
    """See ChatOptions."""

    echo: frozenset[str] = frozenset()
    folds: bool = False
    short_ids: bool = False
    stream_usage: bool = True


_PLAIN = _Quirks()
_ECHOES_CONTENT = _Quirks(echo=frozenset({CONTENT}))
_QUIRKS = {
    **dict.fromkeys(("deepseek", "moonshot", "dashscope", "ppio", "jiekou", "vllm"), _ECHOES_CONTENT),
    "openrouter": _Quirks(echo=frozenset({DETAILS})),
    "mistral": _Quirks(folds=True, short_ids=True, stream_usage=False),
    "google": _Quirks(echo=frozenset({EXTRA})),
    "custom": _Quirks(echo=frozenset({CONTENT, DETAILS, EXTRA})),
}

_REASONING = re.compile(r"(?:^|/)(?:o[1-9]\d*(?![a-z0-9])|gpt-[5-9])")
"""OpenAI's names of models that want max_completion_tokens and refuse temperature."""
_MISTRAL = re.compile(
    r"(?:^|/)(?:mistral|ministral|magistral|mixtral|codestral|devstral|pixtral|open-mi[sx]tral)", re.IGNORECASE
)


def options_for(provider: Provider, model: str, max_tokens: int | None, temperature: float | None) -> ChatOptions:
    """What we know about a model of this name at this provider."""
    mistral = bool(_MISTRAL.search(model)) and provider.name in ("mistral", "custom", "openrouter", "vllm")
    quirks = _QUIRKS.get(provider.name, _PLAIN)
    return ChatOptions(
        model=model,
        max_tokens=max_tokens,
        temperature=temperature,
        completion_tokens=provider.name in ("openai", "azure", "openrouter", "custom")
        and bool(_REASONING.search(model)),
        stream_usage=quirks.stream_usage,
        fold_user_turns=quirks.folds or mistral,
        short_ids=quirks.short_ids or mistral,
        echo=quirks.echo,
    )
