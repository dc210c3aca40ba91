"""The rules of [policy]: one line each, read into what it says."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from handwork.config.host_names import host_pattern
from handwork.errors import ConfigError
from handwork.schema import JSON, Verdict

RuleKind: TypeAlias = Literal["read", "write", "run", "network", "tool", "call"]

_KINDS: tuple[RuleKind, ...] = get_args(RuleKind)
_LONGEST = 100_000
_SHOWN = 80
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.", re.DOTALL)
_OF_THE_SHELL = re.compile(r"[*?\[\]{}$`;&|<>()#~]")
_TOOL = re.compile(r"[\w.:/-]*\*?")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: what is decided about which accesses.

    pattern: as it was written, without what does not count.
    words: of a `run` rule: the words of the command, as the program gets them.
    open: of a `run` rule: whether any further words may follow (`*` at the end).
    ours: whether it keeps Handwork's own files and no user wrote it.
    """

    verdict: Verdict
    kind: RuleKind
    pattern: str
    words: tuple[str, ...] = ()
    open: bool = False
    ours: bool = False

    def __str__(self) -> str:
        return f"{self.verdict.value} {self.kind} {self.pattern}"


def parse_rule(text: str) -> Rule:
    """Read a rule: verdict (allow, ask, deny), kind (read, write, run, network, tool, call), pattern. Raises ConfigError."""
    if len(text) > _LONGEST or not text.isprintable():
        what = (
            f"is longer than {_LONGEST:,} characters" if text.isprintable() else "holds a character that is not shown"
        )
        raise ConfigError(f"the rule {_short(text)} {what}")
    first, second, pattern = [*text.split(None, 2), "", "", ""][:3]
    pattern = pattern.strip()
    verdict = next((each for each in Verdict if each.value == first), None)
    if verdict is None:
        raise _wrong(text, f"begins with {first or 'nothing'}", _nearest(first, [each.value for each in Verdict]))
    kind = next((each for each in _KINDS if each == second), None)
    if kind is None:
        raise _wrong(text, f"has {second or 'nothing'} where its kind belongs", _nearest(second, _KINDS))
    if not pattern:
        raise _wrong(text, "names nothing", f"for example: {_EXAMPLES[kind]}")
    return _READERS[kind](verdict, pattern)


def call_pattern(tool: str, arguments: JSON) -> str:
    """The pattern of a `call` rule that names exactly this call: the same arguments in any order and spacing are one text."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"{tool} " + "".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in text)


def run_pattern(words: tuple[str, ...]) -> str:
    """The pattern of a `run` rule that names exactly these words."""
    return shlex.join(words)


def _path_rule(kind: Literal["read", "write"], verdict: Verdict, pattern: str) -> Rule:
    if pattern.startswith("~") and not pattern.startswith("~/") and pattern != "~":
        raise _wrong(pattern, "names another user's home folder", "write the whole path")
    if any("**" in part and part != "**" for part in pattern.split("/")):
        raise _wrong(pattern, "has ** beside other characters", "** stands for any folders, alone between slashes")
    return Rule(verdict, kind, pattern)


def _read_rule(verdict: Verdict, pattern: str) -> Rule:
    return _path_rule("read", verdict, pattern)


def _write_rule(verdict: Verdict, pattern: str) -> Rule:
    return _path_rule("write", verdict, pattern)


def _run_rule(verdict: Verdict, pattern: str) -> Rule:
    closed = re.sub(r"(^|\s)\*$", "", pattern)
    if found := _OF_THE_SHELL.search(_QUOTED.sub("", closed)):
        hint = "a rule names the words of one command; * may stand alone at its end; what is meant as it is gets quotes"
        raise _wrong(pattern, f"has {found[0]}, which means something else to a shell", hint)
    try:
        words = tuple(shlex.split(closed))
    except ValueError as error:
        raise _wrong(pattern, f"cannot be read: {error}", "close its quotes") from None
    return Rule(verdict, "run", pattern, words, closed != pattern)


def _network_rule(verdict: Verdict, pattern: str) -> Rule:
    try:
        return Rule(verdict, "network", host_pattern(pattern))
    except ValueError as error:
        raise _wrong(pattern, f"names no host: {error}", f"for example: {_EXAMPLES['network']}") from None


def _tool_rule(verdict: Verdict, pattern: str) -> Rule:
    if not _TOOL.fullmatch(pattern):
        raise _wrong(pattern, "is no tool's name", "* may stand at its end")
    return Rule(verdict, "tool", pattern)


def _call_rule(verdict: Verdict, pattern: str) -> Rule:
    tool, _, text = pattern.partition(" ")
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _wrong(pattern, f"has no JSON behind the tool's name: {error}", _EXAMPLES["call"]) from None
    if not isinstance(arguments, dict):
        raise _wrong(pattern, "has no JSON object behind the tool's name", _EXAMPLES["call"])
    return Rule(verdict, "call", call_pattern(tool, arguments))


_EXAMPLES: dict[RuleKind, str] = {
    "read": "ask read secrets/**",
    "write": "deny write .github/**",
    "run": "allow run git status",
    "network": "allow network *.example.com",
    "tool": "allow tool web_search",
    "call": 'allow call web_search {"query":"weather"}',
}
_READERS = {
    "read": _read_rule,
    "write": _write_rule,
    "run": _run_rule,
    "network": _network_rule,
    "tool": _tool_rule,
    "call": _call_rule,
}


def _wrong(text: str, what: str, hint: str) -> ConfigError:
    return ConfigError(f"the rule {_short(text)} {what}", hint=hint)


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def _nearest(word: str, known: list[str] | tuple[str, ...]) -> str:
    near = get_close_matches(word.lower(), known, 1, 0.6)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"


def _checked(text: str) -> str:
    try:
        parse_rule(text)
    except ConfigError as error:
        raise PydanticCustomError("policy_rule", "{what}", {"what": error.what, "hint": error.hint}) from None
    return text


PolicyRule = Annotated[str, AfterValidator(_checked)]
"""A rule as it is written."""
