"""What is known of models by their names."""

from __future__ import annotations

import pytest

from handwork.llm.facts import context_window, sees_images

TEXT_ONLY = """
openai:gpt-3.5-turbo openai:gpt-4 openai:gpt-4-0613 openai:gpt-oss-120b openai:o1-mini openai:o3-mini
anthropic:claude-2.1 anthropic:claude-instant-1.2 deepseek:deepseek-chat deepseek:deepseek-reasoner
deepseek:deepseek-v4-pro openrouter:deepseek/deepseek-v3.2 custom:deepseek-r1:14b
openrouter:deepseek/deepseek-v4-flash custom:llama3 custom:llama3.1:8b custom:llama3.2 custom:llama3.2:3b
custom:llama3.3 openrouter:meta-llama/llama-3.3-70b-instruct:free groq:llama-3.1-8b-instant
custom:meta-llama/Llama-2-7b-chat-hf custom:Meta-Llama-3.1-8B-Instruct custom:meta-llama/Llama-3.2-1B-Instruct
custom:mistral-7b-instruct mistral:open-mixtral-8x22b mistral:codestral-latest mistral:mistral-large-2411
custom:devstral-small-2507 custom:qwen2.5:0.5b custom:qwen3:8b custom:Qwen/Qwen3-32B custom:qwen3-coder:30b
dashscope:qwen3-coder-plus custom:qwq custom:Qwen/Qwen2.5-Coder-7B-Instruct custom:Qwen3-Next-80B-A3B
moonshot:kimi-k2-0905-preview moonshot:kimi-k2-thinking openrouter:moonshotai/kimi-k2 zhipu:glm-4.6 zai:GLM-4.7
zai:glm-5 zai:glm-5.2 custom:glm-5.2:cloud zhipu:glm-4-plus openrouter:z-ai/glm-4.5-air
openrouter:minimax/minimax-m2.5 custom:phi3 custom:phi4 custom:phi-4-mini custom:phi3.5 custom:gemma:7b
custom:gemma2:9b custom:gemma3:1b custom:gemma-3-270m-it custom:smollm2:135m custom:tinyllama custom:command-r-plus
custom:granite4 openrouter:nvidia/nemotron-3-nano xai:grok-3 xai:grok-3-mini xai:grok-code-fast-1 local:smollm2-135m
custom:hermes3
"""
SEEING = """
openai:gpt-4o openai:gpt-4-turbo openai:gpt-4.1 openai:gpt-4.1-mini openai:gpt-4o-mini openai:gpt-5 openai:gpt-5.4
openai:gpt-6-astra openai:o1 openai:o3 openai:o4-mini openai:gpt-4-vision-preview openai:chatgpt-4o-latest
openai:gpt-4.5-preview anthropic:claude-3-5-haiku-latest anthropic:claude-sonnet-5 anthropic:claude-3-haiku
anthropic:claude-opus-4-1 anthropic:claude-fable-5-2 google:gemini-3-flash google:gemini-2.5-pro custom:gemma3:4b
custom:gemma3 custom:gemma-3-12b-it custom:gemma3n:e4b custom:gemma4 custom:gemma-4-31b-it custom:llava
custom:llama3.2-vision openrouter:meta-llama/llama-3.2-11b-vision-instruct custom:meta.llama3-2-11b-instruct-v1:0
custom:llama4 groq:meta-llama/llama-4-scout-17b-16e-instruct custom:qwen2.5vl:7b custom:Qwen/Qwen2.5-VL-7B-Instruct
custom:qwen3-vl:8b dashscope:qwen-vl-max dashscope:qwen3.5-plus custom:Qwen/Qwen3.5-9B custom:qwen3.6-27b
dashscope:qwen3.8-max dashscope:qwen-omni-turbo dashscope:qwen-max moonshot:kimi-k2.5 moonshot:kimi-k3
moonshot:moonshot-v1-8k-vision-preview zai:glm-4.5v zai:GLM-4.6V zai:GLM-4.6V-FlashX zhipu:glm-4v zhipu:glm-4v-plus
zai:glm-5v-turbo zai:glm-5.3 deepseek:deepseek-vl2 custom:deepseek-ocr mistral:pixtral-large-latest
mistral:mistral-large-latest mistral:mistral-medium-3 mistral:mistral-small-latest custom:mistral-small3.2
custom:ministral-3 mistral:mistral-large-3 xai:grok-4 xai:grok-2-vision-1212 xai:grok-4-fast-reasoning
custom:phi-4-multimodal-instruct custom:granite3.2-vision custom:minicpm-v openrouter:minimax/minimax-m3
custom:internvl3 openrouter:nvidia/nemotron-nano-12b-v2-vl custom:my-own custom:moondream
"""


@pytest.mark.parametrize("name", TEXT_ONLY.split())
def test_a_text_only_family_is_known_by_its_names(name: str) -> None:
    assert not sees_images(name)


@pytest.mark.parametrize("name", SEEING.split())
def test_models_that_see_and_unknown_ones_are_taken_to_see(name: str) -> None:
    assert sees_images(name)


def test_the_context_window_is_known_where_the_table_has_it() -> None:
    assert context_window("openai:gpt-4o") == 128_000
    assert (context_window("anthropic:claude-sonnet-5") or 0) >= 200_000
    assert (context_window("xai:grok-4.6") or 0) > 100_000
    assert context_window("custom:gpt-4o", "https://api.openai.com/v1") == 128_000


@pytest.mark.parametrize(
    "name", ["custom:mine", "local:smollm2-135m", "openai:no-such-model", "", "nocolon", "scripted:model"]
)
def test_an_unknown_context_window_is_unknown(name: str) -> None:
    assert context_window(name) is None


def test_a_model_on_this_machine_has_the_window_that_its_server_gave_it_which_nobody_knows() -> None:
    assert context_window("openai:gpt-4o", "http://127.0.0.1:8000/v1") is None
