"""Token counts as chat-completions servers report them."""

from __future__ import annotations

from handwork.schema import JSON, Usage


def usage_of(value: JSON) -> Usage | None:
    """Our Usage; None when nothing was counted.

    Some servers (Gemini, xAI) leave reasoning out of completion_tokens but not out of the total: what is missing is added.
    """
    if not isinstance(value, dict):
        return None
    prompt_details, completion_details = (
        _dict(value, "prompt_tokens_details"),
        _dict(value, "completion_tokens_details"),
    )
    prompt, completion = _count(value, "prompt_tokens"), _count(value, "completion_tokens")
    if not prompt and not completion:
        return None
    hidden = max(0, _count(value, "total_tokens") - prompt - completion)
    cached = (
        _count(prompt_details, "cached_tokens")
        or _count(value, "prompt_cache_hit_tokens")
        or _count(value, "cached_tokens")
    )
    return Usage(
        input=prompt,
        cached=min(cached, prompt),
        written=min(_count(prompt_details, "cache_write_tokens"), prompt),
        output=completion + hidden,
        reasoning=max(_count(completion_details, "reasoning_tokens"), hidden),
    )


def cost_of(value: JSON) -> float | None:
    """USD that the provider itself reports (OpenRouter), if it does."""
    cost = value.get("cost") if isinstance(value, dict) else None
    return float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 < cost < 1e9 else None


def _dict(value: dict[str, JSON], name: str) -> dict[str, JSON]:
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}


def _count(value: dict[str, JSON], name: str) -> int:
    number = value.get(name)
    return int(number) if isinstance(number, int | float) and 0 < number < 1e12 else 0
