"""Keys as they are pasted: cleaned, refused kindly, and known by their form."""

from __future__ import annotations

import pytest

from handwork.config.key_forms import clean_key, owners_of, shown_key
from handwork.errors import ConfigError

OPENAI = "sk-proj-" + "aB3_" * 20


@pytest.mark.parametrize(
    "pasted",
    [
        OPENAI,
        f"  {OPENAI}\n",
        f"\r\n{OPENAI}\r\n",
        f'"{OPENAI}"',
        f"“{OPENAI}”",
        f"`{OPENAI}`",
        f"export OPENAI_API_KEY={OPENAI}",
        f"export OPENAI_API_KEY='{OPENAI}';",
        f"OPENAI_API_KEY = {OPENAI}",
        f'$env:OPENAI_API_KEY = "{OPENAI}"',
        f"set OPENAI_API_KEY={OPENAI}",
        f'"api_key": "{OPENAI}",',
        f'api_key = "{OPENAI}"',
        f"Authorization: Bearer {OPENAI}",
        f"x-api-key: {OPENAI}",
        f"Bearer {OPENAI}",
        f"{OPENAI[:40]}\n  {OPENAI[40:]}",
        f"{OPENAI[:9]}\u200b{OPENAI[9:]}\ufeff",
    ],
)
def test_what_comes_along_with_a_key_is_taken_off(pasted: str) -> None:
    assert clean_key(pasted) == OPENAI


@pytest.mark.parametrize("pasted", ["", "   ", "\n", '""', "export OPENAI_API_KEY="])
def test_nothing_is_nothing(pasted: str) -> None:
    assert clean_key(pasted) == ""


@pytest.mark.parametrize(
    ("pasted", "why"),
    [
        ("hello", "only 5 characters"),
        ("what is the weather like today?", "spaces"),
        ("https://platform.openai.com/api-keys", "an address"),
        ("sk-proj-…abcd efgh", "spaces"),
        ("sk-proj-abcdefgh…xyz1", "characters that no key has"),
        ("sk-proj-abcd...wxyz1234", "hidden"),
        ("sk-************************", "hidden"),
        ("your-api-key-goes-here", "stands in"),
        ("sk-ключключключключключ", "characters that no key has"),
        ("sk-" + "a" * 5000, "5003 characters"),
        ("sk-aaaaaaaaaaaaaaaa\x1b[2J", "characters that no key has"),
    ],
)
def test_nonsense_is_refused_with_a_reason_and_is_never_repeated(pasted: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        clean_key(pasted)
    assert caught.value.hint
    assert pasted not in str(caught.value)


HEX32 = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("key", "owners"),
    [
        (OPENAI, ["openai"]),
        ("sk-svcacct-" + "a1" * 20, ["openai"]),
        ("sk-" + "a1B2c" * 4 + "T3BlbkFJ" + "a1B2c" * 4, ["openai"]),
        ("sk-ant-api03-" + "aB3_" * 20 + "-AA", ["anthropic"]),
        ("sk-or-v1-" + "0f" * 32, ["openrouter"]),
        ("gsk_" + "aB3d" * 13, ["groq"]),
        ("AIza" + "aB3_" * 8 + "abc", ["google"]),
        ("xai-" + "aB3d" * 20, ["xai"]),
        ("csk-" + "ab3d" * 12, ["cerebras"]),
        ("fw_" + "aB3d" * 6, ["fireworks"]),
        ("tgp_v1_" + "aB3_" * 10, ["together"]),
        (HEX32 + "." + "aB3d" * 4, ["zhipu", "zai"]),
        ("sk-" + HEX32, ["deepseek", "dashscope"]),
        ("sk-" + "aB3dE" * 9 + "xyz", ["moonshot"]),
        ("sk-" + "abcd" * 12, ["moonshot", "siliconflow"]),
        ("sk_" + "aB3d" * 8, ["ppio", "jiekou"]),
        ("aB3d" * 8, ["mistral"]),
        ("some-house-made-token-1", []),
    ],
)
def test_a_keys_form_tells_whose_it_is_or_between_whom_to_ask(key: str, owners: list[str]) -> None:
    assert [provider.name for provider in owners_of(key)] == owners


def test_a_key_is_shown_so_that_only_its_owner_knows_it_again() -> None:
    assert shown_key(OPENAI) == "sk-proj-…aB3_"
    assert shown_key("sk-ant-api03-" + "x" * 50 + "f3a9") == "sk-ant-…f3a9"
    assert shown_key(HEX32) == "…cdef"
    assert shown_key("short") == "…"
