"""What is run over there first: a line of Python that takes our own parts from the stream, and says with what they run."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from handwork.errors import SandboxUnavailable

OLDEST = (3, 9)
"""What our supervisor needs of the Python over there."""
_PACKAGE = Path(__file__).parents[2]
_PARTS = ("sandbox/inside/*.py", "tool/*_inside/**/*.py")
"""What runs inside: the supervisor, and the parts of tools that say so by their folder."""

# A terminal takes at most 4096 characters a line until it is raw, and would echo what we send. The greeting is the mark
# reversed: the echo of this very line must not look like it.
_LINE = (
    "import os,sys,json,zlib,base64\n"
    "if os.isatty(0):\n"
    " import tty\n"
    " tty.setraw(0)\n"
    "h={'version':list(sys.version_info[:2]),'python':sys.executable,'path':os.environ.get('PATH',''),'home':os.path.expanduser('~')}\n"
    "os.write(1,(sys.argv[1][::-1]+json.dumps(h)+'\\n').encode())\n"
    "d=b''\n"
    "while not d.endswith(b'\\n'):\n"
    " c=os.read(0,65536)\n"
    " d+=c or sys.exit(0)\n"
    "a=json.loads(zlib.decompress(base64.b64decode(d)))\n"
    "p=os.path.join(a['folder'],'handwork')\n"
    "for n,t in a['parts'].items():\n"
    " f=os.path.join(p,n)\n"
    " os.makedirs(os.path.dirname(f),exist_ok=True)\n"
    " open(f,'w',encoding='utf-8').write(t)\n"
    "sys.dont_write_bytecode=True\n"
    "sys.path.append(os.path.join(p,'sandbox'))\n"
    "from inside.carrier import main\n"
    "main(**a['main'])\n"
)


@dataclass(frozen=True)
class Greeting:
    """What the Python over there says of itself."""

    version: tuple[int, int]
    python: str
    path: str
    home: str

    @classmethod
    def read(cls, line: bytes) -> Greeting:
        """Raises ValueError for what is no greeting."""
        said = json.loads(line)
        try:
            major, minor = said["version"]
            return cls((int(major), int(minor)), str(said["python"]), str(said["path"]), str(said["home"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"no greeting: {error}") from error


@dataclass(frozen=True)
class Boot:
    """One start: `command` is run over there; then comes a line that begins with `greeting`, which `payload` answers."""

    command: tuple[str, ...]
    greeting: bytes
    payload: bytes


def boot(folder: str, settings: Mapping[str, object], *, text: bool, silence: float) -> Boot:
    """Our parts are put into `folder` over there; `settings` are those of the supervisor. `text`: the stream takes lines of
    text only; `silence`: after so many seconds without a word from us, all ends over there (0: never)."""
    mark = os.urandom(16).hex()
    main = {"settings": settings, "text": text, "silence": silence}
    payload = json.dumps({"folder": folder, "main": main, "parts": parts()}).encode()
    command = ("python3", "-I", "-S", "-c", _LINE, mark)
    return Boot(command, mark[::-1].encode(), base64.b64encode(zlib.compress(payload)) + b"\n")


def parts() -> Mapping[str, str]:
    """The text of each of our files that runs inside, by its path below the package."""
    files = (file for pattern in _PARTS for file in sorted(_PACKAGE.glob(pattern)))
    return {file.relative_to(_PACKAGE).as_posix(): file.read_text(encoding="utf-8") for file in files}


def check(greeting: Greeting, where: str) -> None:
    """Raises SandboxUnavailable for a Python that is too old for us."""
    if greeting.version < OLDEST:
        raise SandboxUnavailable(
            f"{where} has Python {'.'.join(map(str, greeting.version))}, and tools need {'.'.join(map(str, OLDEST))} or newer there",
            hint='name another with [sandbox] image, such as "python:3.12-slim"',
        )
