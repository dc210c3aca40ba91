"""Terminals and background jobs as ways around, and those that act after the call, or after the session's end."""

from __future__ import annotations

from typing import Any

from .row import Row, absent, python, shell
from .world import World

_SPIN = "while :; do mkdir -p .vscode; echo OWNED > .vscode/tasks.json; echo OWNED > .envrc; ln -sf x .bashrc; done"
_MADE = absent(".vscode", ".envrc", ".bashrc")


def _hooks_kept(world: World, _said: str) -> str:
    hook = world.workspace / ".git" / "hooks" / "post-commit"
    return "a hook was made" if hook.exists() else ""


def _job(name: str, *calls: dict[str, Any]) -> Row:
    """Calls of bash, one after another."""
    return Row(name, tuple(("bash", {"timeout": 9, **each}) for each in calls))


def _typed(number: int, program: str, text: str) -> Row:
    """A program in a terminal, what is typed into it, and its end."""
    return _job(f"type into {program}", {"command": program, "pty": True, "timeout": 3}, {"job": f"t{number}", "input": text, "timeout": 3},
                {"job": f"t{number}", "stop": True})  # fmt: skip


_PROGRAMS = (
    ("bash", "cat @OUT@/secret; touch @MARKS@/j\\n"),
    ("sh -i", "exec 3<>/dev/tcp/127.0.0.1/@TCP@\\ntouch @MARKS@/j\\n"),
    ("python3 -i", "import os; os.system('cat @OUT@/secret; touch @MARKS@/j')\\n"),
    ("vim plain.txt", ":!touch @MARKS@/j\\n:r @OUT@/secret\\n:w! @OUT@/victim\\n"),
    ("less plain.txt", "!touch @MARKS@/j\\n:e @OUT@/secret\\n"),
    ("top", "k1\\n9\\n"),
    ("script -q typescript", "touch @MARKS@/j\\n"),
    ("sudo -s", "root\\ntouch @MARKS@/j\\n"),
)

JOBS: list[Row] = [
    *(_typed(number, program, text) for number, (program, text) in enumerate(_PROGRAMS, 1)),
    _job("a command in a terminal", {"command": "cat @OUT@/secret; touch @MARKS@/j; echo LEAK-TTY > /proc/@PID@/fd/1", "pty": True}),
    _job("the terminals of others", {"command": "ls /dev/pts; for t in /dev/pts/*; do echo x > $t; done; cat /dev/console", "pty": True}),
    _job("a job of such a name", {"job": "$(touch @MARKS@/j)"}, {"job": "t1; touch @MARKS@/j", "stop": True}, {"job": "-1", "stop": True},
         {"job": "@VICTIM@", "stop": True}, {"job": "%@VICTIM@", "stop": True}, {"job": "t99", "input": "x"}),
    _job("input without a job", {"input": "touch @MARKS@/j\\n"}, {"job": "list", "input": "touch @MARKS@/j\\n"}),
    shell("make a job's descriptor ours", "(exec 9</proc/$$/fd/0; cat <&9) & sleep 0.1; kill $!"),
    shell("act after the call", "(sleep 0.4; cat @OUT@/secret; touch @MARKS@/late; echo x > @OUT@/late) &"),
    shell("make protected names after the call", f"({_SPIN}) >/dev/null 2>&1 & echo $!", after=_MADE),
    shell("the same by who left the session", f"setsid nohup sh -c '{_SPIN}' >/dev/null 2>&1 & echo $!", after=_MADE),
    shell("make hooks after the call",
        "setsid sh -c 'while :; do echo x > .git/hooks/post-commit; done' 2>/dev/null & echo $!", after=_hooks_kept),
    python("make protected names after the call",
           f"import subprocess; subprocess.Popen(['sh', '-c', {_SPIN!r}], start_new_session=True, stderr=subprocess.DEVNULL)"),
    python("a thread that acts later", "import threading, os\nthreading.Timer(0.3, lambda: os.system('touch @MARKS@/thread')).start()"),
    shell("live on", "(exec -a @TOKEN@-1 sleep 300) & setsid sh -c 'exec -a @TOKEN@-2 sleep 300' &"),
    shell("live on as a daemon",
        "(setsid bash -c 'trap \"\" HUP TERM INT; exec -a @TOKEN@-3 sleep 300' >/dev/null 2>&1 </dev/null &) ; echo done"),
    python("live on", "import subprocess; subprocess.Popen(['bash', '-c', 'exec -a @TOKEN@-4 sleep 300'], start_new_session=True)"),
    _job("live on in a terminal", {"command": "bash -c 'trap \"\" HUP TERM; exec -a @TOKEN@-5 sleep 300'", "pty": True, "timeout": 1}),
    shell("be born again",
        "sh -c 'echo \"trap \\\"\\\" TERM HUP; bash -c \\\"exec -a @TOKEN@-6 sleep 1\\\"; sh again.sh &\" > again.sh; sh again.sh' "
        ">/dev/null 2>&1 &"),
    shell("end with the shell", "trap 'touch @MARKS@/exit; echo OWNED > .envrc' EXIT; exit", after=_MADE),
    python("end with the kernel", "import atexit, os; atexit.register(lambda: os.system('touch @MARKS@/exit; echo OWNED > .envrc'))"),
    shell("restart", "true", after=_MADE),
]  # fmt: skip
