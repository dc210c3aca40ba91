"""What is shown of a secret: enough to know it by, too little to use it."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handwork.config.masking import masked, shown, without_secrets


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("", ""),
        ("short", "…"),
        ("sk-123456789", "sk-…"),
        ("sk-abcdefghijklmnop1234", "sk-…1234"),
        ("0123456789abcdefghij", "…ghij"),
        ("Bearer abcdefghijkl", "Bearer …"),
        ("Bearer sk-abcdefghijklmnop1234", "Bearer sk-…1234"),
        ("correct horse battery staple", "…"),
        ("env:NAME", "env:NAME"),
        ("Bearer env:NAME", "Bearer env:NAME"),
        ("${NAME}", "${NAME}"),
        ("Bearer ${env:NAME}", "Bearer ${env:NAME}"),
        ("${NAME:-hunter2}", "…"),
        ("hunter2${NAME}", "…"),
        ("${hunter-2}", "…"),
        ("env:sk-proj-abcdefghijklmnop1234", "…1234"),
        ("env:gsk_abcdefghijklmnop1234", "…1234"),
        ("hunter2 env:x", "…"),
        ("xenv:hunter2", "…"),
        ("wss://user:pass@host/x?token=abc", "wss://…@host/x?token=…"),
    ],
)
def test_a_secret_shows_its_kind_and_at_most_four_characters(secret: str, text: str) -> None:
    assert masked(secret) == text


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("https://user:pass@host/v1", "https://…@host/v1"),
        ("https://us%40er:p@ss/w@host/v1", "https://…@host/v1"),
        ("https://host/v1?api-version=2024&key=abc", "https://host/v1?api-version=2024&key=…"),
        ("--proxy-server=http://u:p@x", "--proxy-server=http://…@x"),
        ("serve --api-key abc --port 1", "serve --api-key … --port 1"),
        ("--token=abc", "--token=…"),
        ("Authorization: Bearer abc", "Authorization: …"),
        ('{"password": "abc"}', '{"password": "…"}'),
        ("run with sk-abcdefghijklmnop1234 now", "run with sk-…1234 now"),
        ("gpt-5", "gpt-5"),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1/"),
        ("whitezxj/sandbox:0.1.0", "whitezxj/sandbox:0.1.0"),
        ("us.anthropic.claude-3-7-sonnet-20250219-v1:0", "us.anthropic.claude-3-7-sonnet-20250219-v1:0"),
    ],
)
def test_secrets_in_other_texts_are_hidden(text: str, hidden: str) -> None:
    assert without_secrets(text) == hidden


def test_an_argument_behind_an_option_for_a_secret_is_hidden() -> None:
    given = ["-y", "server", "--api-key", "abc", "--header", "X: y", "--token", "--quiet"]
    assert shown(given) == ["-y", "server", "--api-key", "…", "--header", "…", "--token", "--quiet"]
    assert shown({"A": "abc", "B": "env:X"}, secret=True) == {"A": "…", "B": "env:X"}
    assert shown({"A": 1, "b": None, "c": [True]}) == {"A": 1, "b": None, "c": [True]}


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=5))
def test_no_secret_is_shown_whole(secret: str) -> None:
    if not secret.isspace() and not any(part in secret for part in ("env:", "${", "://")):  # an address is looked into
        assert secret not in masked(secret)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet="abcxyz0123456789-_.~!$", min_size=8, max_size=40), st.text(alphabet="abc", min_size=1))
def test_a_password_of_an_address_is_never_shown(password: str, user: str) -> None:
    assert password not in without_secrets(f"see http://{user}:{password}@host:1/path and more")
