"""What to tell the model when a command wanted a terminal and there was none."""

from __future__ import annotations

import re

_LOOKED_AT = 4000
_TERMINAL = re.compile(
    r"not (?:a|from a|to a) (?:tty|terminal)|not a typewriter|isn't a (?:tty|terminal)"
    r"|is not connected to a terminal|no (?:tty|terminal) present"
    r"|terminal is required|(?:requires|needs|without|use|open) (?:an? )?(?:interactive )?(?:tty|terminal)\b|failed tty get|/dev/tty"
    r"|inappropriate ioctl|terminal is dumb|must be (?:run|connected|executed) (?:to|from|in) a (?:tty|terminal)"
    r"|no controlling (?:tty|terminal)|setupterm|error opening terminal|terminal prompts disabled|TERM environment variable",
    re.IGNORECASE,
)
_EMPTY = re.compile(
    r"EOFError|end of file on (?:stdin|standard input)|error reading input|\bEOF\b.*\bread|standard input is empty",
    re.I,
)
_ONLY_SAID = re.compile(r"^Pseudo-terminal will not be allocated.*$", re.MULTILINE)
"""What ssh says also when it needs none."""
_PROMPT = re.compile(r"[:?>\])] ?\Z")
_READERS = re.compile(
    r"\s*(?:[\w./-]*/)?(python[\d.]*|ipython\d*|node|deno|irb|lua|R|ghci|julia|scala|psql|mysql|mariadb|sqlite3|redis-cli|mongosh"
    r"|bc|dc|gdb|ftp|telnet|bash|sh|zsh|passwd|cat)\s*"
)
_PROMPTS = re.compile(
    r"(?:^|[;&({]|\|\||\b(?:do|then|else|if|while|until)\s)[ \t]*"
    r"read\s(?=[^;|&\n]{0,200}?\s?-\w{0,9}p\b)[^;|&\n<]{0,400}(?:[;|&\n]|\Z)",
    re.MULTILINE,
)
"""The shell's read with a prompt, which is shown on a terminal alone, and nothing that is led into it."""
_WANTED = (
    "The command wanted a terminal, which commands do not have: give what it asks by options, a pipe or a heredoc, or start "
    "it with pty: true and type the answers."
)
_READ = (
    "The command read its standard input, which is empty: give it options, a pipe or a heredoc, or start it with pty: true "
    "and type the answers."
)


def hint_for(command: str, output: str, exit_code: int | None) -> str:
    """A sentence for the model, or ''."""
    end = _ONLY_SAID.sub("", output[-_LOOKED_AT:])
    if exit_code != 0 and _TERMINAL.search(end):
        return _WANTED
    if exit_code != 0 and (_EMPTY.search(end) or _PROMPT.search(end)):
        return _READ
    if (not output and _READERS.fullmatch(command)) or _PROMPTS.search(command):
        return _READ
    return ""
