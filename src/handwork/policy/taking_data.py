"""Programs that take what they read as data: no word of it becomes a command, a program or the name of what is written."""

from __future__ import annotations

import re
from collections.abc import Sequence

from handwork.policy.exec_flags import exec_flags, program_of
from handwork.policy.word import Word

_PROGRAM = re.compile(
    r"((/usr)?/bin/)?("
    r"cat|tac|nl|head|tail|rev|cut|tr|sort|uniq|wc|column|fold|fmt|expand|unexpand|paste|comm|join|diff|cmp|"
    r"[ef]?grep|rg|sed|[gmn]?awk|jq|od|hexdump|strings|base(64|32)|cksum|sum|md5sum|sha(1|224|256|384|512)sum|b2sum|"
    r"echo|printf|true|false|:|test|\[|pwd|cd|ls|find|basename|dirname|seq|sleep|date)"
)
"""The last line does not read at all, but may stand in a loop or a group that is fed."""
_STREAM = re.compile(r"/dev/(stdin|fd)\b|/proc/[\w-]+/(task/\w+/)?fd\b")


def takes_data(words: Sequence[Word]) -> bool:
    """Whether the program that a command names reads data alone, and none of its arguments gives that to another one."""
    if not words or not words[0].static or not _PROGRAM.fullmatch(words[0].text) or exec_flags(words):
        return False
    # the second operand of uniq is written to
    return program_of(words[0]) != "uniq" or all(word.text.startswith("-") for word in words[1:])


def names_stream(words: Sequence[Word]) -> bool:
    """Whether an argument is one of the streams that the program was given, which the shell may have opened before."""
    return any(_STREAM.match(word.text) for word in words[1:])
