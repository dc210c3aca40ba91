"""Providers by name: where each is, which variables hold its key, and which one a model's name means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_TAG = re.compile(r"latest$|[\d.]+[bm]\b")
"""What stands behind the colon in a local server's names: `mistral:7b` at a base URL is no model `7b` of Mistral's."""
_PREFIX = re.compile(r"[A-Za-z][A-Za-z_-]*")


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider.

    key_variables: environment variables with its key, the first that is set counts; none: no key is needed.
    base_url_variable: an environment variable that names another address, which is as much the provider's own.
    """

    name: str
    base_url: str
    key_variables: tuple[str, ...] = ()
    base_url_variable: str = ""

    def address(self, environ: Mapping[str, str]) -> str:
        """Where it is when no base URL is configured; '' if it has no address of its own."""
        from_variable = environ.get(self.base_url_variable, "") if self.base_url_variable else ""
        return from_variable or self.base_url


_ALL = (
    Provider("openai", "https://api.openai.com/v1", ("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
    Provider("openrouter", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    Provider("deepseek", "https://api.deepseek.com", ("DEEPSEEK_API_KEY",)),
    Provider("groq", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    Provider("mistral", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    Provider("google", "https://generativelanguage.googleapis.com/v1beta/openai", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    Provider("xai", "https://api.x.ai/v1", ("XAI_API_KEY",)),
    Provider("together", "https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    Provider("fireworks", "https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
    Provider("cerebras", "https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
    Provider("moonshot", "https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",)),
    Provider("dashscope", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", ("DASHSCOPE_API_KEY",)),
    Provider("ppio", "https://api.ppinfra.com/v3/openai", ("PPIO_API_KEY",)),
    Provider("jiekou", "https://api.jiekou.ai/openai", ("JIEKOU_API_KEY",)),
    Provider("ollama", "http://localhost:11434/v1", base_url_variable="OLLAMA_BASE_URL"),
    Provider("lmstudio", "http://localhost:1234/v1"),
    Provider("llamacpp", "http://localhost:8080/v1"),
    Provider("vllm", "http://localhost:8000/v1"),
)
PROVIDERS = {provider.name: provider for provider in _ALL}
ALIASES = {"gemini": "google", "grok": "xai", "kimi": "moonshot", "qwen": "dashscope", "hosted_vllm": "vllm"}
LOCAL = "local"
"""The prefix of models that run in this process."""
AZURE = Provider("azure", "")


def find_provider(name: str) -> Provider | None:
    """The provider of that name or alias, in any case."""
    name = name.lower()
    return AZURE if name == AZURE.name else PROVIDERS.get(ALIASES.get(name, name))


def split_model(model: str, *, at_base_url: bool = False) -> tuple[str, str]:
    """(provider's name, model's own name) of `provider:model`; ('', model) where the colon, if any, is part of the name.

    The provider may be one that we do not know. `at_base_url`: what looks like a local server's tag (`mistral:7b`) is one.
    """
    prefix, colon, rest = model.partition(":")
    if not colon or not _PREFIX.fullmatch(prefix) or (at_base_url and _TAG.match(rest)):
        return "", model
    found = find_provider(prefix)
    return (found.name if found else prefix.lower()), rest


def provider_name(model: str, base_url: str = "", api_type: str = "") -> str:
    """The provider that these settings mean; '' for a bare name at a base URL, and where nothing is named."""
    prefix, _ = split_model(model, at_base_url=bool(base_url))
    if prefix:
        return prefix
    if api_type:
        found = find_provider(api_type)
        return found.name if found else api_type.lower()
    return "openai" if model and not base_url else ""
