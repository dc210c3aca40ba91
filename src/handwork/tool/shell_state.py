"""What another bash takes up from one that had to be killed: the shell tells it after each command, on a pipe of its own."""

from __future__ import annotations

import asyncio
import contextlib

from handwork.tool.shell_output import Output

LIMIT = 1_000_000
"""Bytes of a state that are kept; a larger one is lost with its shell."""

# Options that change how functions are read come first; those that change how commands run, and aliases, last.
OPENING = r"""
__handwork_save() {
  {
    \builtin printf '# %s\n\\builtin cd -- %q\n' "$1" "${PWD-}"
    \builtin shopt -p
    \builtin umask -p
    \builtin declare -p
    \builtin declare -f
    \builtin declare -F
    if (($# > 1)); then \builtin printf 'set --'; \builtin printf ' %q' "${@:2}"; \builtin printf '\n'; fi
    \builtin set +o
    \builtin alias -p
    \builtin printf '# %s\n' "$1"
  } 1>&17
}
"""
# Variables of the environment go first, as those that were unset would be back. All is one line, read before any alias is there.
_TAKE_UP = (
    r"\builtin unset -v $(\builtin compgen -e); \builtin eval {} &>/dev/null; "
    r'if [[ . -ef "${{PWD-}}" ]]; then \builtin printf WHOLE; else \builtin cd -P . && \builtin printf MOVED; fi'
)


def saving(mark: str) -> str:
    """The line by which the shell tells its state between two such marks; nothing that happens there ends the shell."""
    return f'__handwork_save {mark} "$@" || \\builtin :\n'


def taking_up(state: bytes) -> str:
    """The command by which another shell takes it up; what it prints is read by `taken`."""
    return _TAKE_UP.format(quoted(state.decode("utf-8", "surrogateescape")))


def taken(printed: bytes) -> str:
    """`whole`; `moved` when all but the folder was taken up, which is gone; '' when it was not."""
    return next((word for word in ("whole", "moved") if printed.endswith(word.upper().encode())), "")


def quoted(text: str) -> str:
    """Text as one word of the shell's language."""
    return "'" + text.replace("'", "'\\''") + "'"


class States(Output):
    """What comes on that pipe. A state counts if it stands whole between its marks, which no command can know beforehand."""

    def __init__(self) -> None:
        super().__init__()
        self._data = bytearray()
        self._marks: list[str] = []
        self._mark, self._state = "", b""
        self._arrived = asyncio.Event()

    def expect(self, mark: str) -> None:
        """A state with this mark comes next."""
        self._marks = [*self._marks[-1:], mark]

    def feed(self, chunk: bytes) -> None:
        """Take in what was read; only the newest whole state is kept."""
        self._data += chunk
        for mark in list(self._marks):
            line = b"# %s\n" % mark.encode()
            begin = self._data.find(line)
            if begin >= 0 and (end := self._data.find(b"\n" + line, begin + len(line) - 1)) >= 0:
                self._mark, self._state = mark, bytes(self._data[begin:end])
                self._marks = self._marks[self._marks.index(mark) + 1 :]
                del self._data[: end + len(line) + 1]
                self._arrived.set()
        del self._data[: max(len(self._data) - LIMIT, 0)]

    async def get(self, mark: str, seconds: float) -> bytes:
        """The state with this mark, which may still be on its way; b'' if it was too large or does not come."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while mark in self._marks:
                    self._arrived.clear()
                    await self._arrived.wait()
        return self._state if mark and mark == self._mark else b""
