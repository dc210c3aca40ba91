"""Output that is no text: named by its size, instead of thousands of signs for what cannot be shown."""

from __future__ import annotations

_SIGN = "\ufffd"
_FEW, _SHARE = 200, 10
"""So many signs may stand in any output; more of them, and one in so many characters, make it no text."""
_ADVICE = "What is left out of the output is no text in UTF-8: send it to a file and look at that with file, xxd | head or iconv."


def without_bytes(output: str) -> tuple[str, str]:
    """The output without what is no text between its first and its last readable lines; a sentence for the model, or ''.

    output: decoded, with a replacement character for each control character and each byte that is none of UTF-8.
    """
    signs = output.count(_SIGN)
    if signs <= _FEW or signs * _SHARE < len(output):
        return output, ""
    begin = output.rfind("\n", 0, output.index(_SIGN)) + 1
    end = output.find("\n", output.rindex(_SIGN))
    end = len(output) if end < 0 else end
    named = f"[{end - begin:,} characters that are no text are left out]"
    return f"{output[:begin]}{named}{output[end:]}", _ADVICE
