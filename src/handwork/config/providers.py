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
    wire: the protocol that it speaks: chat (OpenAI's chat completions) or anthropic (the Messages API).
    title: its name for people.
    default_model: the model that is taken when a key is there and no model was named; '' where there is none to name.
    key_form: a regular expression for its whole keys; '' if they have no form that tells.
    keys_at: the page on which a key is made.
    """

    name: str
    base_url: str
    key_variables: tuple[str, ...] = ()
    base_url_variable: str = ""
    wire: str = "chat"
    title: str = ""
    default_model: str = ""
    key_form: str = ""
    keys_at: str = ""

    def address(self, environ: Mapping[str, str]) -> str:
        """Where it is when no base URL is configured; '' if it has no address of its own."""
        from_variable = environ.get(self.base_url_variable, "") if self.base_url_variable else ""
        return from_variable or self.base_url

    def variable(self, environ: Mapping[str, str]) -> str:
        """The variable that holds its key here; '' if none is set."""
        return next((name for name in self.key_variables if environ.get(name, "").strip()), "")


_HEX_KEY = r"sk-[0-9a-f]{32}"
_DOTTED_KEY = r"[0-9a-f]{32}\.[A-Za-z0-9]{16}"
_ALL = (
    Provider(
        "openai",
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        "OPENAI_BASE_URL",
        title="OpenAI",
        default_model="gpt-5.4",  # later ones refuse tools on the chat completions wire
        key_form=r"sk-(proj|svcacct|admin|None)-[\w-]{20,}|sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}",
        keys_at="https://platform.openai.com/api-keys",
    ),
    Provider(
        "anthropic",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        "ANTHROPIC_BASE_URL",
        wire="anthropic",
        title="Anthropic",
        default_model="claude-sonnet-5-5",
        key_form=r"sk-ant-[\w-]{20,}",
        keys_at="https://console.anthropic.com/settings/keys",
    ),
    Provider(
        "deepseek",
        "https://api.deepseek.com",
        ("DEEPSEEK_API_KEY",),
        "DEEPSEEK_BASE_URL",
        title="DeepSeek",
        default_model="deepseek-flash",
        key_form=_HEX_KEY,
        keys_at="https://platform.deepseek.com/api_keys",
    ),
    Provider(
        "openrouter",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        "OPENROUTER_BASE_URL",
        title="OpenRouter",
        default_model="anthropic/claude-sonnet-5.5",
        key_form=r"sk-or-[\w-]{20,}",
        keys_at="https://openrouter.ai/settings/keys",
    ),
    Provider(
        "google",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        title="Google Gemini",
        default_model="gemini-3.8-flash",
        key_form=r"AIza[\w-]{30,}|AQ\.[\w.-]{20,}",
        keys_at="https://aistudio.google.com/apikey",
    ),
    Provider(
        "groq",
        "https://api.groq.com/openai/v1",
        ("GROQ_API_KEY",),
        title="Groq",
        default_model="openai/gpt-oss-120b",
        key_form=r"gsk_[A-Za-z0-9]{20,}",
        keys_at="https://console.groq.com/keys",
    ),
    Provider(
        "mistral",
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_KEY",),
        title="Mistral",
        default_model="mistral-medium-latest",
        key_form=r"[A-Za-z0-9]{32}",
        keys_at="https://console.mistral.ai/api-keys",
    ),
    Provider(
        "xai",
        "https://api.x.ai/v1",
        ("XAI_API_KEY",),
        title="xAI",
        default_model="grok-4.7",
        key_form=r"xai-[A-Za-z0-9]{20,}",
        keys_at="https://console.x.ai",
    ),
    Provider(
        "dashscope",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        ("DASHSCOPE_API_KEY",),
        "DASHSCOPE_BASE_URL",
        title="Alibaba DashScope (Qwen)",
        default_model="qwen3.8-max",
        key_form=_HEX_KEY,
        keys_at="https://modelstudio.console.alibabacloud.com",
    ),
    Provider(
        "moonshot",
        "https://api.moonshot.ai/v1",
        ("MOONSHOT_API_KEY",),
        "MOONSHOT_BASE_URL",
        title="Moonshot (Kimi)",
        default_model="kimi-k3.1-pro",
        key_form=r"sk-(?![A-Za-z0-9]{20}T3BlbkFJ)[A-Za-z0-9]{48}",
        keys_at="https://platform.moonshot.ai/console/api-keys",
    ),
    Provider(
        "zhipu",
        "https://open.bigmodel.cn/api/paas/v4",
        ("ZHIPUAI_API_KEY", "ZHIPU_API_KEY"),
        title="Zhipu (bigmodel.cn)",
        default_model="glm-5.3",
        key_form=_DOTTED_KEY,
        keys_at="https://open.bigmodel.cn/usercenter/apikeys",
    ),
    Provider(
        "zai",
        "https://api.z.ai/api/paas/v4",
        ("ZAI_API_KEY",),
        title="Z.AI",
        default_model="glm-5.3",
        key_form=_DOTTED_KEY,
        keys_at="https://z.ai/manage-apikey/apikey-list",
    ),
    Provider(
        "siliconflow",
        "https://api.siliconflow.com/v1",
        ("SILICONFLOW_API_KEY",),
        "SILICONFLOW_BASE_URL",
        title="SiliconFlow",
        default_model="zai-org/GLM-5.3",
        key_form=r"sk-[a-z]{48}",
        keys_at="https://cloud.siliconflow.com/account/ak",
    ),
    Provider(
        "together",
        "https://api.together.xyz/v1",
        ("TOGETHER_API_KEY",),
        "TOGETHER_BASE_URL",
        title="Together",
        default_model="zai-org/GLM-5.3",
        key_form=r"tgp_v1_[\w-]{20,}|[0-9a-f]{64}",
        keys_at="https://api.together.ai/settings/api-keys",
    ),
    Provider(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        ("FIREWORKS_API_KEY",),
        title="Fireworks",
        default_model="accounts/fireworks/models/glm-5p3",
        key_form=r"fw_[A-Za-z0-9]{16,}",
        keys_at="https://app.fireworks.ai/settings/users/api-keys",
    ),
    Provider(
        "cerebras",
        "https://api.cerebras.ai/v1",
        ("CEREBRAS_API_KEY",),
        title="Cerebras",
        default_model="gpt-oss-120b",
        key_form=r"csk-[A-Za-z0-9]{20,}",
        keys_at="https://cloud.cerebras.ai",
    ),
    Provider(
        "ppio",
        "https://api.ppinfra.com/v3/openai",
        ("PPIO_API_KEY",),
        title="PPIO",
        default_model="zai-org/glm-5.3",
        key_form=r"sk_[\w-]{20,}",
        keys_at="https://ppio.com/settings/key-management",
    ),
    Provider(
        "jiekou",
        "https://api.jiekou.ai/openai",
        ("JIEKOU_API_KEY",),
        title="Jiekou",
        default_model="zai-org/glm-5.3",
        key_form=r"sk_[\w-]{20,}",
        keys_at="https://jiekou.ai/settings/key-management",
    ),
    Provider("ollama", "http://localhost:11434/v1", base_url_variable="OLLAMA_BASE_URL", title="Ollama"),
    Provider("lmstudio", "http://localhost:1234/v1", base_url_variable="LMSTUDIO_BASE_URL", title="LM Studio"),
    Provider("llamacpp", "http://localhost:8080/v1", base_url_variable="LLAMACPP_BASE_URL", title="llama.cpp"),
    Provider("vllm", "http://localhost:8000/v1", base_url_variable="VLLM_BASE_URL", title="vLLM"),
)
PROVIDERS = {provider.name: provider for provider in _ALL}
ALIASES = {
    "gemini": "google",
    "grok": "xai",
    "kimi": "moonshot",
    "qwen": "dashscope",
    "glm": "zhipu",
    "hosted_vllm": "vllm",
}
LOCAL_SERVERS = ("ollama", "lmstudio", "llamacpp", "vllm")
"""Those that run on the user's own machine, in the order in which they are looked for."""
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
