"""What to tell the model when a program met a bound of the sandbox that its own message does not explain."""

from __future__ import annotations

import re

_LOOKED_AT = 4000
_HINTS = (
    (
        re.compile(r"(?:Read-only file system|Permission denied)\b[^\n]{0,100}/(?:site|dist)-packages\b"),
        "The packages of this Python cannot be changed from here. Install into the workspace: `python3 -m venv .venv` and "
        "`.venv/bin/pip install …` for programs; for python_execute `pip install --target .packages …` and "
        '`sys.path.insert(0, ".packages")`.',
    ),
    (
        re.compile(r"could not (?:write|lock) config file [^\n]*(?:\.git|modules/[^\n:]+|worktrees/[^\n:]+)/config\b"),
        "The repository's own settings are protected, since git runs programs that they name. Set what is needed for one command "
        "with `git -c name=value …`, or for all commands here with `git config --global name value`; the user can allow more with "
        "`[sandbox] writable`.",
    ),
    (
        re.compile(
            r": can only add regular files, symbolic links or git-directories|: unsupported file type$", re.MULTILINE
        ),
        "What a rule of the user's [policy] denies to read is a device in here, and git fails over it (for the user it is unchanged). "
        "Leave it out: `git add -A -- ':!PATH'` and `git commit` without -a; a commit can stand in for a stash.",
    ),
    (
        re.compile(r"File size limit exceeded|\[Errno 27\] File too large|: File too large$", re.MULTILINE),
        "A file grew to the limit of the sandbox (`ulimit -f` gives it in KiB); the user can raise it with `[sandbox] file_limit`.",
    ),
)


def sandbox_hints(output: str) -> list[str]:
    """Sentences for the model on what a program wrote."""
    end = output[-_LOOKED_AT:]
    return [hint for pattern, hint in _HINTS if pattern.search(end)]
