"""The words in which providers refuse, as patterns; each is compiled when the first refusal is read."""

from __future__ import annotations

import re


def says(pattern: str, text: str) -> bool:
    """Whether one of these patterns is found in a text."""
    return re.search(pattern, text) is not None


CONTEXT = r"""(?ix)
    context[ _-]?(length|window|size|limit) | maximum\ (context|prompt|model|input)\ (length|size) | exceed_context
    | prompt\ (is|was)\ too\ long | input\ (is|was)\ too\ long | prompt\ exceeds\ max | request\ exceeds\ the\ available
    | input\ token\ count | too\ many\ (input\ )?tokens | reduce\ the\ length\ of | tokens_limit_reached | content':\ string\ too\ long
    | (exceed(s|ed)?|over)\ (the\ )?(model('s)?\ )?(max(imum)?\ )?(input\ |prompt\ )?token\ limit
    | range\ of\ input\ length | max_new_tokens`?\ must\ be | longer\ than\ the\ maximum\ model | must\ have\ less\ than\ \d+\ tokens
    | (request|body|prompt|input)\ (body\ )?too\ large | tokens\ in\ the\ prompt\ cannot\ exceed | too\ large\ for\ model
    | context\ the\ overflows | maximum\ number\ of\ (input\ )?tokens | number\ of\ tokens\ to\ keep"""
TOO_LARGE_FOR_LIMIT = r"(?i)request too large|(input|output) tokens must be reduced"
QUOTA = r"""(?ix)
    insufficient[ _-]?(quota|balance|credits?|funds) | credit\ balance | exceeded\ your\ current\ quota | out\ of\ credits?
    | (more|enough|no|purchase|remaining)\ credits? | billing | payment\ required | (usage|spend|spending|hard|budget)\ limit
    | quota_?exceeded | arrears"""
FILTER = (
    r"(?i)content[ _-]?(filter|policy|management policy)|responsible_?ai|flagged|moderation|safety (system|settings)|"
    r"data_inspection_failed"
)
NO_VISION = r"""(?ix)
    unknown\ variant\W+image | (not|n't)\ (currently\ )?(support|accept|allow|handle)\w*\ (\w+[ -]){0,3}(image|vision|multi-?modal)
    | (image|vision|multi-?modal)\w*(\ \w+){0,3}\ (is|are)\ not\ (\w+\ )?(support|allow|enabl|available|accept)
    | support\ image\ input | data\ required\ for\ image | image_url\W+is\ only\ supported | at\ most\ 0\ image | mmproj
    | not\ a\ (multi-?modal|vision)\ model | only\ supports?\ text | content\ type.{0,20}image.{0,40}not\ supported"""
"""No model of this place takes pictures: DeepSeek, OpenRouter, Ollama, LM Studio, llama.cpp, vLLM and OpenAI in their own words."""
BAD_IMAGE = r"""(?ix)
    (could\ not|cannot|can't|unable\ to|failed\ to|error)\ (process|decod|pars|load|read|download|identif)\w*\ (\w+\ ){0,3}image
    | (invalid|unsupported|malformed|corrupt\w*|broken)[ _](\w+[ _]){0,2}image | image[ _](parse|format|size|dimension)\w*
    | image.{0,60}\b(exceed|too\ (large|small|many)|corrupt|unsupported|invalid|not\ valid|could\ not\ be|does\ not\ match|malformed)
    | too\ many\ images"""
BAD_KEY = r"(?i)(invalid|incorrect|missing|expired|valid|no) api[ _-]?key|api[ _-]?key (is )?(not|in)[ _-]?valid"
NO_MODEL = (
    r"(?is)model[ _-]?not[ _-]?found|model\b.{0,120}\b(does not exist|not found)|not a valid model|no such model|unknown model|"
    r"invalid model"
)
TOO_OFTEN = r"(?i)rate.?limit|too many requests"
OVERLOADED = r"(?i)overloaded|over capacity|at capacity|server is busy"
