"""Attacks of every group that touch nothing but the test's own folders: they must get through where no sandbox is."""

from __future__ import annotations

_COMMANDS = (
    "plainly", "in a compound", "in a pipe", "in a subshell", "substituted", "by a quoted name", "by a variable", "by env", "by eval",
    "by sh -c", "by exec", "by xargs", "by awk", "by sed", "by sort", "by dd", "by a here-document", "by a function", "by redirection",
    "in the background", "over a line's end",
)  # fmt: skip
_PATHS = (
    "an absolute path",
    "a prefix sibling",
    "a linked folder",
    "a link upwards",
    "the root of a process",
    "the user's keys",
)

SEEN = (
    *(f"run {name}" for name in _COMMANDS),
    *(f"python: the same, {name}" for name in _COMMANDS[:5]),
    *(f"redirect to {name}" for name in _PATHS),
    *(f"python: write {name}" for name in _PATHS if name != "a link upwards"),
    "cat an absolute path", "cat dots", "cat a link", "cat a linked folder", "python: open a key in the home", "cat our own keys",
    "a hard link to a file outside", "change a mode outside", "set an attribute outside",
    "write to a file with a second name outside",
    "python: TCP to 127.0.0.1", "python: TCP over IPv6", "python: UDP", "python: a unix socket outside", "python: an abstract socket",
    "/dev/tcp", "curl and wget", "see processes outside",
    "remove .git/config", "make .envrc", "editor: make .envrc", "link .bashrc", "make hooks after the call",
    "move .git away and make another",
    "rename out",
)  # fmt: skip
