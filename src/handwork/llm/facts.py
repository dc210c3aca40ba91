"""What a model can, by its name: whether it takes images, and how much it can read at once."""

from __future__ import annotations

import re

from handwork.config.providers import LOCAL, PROVIDERS, find_provider

_SAYS_SO = r"(?:^|[-_.:/ ])(?:\w*vl\d*|vision|visual|omni|ocr|multimodal|llava|pixtral)(?=[-_.:/ ]|$)|\d(?:\.\d)?v(?=[-_.:/]|$)"
"""A name that says that the model sees, whatever its family does: `qwen2.5-vl`, `llama-3.2-11b-vision`, `glm-4.5v`."""
_END = r"(?=[-_.:/@ ]|$)"
_TEXT_ONLY = rf"""(?ix)(?:^|[-_./: ])(?:
      gpt-3 | gpt-4(?=-\d{{4}}|-32k|$) | gpt-oss | o1-(?:mini|preview) | o3-mini | davinci | babbage
    | claude-(?:v?[12]{_END}|instant)
    | deepseek(?!.*v(?:4\.[1-9]|[5-9]))
    | llama-?[12]{_END} | llama-?3(?:[-_.][13])?(?=[-_:/@ ]|$)(?![-_]2[-_:]) | llama-?3[-_.]2(?:[-_:](?:1b|3b|latest)|$) | codellama
    | mistral-(?:7b|nemo|tiny|large-24|large-2402) | open-mi[sx]tral | mixtral | codestral | mathstral | devstral-(?:small|medium)-2507
    | qwen-?(?:1\.5|2|2\.5|3){_END}(?!\.[5-9]) | qwq | qwen-?turbo | codeqwen
    | kimi-k2(?![.\d]) | kimi-dev | moonshot-v1-\d+k$
    | glm-?(?:3|4|z1)(?:\.\d)?{_END} | glm-?5(?:\.[012])?(?![.\d])
    | minimax-m[12]{_END} | phi-?[1-3](?:\.5)?{_END} | phi-?4{_END}
    | gemma(?:-?2)?(?=[-:](?:1\.1|\d+b|it|latest)|$) | gemma-?3[-:](?:1b|270m) | codegemma
    | smollm | tinyllama | falcon | starcoder | vicuna | zephyr | olmo | granite | command-r | hermes-?[234] | nemotron
    | grok-(?:1|2|3|beta|code) | wizardlm | mythomax | jamba | dbrx | yi-\d | lfm
    )"""
"""Families that are known to take text only. What is not here is assumed to see; a provider that refuses is believed."""
_GENAI_IDS = {"xai": "x-ai"}


def sees_images(name: str) -> bool:
    """Whether a model (`provider:model`) takes images, as far as its name tells; unknown ones are assumed to."""
    if name.startswith(f"{LOCAL}:"):
        return False
    model = name.lower()
    return bool(re.search(_SAYS_SO, model)) or not re.search(_TEXT_ONLY, model.partition(":")[2] or model)


def context_window(name: str, url: str = "") -> int | None:
    """Tokens that a model (`provider:model`) can read at once; None if nobody knows.

    `url` is its address if that is not the provider's own. The table takes 0.15 s to load: call this in a thread.
    """
    from genai_prices.data_snapshot import get_snapshot

    prefix, _, model = name.partition(":")
    provider = find_provider(prefix) if prefix in PROVIDERS else None
    address = url or (provider.base_url if provider else "")
    try:
        if address:
            _, found = get_snapshot().find_provider_model(model, None, None, address)
        else:
            _, found = get_snapshot().find_provider_model(model, None, _GENAI_IDS.get(prefix, prefix), None)
    except (LookupError, ValueError):
        return None
    return found.context_window
