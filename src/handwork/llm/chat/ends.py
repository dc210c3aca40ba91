"""What servers call the end of an answer, in OpenAI's words."""

from __future__ import annotations

from handwork.errors import BrokenStreamError, ModelError, OverloadedError, ServerError

_WORDS = {
    "stop": (
        "stop eos eos_token eot end_of_turn end_of_text endoftext end_turn end stop_sequence stop_token complete "
        "completed done finished normal"
    ),
    "length": (
        "length max_tokens max_length max_output_tokens max_new_tokens max_completion_tokens model_length token_limit "
        "error_limit context_length model_context_window_exceeded"
    ),
    "tool_calls": "tool_calls tool_call tool_use tools function_call function_calls function",
    "content_filter": (
        "content_filter content_filtered filtered safety recitation refusal blocklist prohibited_content spii image_safety "
        "image_prohibited_content image_recitation model_armor sensitive guardrail guardrail_intervened guardrails moderation "
        "flagged error_toxic content_policy content_policy_violation policy_violation blocked"
    ),
}
FINISH = {word: meaning for meaning, words in _WORDS.items() for word in words.split()}
"""Every known end that is an answer, or a filter in place of one. Any other is no end: the answer is not whole."""
FAILED: dict[str, type[ModelError]] = {
    "error": ServerError,
    "insufficient_system_resource": OverloadedError,
    "malformed_function_call": BrokenStreamError,
}


def finish_word(reason: str) -> str:
    """A finish reason in one spelling: `MAX_TOKENS`, `tool-calls`, `FinishReason.STOP`."""
    return reason.strip().rpartition(".")[2].lower().replace("-", "_").replace(" ", "_")
