"""Git as we run it ourselves: in a repository of our own, over the user's files, so that no program that theirs names is started."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from handwork.errors import GitFailed

_SETTINGS = (
    # Our own repository sets none of these; but git looks into repositories inside of the files, with these over theirs.
    *(
        "core.fsmonitor=false",
        "core.hooksPath=/dev/null",
        "core.untrackedCache=false",
        "core.alternateRefsCommand=false",
    ),
    *("core.editor=false", "core.pager=cat", "core.sshCommand=false", "core.gitProxy=false", "core.askPass=false"),
    *("core.attributesFile=/dev/null", "core.autocrlf=false", "core.safecrlf=false", "core.symlinks=true"),
    *("credential.helper=", "gpg.program=false", "gpg.ssh.program=false", "gpg.x509.program=false"),
    *("commit.gpgSign=false", "tag.gpgSign=false", "gc.auto=0", "maintenance.auto=false", "protocol.allow=never"),
    *("submodule.recurse=false", "diff.ignoreSubmodules=all", "status.submoduleSummary=false"),
    *("fetch.recurseSubmodules=false", "push.recurseSubmodules=no", "safe.bareRepository=explicit"),
)
_VARIABLES = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "GIT_SSH_COMMAND": "false",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_AUTHOR_NAME": "Handwork",
    "GIT_AUTHOR_EMAIL": "handwork@localhost",
    "GIT_COMMITTER_NAME": "Handwork",
    "GIT_COMMITTER_EMAIL": "handwork@localhost",
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
}
"""All that git is given besides PATH: whatever the user, or whoever started us, has set for git, does not reach it."""
_KNOWN = frozenset(
    [
        "add",
        "cat-file",
        "checkout-index",
        "commit-tree",
        "diff-files",
        "diff-index",
        "diff-tree",
        "gc",
        "hash-object",
        "init",
        "log",
        "ls-files",
        "ls-tree",
        "mktree",
        "pack-refs",
        "prune",
        "read-tree",
        "rev-list",
        "rev-parse",
        "rm",
        "show-ref",
        "status",
        "update-index",
        "update-ref",
        "write-tree",
    ]
)
"""Commands that read and write files and objects. None of them fetches, merges, edits or mails."""
_WITHOUT_PROGRAMS = ("diff-files", "diff-index", "diff-tree", "log")
_ATTRIBUTES = "* -text -eol -ident -filter -diff -merge -working-tree-encoding -export-subst\n"
"""In our repository's own info/attributes they go over every .gitattributes: files are taken byte for byte."""


@dataclass(frozen=True)
class OwnGit:
    """A repository of ours, and the files of the user's that it looks at.

    The repository must lie outside of these files: nothing that works on them may configure it. A repository of the user's is
    never opened: what needs its configuration runs in the sandbox, where the agent runs git itself.
    """

    repository: Path
    files: Path

    def __post_init__(self) -> None:
        if Path(os.path.realpath(self.repository)).is_relative_to(os.path.realpath(self.files)):
            raise GitFailed(
                f"Our repository {self.repository} must not lie in {self.files}, whose programs could change it"
            )

    async def begin(self) -> None:
        """Make the repository, or make sure that its attributes are ours. Raises GitFailed."""
        self.repository.mkdir(parents=True, exist_ok=True, mode=0o700)
        await self.run("init", "--quiet", "--template=")
        info = self.repository / "info"
        info.mkdir(exist_ok=True)
        (info / "attributes").write_text(_ATTRIBUTES, encoding="ascii")

    async def run(self, command: str, *arguments: str, stdin: bytes = b"") -> bytes:
        """What a command writes on standard output. Raises GitFailed, also for a command that is not on our list."""
        argv = self.argv(command, *arguments)
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=self.files,
            env=self.environment(os.environ),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, err = await process.communicate(stdin)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            said = err.decode(errors="replace").strip()[-300:]
            raise GitFailed(f"git {command} failed with exit code {process.returncode}: {said}")
        return out

    def argv(self, command: str, *arguments: str) -> Sequence[str]:
        """The whole command line. Raises GitFailed if there is no git, or the command is not on our list."""
        if command not in _KNOWN:
            raise GitFailed(f"git {command} is not among the commands that we run ourselves")
        program = shutil.which("git", path=self._path(os.environ))
        if program is None:
            raise GitFailed("git is not installed", hint="install it with your system's package manager")
        settings = [part for each in _SETTINGS for part in ("-c", each)]
        own = (f"--git-dir={self.repository}", f"--work-tree={self.files}", "--no-pager", "--literal-pathspecs")
        plain = ("--no-ext-diff", "--no-textconv") if command in _WITHOUT_PROGRAMS else ()
        return [program, *own, *settings, command, *plain, *arguments]

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """All that git is given."""
        return {"PATH": self._path(environ), **_VARIABLES}

    def _path(self, environ: Mapping[str, str]) -> str:
        """The user's PATH without relative folders, and without those of the files themselves."""
        files = os.path.realpath(self.files)
        folders = [folder for folder in environ.get("PATH", os.defpath).split(os.pathsep) if folder.startswith("/")]
        return os.pathsep.join(each for each in folders if not Path(os.path.realpath(each)).is_relative_to(files))
