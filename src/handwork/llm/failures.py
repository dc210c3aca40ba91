"""A provider's status and body, in whatever words, as one of our typed errors."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from handwork.errors import (
    AuthenticationError,
    BadRequestError,
    ContentFilterError,
    ImageRefusedError,
    ModelError,
    ModelNotFoundError,
    ModelTimeoutError,
    NoVisionError,
    OverloadedError,
    PermissionDeniedError,
    QuotaError,
    RateLimitError,
    ServerError,
    TokenLimitExceeded,
    TransientModelError,
)
from handwork.llm.failure_words import (
    BAD_IMAGE,
    BAD_KEY,
    CONTEXT,
    FILTER,
    NO_MODEL,
    NO_VISION,
    OVERLOADED,
    QUOTA,
    TOO_LARGE_FOR_LIMIT,
    TOO_OFTEN,
    says,
)
from handwork.llm.jsontext import parse
from handwork.schema import JSON, scrub

_E = TypeVar("_E", bound=ModelError)
_SHOWN = 600
"""Characters of a provider's message that we pass on."""
SENSELESS = (TypeError, ValueError, ArithmeticError, RecursionError, LookupError, AttributeError)
"""What reading an answer raises when it has a shape that nobody thought of."""
_BY_TYPE: dict[str, type[ModelError]] = {
    "authentication_error": AuthenticationError,
    "unauthenticated": AuthenticationError,
    "unauthorized": AuthenticationError,
    "invalid_api_key": AuthenticationError,
    "permission_error": PermissionDeniedError,
    "permission_denied": PermissionDeniedError,
    "forbidden": PermissionDeniedError,
    "not_found_error": ModelNotFoundError,
    "not_found": ModelNotFoundError,
    "model_not_found": ModelNotFoundError,
    "invalid_request_error": BadRequestError,
    "invalid_request": BadRequestError,
    "invalid_argument": BadRequestError,
    "failed_precondition": BadRequestError,
    "unsupported_value": BadRequestError,
    "request_too_large": TokenLimitExceeded,
    "billing_error": QuotaError,
    "rate_limit_error": RateLimitError,
    "resource_exhausted": RateLimitError,
    "overloaded_error": OverloadedError,
    "unavailable": OverloadedError,
    "timeout_error": ModelTimeoutError,
    "deadline_exceeded": ModelTimeoutError,
}
"""What providers write as type, code or status of an error inside a 200 answer, where no HTTP status tells."""

_RETRY_IN = r"(?i)(?:try again|retry|wait)(?: again)?(?: in| after|:)?\s+(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)\s*(ms|s\b|sec))?"
_RETRY_DELAY = re.compile(r'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"')
_SECRET = re.compile(r"\b(sk|gsk|xai|pk|rk|key|AIza)[-_]?[A-Za-z0-9_-]{16,}|(?<=Bearer )\S+")


@dataclass(frozen=True, slots=True)
class Source:
    """Whose answer it is: names for the message, and what must never be in it (the key, the values of configured headers).

    `about_key` is what to do when the key is refused: where it came from, or which one did not go there; '' for the usual words.
    """

    provider: str = ""
    model: str = ""
    key: str = field(default="", repr=False)
    headers: tuple[str, ...] = field(default=(), repr=False)
    about_key: str = ""

    def error(
        self, kind: type[_E], message: str, hint: str = "", *, status: int | None = None, wait: float | None = None
    ) -> _E:
        """An error of this kind that names provider and model; every model error is made here; none shows a secret, and
        each can be printed and stored."""
        if self.about_key and issubclass(kind, AuthenticationError):
            hint = self.about_key
        message, hint = scrub(self.clean(message)), scrub(self.clean(hint))
        return kind(message, provider=self.provider, model=self.model, hint=hint, status=status, retry_after=wait)

    def clean(self, text: str) -> str:
        """The text without our secrets, nor anything that looks like one."""
        for value in self.headers:
            for secret in (value, value.rpartition(" ")[2]):  # `Bearer …`
                if len(secret) >= 8:  # a shorter one is no secret, and its letters may stand anywhere
                    text = mask(text, secret)
        return mask(text, self.key)


def mask(text: str, key: str = "") -> str:
    """The text without the key, nor anything that looks like one."""
    if len(key) >= 4:
        text = text.replace(key, "***")
    return _SECRET.sub("***", text)


def error_of(
    source: Source,
    status: int | None,
    body: bytes | JSON,
    headers: Mapping[str, str] | None = None,
    now: datetime | None = None,
) -> ModelError:
    """The typed error of a refusal.

    Args:
        status: the HTTP status; None for an error inside a 200 answer, where the body's own number counts.
        body: raw bytes, or the parsed JSON.
        headers: names in lower case; Retry-After is read from them, else from the message.
        now: the wall clock, for Retry-After as a date.
    """
    try:
        return _understood(source, status, body, headers or {}, now)
    except SENSELESS:
        kind = _kind(status, "", "", None)
        prefix = f"HTTP {status}: " if status else ""
    return source.error(kind, f"{prefix}an error that makes no sense", status=status)


def _understood(
    source: Source, status: int | None, body: bytes | JSON, headers: Mapping[str, str], now: datetime | None
) -> ModelError:
    value = _parsed(body) if isinstance(body, bytes) else body
    message, codes, number = _read(value)
    raw = body if isinstance(body, bytes) else repr(value).encode(errors="replace")
    if status is None or status < 400:
        status = number or status
    everything = f"{codes} {message}"
    wait = retry_after(headers, now)
    if wait is None:
        wait = _told_wait(everything, raw)
    kind = _kind(status, codes, everything, wait)
    # masked before it is cut: half a key is still half a key
    shown = source.clean(message or raw.decode(errors="replace").strip() or "no message")
    if len(shown) > _SHOWN:
        shown = shown[:_SHOWN] + " …"
    prefix = f"HTTP {status}: " if status else ""
    return source.error(kind, prefix + shown, status=status, wait=wait)


def _kind(status: int | None, codes: str, text: str, wait: float | None) -> type[ModelError]:
    if status in (None, 400, 404, 415, 422, 500, 501) and says(NO_VISION, text):
        return NoVisionError
    if status not in (401, 404) and (found := _worded(status, codes, text, wait)):
        return found
    if status is None:
        typed = next((_BY_TYPE[code] for code in codes.lower().split() if code in _BY_TYPE), None)
        return typed or (OverloadedError if says(OVERLOADED, text) else ServerError)
    if status >= 500:
        return OverloadedError if status in (503, 529) or says(OVERLOADED, text) else ServerError
    known: dict[int, type[ModelError]] = {
        401: AuthenticationError,
        402: QuotaError,
        403: PermissionDeniedError,
        404: ModelNotFoundError,
        408: ModelTimeoutError,
        409: TransientModelError,
        413: TokenLimitExceeded,
        425: TransientModelError,
        429: RateLimitError,
    }
    return known.get(status, BadRequestError)


def _worded(status: int | None, codes: str, text: str, wait: float | None) -> type[ModelError] | None:
    """What the words say, where they say more than the status."""
    if status == 429:
        if says(TOO_LARGE_FOR_LIMIT, text):
            return TokenLimitExceeded
        # "check your plan and billing … retry in 34 s" is a rate limit: what passes by itself is no empty account
        return QuotaError if "insufficient_quota" in codes or (wait is None and says(QUOTA, text)) else None
    if status is None and says(TOO_OFTEN, text):
        return RateLimitError
    if status in (None, 400, 413, 422, 500) and says(CONTEXT, text):
        return TokenLimitExceeded
    if status in (None, 400, 403, 422) and says(FILTER, text):
        return ContentFilterError
    if status in (None, 400, 415, 422) and says(BAD_IMAGE, text):
        return ImageRefusedError
    if status in (None, 400, 402, 403) and says(QUOTA, text):
        return QuotaError
    if status in (None, 400, 403) and says(BAD_KEY, text):
        return AuthenticationError
    if status in (None, 400, 422) and says(NO_MODEL, text):
        return ModelNotFoundError
    return None


def _parsed(body: bytes) -> JSON:
    try:
        return parse(body)
    except ValueError:
        return None


def _read(value: JSON) -> tuple[str, str, int | None]:
    """(message, codes, number) of the error objects in use: OpenAI's, OpenRouter's, Google's list, vLLM's, FastAPI's, bare text."""
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, str):
        return value, "", None
    if not isinstance(value, dict):
        return "", "", None
    error = value.get("error") or value
    if isinstance(error, str):
        error = {"message": error} | {name: value[name] for name in ("code", "type", "status") if name in value}
    if not isinstance(error, dict):
        return str(error), "", None
    message = next((error[name] for name in ("message", "detail", "msg", "reason") if error.get(name)), "")
    if not isinstance(message, str):
        message = repr(message)
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and (raw := metadata.get("raw")):
        message = f"{message}: {raw}"
    labels = [error.get(name) for name in ("code", "type", "status", "status_code")]
    return message, " ".join(str(label) for label in labels if label), _number(labels)


def _number(labels: list[JSON]) -> int | None:
    for label in labels:
        if isinstance(label, str) and label.isdecimal() and len(label) == 3:
            label = int(label)
        if isinstance(label, int) and not isinstance(label, bool) and 400 <= label <= 599:
            return label
    return None


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that the headers ask us to wait; None if they do not, or make no sense. Never negative."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        try:
            seconds = float(text) * unit
        except ValueError:
            continue
        if not math.isnan(seconds):
            return max(0.0, seconds)
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())


def _told_wait(text: str, raw: bytes) -> float | None:
    """A wait that only the message tells: `Please try again in 6m0s`, `retryDelay: 34s`."""
    if found := _RETRY_DELAY.search(raw[:65536].decode(errors="replace")):
        return float(found[1])
    for found in re.finditer(_RETRY_IN, text):
        hours, minutes, seconds, unit = found.groups()
        if hours or minutes or seconds:
            fraction = float(seconds or 0) / (1000 if (unit or "").lower() == "ms" else 1)
            return float(hours or 0) * 3600 + float(minutes or 0) * 60 + fraction
    return None
