"""A provider's refusals, in everybody's words, as typed errors."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from handwork.errors import (
    AuthenticationError,
    BadRequestError,
    ContentFilterError,
    HandworkError,
    ModelNotFoundError,
    ModelTimeoutError,
    OverloadedError,
    PermissionDeniedError,
    QuotaError,
    RateLimitError,
    ServerError,
    TokenLimitExceeded,
    TransientModelError,
)
from handwork.llm.failures import Source, error_of, mask, retry_after

SOURCE = Source("openai", "gpt-x", "my-secret-key-1234")


def body(message: str, code: object = None, kind: str = "") -> bytes:
    return json.dumps({"error": {"message": message, "code": code, "type": kind}}).encode()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, BadRequestError),
        (401, AuthenticationError),
        (402, QuotaError),
        (403, PermissionDeniedError),
        (404, ModelNotFoundError),
        (405, BadRequestError),
        (408, ModelTimeoutError),
        (409, TransientModelError),
        (413, TokenLimitExceeded),
        (418, BadRequestError),
        (422, BadRequestError),
        (429, RateLimitError),
        (500, ServerError),
        (502, ServerError),
        (503, OverloadedError),
        (504, ServerError),
        (529, OverloadedError),
    ],
)
def test_the_status_decides_where_the_words_say_nothing(status: int, error: type[HandworkError]) -> None:
    for text in (b"", b"<html>no</html>", body("no")):
        assert type(error_of(SOURCE, status, text)) is error


OVERFLOWS = [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 10000 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
    "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "Please reduce the length of the messages or completion.",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000",
    "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
    "The decoder prompt (length 4000) is longer than the maximum model length of 2048.",
    "the request exceeds the available context size, try increasing it",
    "input length exceeds maximum context length",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081",
    "Input is too long for requested model.",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Range of input length should be [1, 30720]",
    "Invalid request: Your request exceeded model token limit: 8192",
    "Prompt exceeds max length",
    "Request body too large for gpt-4o model. Max size: 8000 tokens.",
    "Trying to keep the first 5000 tokens when context the overflows.",
]


@pytest.mark.parametrize("message", OVERFLOWS)
def test_a_context_overflow_is_found_in_whatever_words(message: str) -> None:
    for status in (400, 413, 422, 500):
        assert type(error_of(SOURCE, status, body(message))) is TokenLimitExceeded
    assert type(error_of(SOURCE, None, {"error": {"message": message}})) is TokenLimitExceeded


def test_a_context_overflow_is_found_by_its_code() -> None:
    assert type(error_of(SOURCE, 400, body("no", "context_length_exceeded"))) is TokenLimitExceeded
    assert type(error_of(SOURCE, 400, body("no", None, "exceed_context_size_error"))) is TokenLimitExceeded


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
        "Token limit reached",
        "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    ],
)
def test_other_talk_of_tokens_is_no_overflow(message: str) -> None:
    assert type(error_of(SOURCE, 400, body(message))) is BadRequestError


def test_a_request_larger_than_the_rate_limit_is_an_overflow_since_waiting_does_not_help() -> None:
    message = "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000."
    assert type(error_of(SOURCE, 429, body(message, "rate_limit_exceeded"))) is TokenLimitExceeded


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (429, "You exceeded your current quota, please check your plan and billing details.", "insufficient_quota"),
        (402, "Insufficient Balance", None),
        (402, "This request requires more credits, or fewer max_tokens.", 402),
        (400, "Your credit balance is too low to access the API.", None),
        (403, "Your account has insufficient credits", None),
    ],
)
def test_an_empty_account_is_no_rate_limit(status: int, message: str, code: object) -> None:
    assert type(error_of(SOURCE, status, body(message, code))) is QuotaError


@pytest.mark.parametrize(
    "message",
    [
        "Rate limit reached for requests. Please try again in 20s. Add a payment method at https://x.org/account/billing to get more.",
        "You exceeded your current quota, please check your plan and billing details. Please retry in 34.07s.",
        "Too many requests",
    ],
)
def test_a_rate_limit_is_no_empty_account(message: str) -> None:
    assert type(error_of(SOURCE, 429, body(message))) is RateLimitError


@pytest.mark.parametrize(
    ("status", "message", "error"),
    [
        (400, "API key not valid. Please pass a valid API key.", AuthenticationError),
        (400, "Incorrect API key provided: sk-ab", AuthenticationError),
        (400, "foo/bar is not a valid model ID", ModelNotFoundError),
        (
            400,
            "The response was filtered due to the prompt triggering the content management policy",
            ContentFilterError,
        ),
        (403, "Your input was flagged by moderation", ContentFilterError),
        (500, "The server is overloaded", OverloadedError),
        (404, "billing: no such model", ModelNotFoundError),
    ],
)
def test_words_say_more_than_the_status(status: int, message: str, error: type[HandworkError]) -> None:
    assert type(error_of(SOURCE, status, body(message))) is error


@pytest.mark.parametrize(
    "value",
    [
        [{"error": {"message": "deep", "code": 400}}],
        {"error": "deep"},
        {"message": "deep"},
        {"detail": "deep"},
        {"detail": [{"msg": "deep"}]},
        {"error": {"message": {"a": "deep"}}},
        "deep",
        {"error": {"message": "x", "metadata": {"raw": "deep"}}},
    ],
)
def test_the_message_is_found_in_every_shape(value: object) -> None:
    assert "deep" in str(error_of(SOURCE, 400, json.dumps(value).encode()))


@pytest.mark.parametrize(
    "value", [None, [], 7, {"error": None}, {"error": []}, {"error": {"message": None, "code": {}}}]
)
def test_a_senseless_body_gives_an_error_all_the_same(value: object) -> None:
    assert type(error_of(SOURCE, 400, json.dumps(value).encode())) is BadRequestError


def test_an_error_names_provider_model_status_and_what_to_do_but_never_the_key() -> None:
    error = error_of(SOURCE, 401, body(f"Incorrect key {SOURCE.key} and sk-proj-abcdefghijklmnopqrst, Bearer abc"))
    text = str(error)
    assert text.startswith("openai:gpt-x: HTTP 401: ")
    assert "check the API key" in text
    assert not [secret for secret in (SOURCE.key, "abcdefghijklmnopqrst", "Bearer abc") if secret in text]
    assert (error.status, error.provider, error.model) == (401, "openai", "gpt-x")
    assert SOURCE.key not in repr(SOURCE)


def test_a_key_is_masked_and_honest_text_is_not() -> None:
    assert mask("a my-key b", "my-key") == "a *** b"
    assert mask("the keynote, a task-force", "") == "the keynote, a task-force"


def test_a_huge_body_is_shown_in_part() -> None:
    assert len(str(error_of(SOURCE, 500, b"x" * 100000))) < 1000


# ---- how long to wait


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("1e12", 1e12),
        ("inf", float("inf")),
        ("nan", None),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_in_seconds(text: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": text}) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Wed, 21 Oct 2026 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2026 07:27:00 GMT", 0.0),
        ("Wed, 21 Oct 2026 09:28:10 +0200", 10.0),
        ("Wed, 99 Oct 2026 07:28:00 GMT", None),
        ("Wed, 21 Oct 99999 07:28:00 GMT", None),
    ],
)
def test_retry_after_as_a_date(text: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": text}, datetime(2026, 10, 21, 7, 28, tzinfo=UTC)) == seconds


def test_retry_after_in_milliseconds_goes_first() -> None:
    assert retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Please try again in 20s.", 20.0),
        ("Please try again in 6m0s.", 360.0),
        ("try again in 345ms", 0.345),
        ("Please retry in 34.07s.", 34.07),
        ("retry after 5 seconds", 5.0),
        ("slow down", None),
    ],
)
def test_a_wait_that_only_the_message_tells(message: str, seconds: float | None) -> None:
    found = error_of(SOURCE, 429, body(message)).retry_after
    assert found == seconds


def test_the_header_goes_over_the_message() -> None:
    assert error_of(SOURCE, 429, body("try again in 20s"), {"retry-after": "3"}).retry_after == 3.0


def test_googles_retry_delay_is_read() -> None:
    details = {"error": {"code": 429, "message": "x", "details": [{"retryDelay": "34s"}]}}
    assert error_of(SOURCE, 429, json.dumps(details).encode()).retry_after == 34.0


def test_every_error_can_be_printed_whatever_a_server_puts_into_it() -> None:
    said = str(error_of(SOURCE, 400, b'{"error": {"message": "no \\ud800 way"}}'))
    assert "no \ufffd way" in said
    assert said.encode().decode() == said
