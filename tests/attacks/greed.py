"""Programs that want more than there is: the agent lives, the model is told what happened, and the next call works."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .row import Check, Row, python, shell
from .world import World

LIMITS: Mapping[str, object] = {"process_limit": 64, "memory_limit": "300m", "file_limit": "32m"}
_LONGEST = 12_000
_HOG = "python3 -c \"x = b'x' * {size}; import time; time.sleep(5)\""


def _told(*patterns: str) -> Check:
    def check(_world: World, said: str) -> str:
        missing = [pattern for pattern in patterns if not re.search(pattern, said, re.IGNORECASE)]
        if len(said) > _LONGEST:
            return f"the model was told {len(said)} characters"
        return f"nothing of {missing} was said in: {said[:500]}" if missing else ""

    return check


_ALIVE = _told(r"executed:\nalive")


def _then_alive(row: Row) -> list[Row]:
    """The attack, and a call after it."""
    return [row, shell(f"alive after {row.name}", "echo ali''ve", _ALIVE),
            python(f"alive after {row.name}", "print('ali' + 've')", _ALIVE)]  # fmt: skip


GREED: list[Row] = [
    row
    for each in (
        shell("a fork bomb", ":(){ :|:& };:; sleep 5", _told(r"64 processes")),
        python("a fork bomb", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", _told(r"processes|kernel")),
        shell("a memory hog", _HOG.format(size=900_000_000), _told(r"memory")),
        shell("many small hogs", f"for n in $(seq 12); do {_HOG.format(size=60_000_000)} & done; wait", _told(r"memory")),
        python("a memory hog", "x = b'x' * 900_000_000", _told(r"memory")),
        shell("a filler of /tmp", "head -c 900000000 /dev/zero > /tmp/x; ls -l /tmp/x; rm -f /tmp/x", _told(r"no space|memory|size limit")),
        shell("a filler of /dev/shm",
            "head -c 900000000 /dev/zero > /dev/shm/x; rm -f /dev/shm/x", _told(r"no space|memory|read-only|permission|size limit")),
        shell("a filler of the disk", "head -c 900000000 /dev/zero > big; stat -c %s big; rm -f big", _told(r"too large|size limit")),
        shell("a million lines", "seq 1000000", _told(r"^Observed", r"999999\n1000000", r"missing|left out|omitted|too long")),
        Row("a million lines of Python", (("python_execute", {"code": "for n in range(1_000_000): print(n)", "timeout": 120}),),
            _told(r"999999", r"missing|left out|omitted|too long")),
        shell("a line without an end", "head -c 30000000 /dev/zero | tr '\\0' x", _told(r"missing|left out|omitted|too long")),
        shell("binary output", "head -c 300000 /dev/urandom", _told(r"^Observed")),
        shell("NUL", "printf 'a\\0b\\0\\0c'; cat /proc/self/cmdline", _told(r"a.{0,9}b")),
        shell("output without an end", "timeout 3 yes; true", _told(r"missing|left out|omitted|too long")),
        shell("errors without an end", "timeout 3 yes >&2; true", _told(r"missing|left out|omitted|too long")),
        Row("a command that waits", (("bash", {"command": "sleep 60", "timeout": 1}),), _told(r"timed out")),
        Row("a command that reads", (("bash", {"command": "cat; read x; python3 -c 'input()'", "timeout": 9}),), _told(r"EOF|end of file")),
        Row("code that waits", (("python_execute", {"code": "import time; time.sleep(60)", "timeout": 1}),), _told(r"timed out")),
        python("a crash", "import ctypes; ctypes.string_at(0)", _told(r"kernel")),
        python("an exit", "import os; os._exit(3)", _told(r"kernel")),
        shell("the end of the shell", "exit 3", _told(r"shell has ended")),
        shell("many descriptors", "for n in $(seq 10 3000); do eval \"exec $n>/dev/null\" || break; done 2>&1 | tail -1", None),
    )
    for row in _then_alive(each)
]  # fmt: skip
