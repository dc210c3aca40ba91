"""Our own keys: found in an environment, and taken out of texts."""

from __future__ import annotations

import pytest

from handwork.config import LLMSettings, Settings
from handwork.config.own_keys import Masks, keys_in, without_keys


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("OPENAI_API_KEY", "sk-long-enough", "sk-long-enough"),
        ("github_pat", "ghp_whatever", "ghp_whatever"),
        ("PGPASSWORD", "correct horse", "correct horse"),
        ("DATABASE_URL", "postgres://me:s3cret-word@host/db", "s3cret-word"),
        ("BROKEN_URL", "http://[me:s3cret-word@host", ""),
        ("HOMEPAGE", "https://example.org", None),
        ("PATH", "/usr/bin", None),
        ("KEYBOARD", "neo layout", None),
    ],
)
def test_an_environment_holds_keys_under_names_that_say_so_and_passwords_in_addresses(
    name: str, value: str, found: str | None
) -> None:
    assert keys_in({name: value}) == (frozenset() if found is None else {found})


def test_settings_hide_their_own_keys_and_those_of_their_environment() -> None:
    settings = Settings(
        llm={"default": LLMSettings(api_key="sk-in-the-file")}, environ={"X_TOKEN": "in-the-environment"}
    )
    assert settings.hidden == {"sk-in-the-file", "in-the-environment"}
    again = settings.model_copy(update={"llm": {"default": LLMSettings(api_key="sk-another")}})
    assert "sk-another" in again.hidden


def test_keys_are_masked_in_texts_and_whatever_json_holds_them() -> None:
    masks = Masks(["secret-1", "secret-1-and-more"])
    assert masks.masked("a secret-1-and-more b secret-1") == "a *** b ***"
    assert masks.masked({"secret-1": ["secret-1", ("secret-1",), 1, None]}) == {"***": ["***", ["***"], 1, None]}
    masks.hide(["known-later"])
    assert masks.masked("known-later, secret-1") == "***, ***"


@pytest.mark.parametrize("word", ["short", "/etc/hosts/x", "env:OPENAI_API_KEY", ""])
def test_what_is_too_short_a_path_or_a_variables_name_hides_nothing(word: str) -> None:
    text = f"a {word} b"
    assert Masks([word]).masked(text) is text


def test_a_program_outside_of_the_sandbox_is_given_an_environment_without_keys() -> None:
    kept = {
        "PATH": "/usr/bin:/1",
        "HOME": "/home",
        "PWD": "/home",
        "XAUTHORITY": "/run/x",
        "LANG": "de",
        "SSH_AUTH_SOCK": "/s",
    }
    secret = {
        "OPENAI_API_KEY": "sk-1234567890",
        "SHORT_KEY": "1",
        "EMPTY_TOKEN": "",
        "DATABASE_URL": "postgres://me:s3cret-word@host/db",
        "HTTPS_PROXY": "http://me:s3cret-word@proxy",
        "COPY": "--key=sk-1234567890",
        "HANDWORK_LLM_API_KEY": "x",
        "HANDWORK_MODEL": "openai:x",
    }
    assert without_keys(kept | secret) == kept
