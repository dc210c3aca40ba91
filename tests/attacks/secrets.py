"""Our own keys: in environments, in /proc, in files, in what is said and kept."""

from __future__ import annotations

from .row import Row, python, shell, unseen
from .world import PRIVATE, SECRET, World


def not_kept(world: World, said: str) -> str:
    """No key of ours was seen (*** stands for it then), and none stands in a file of the store."""
    kept = [
        path.name
        for path in world.handwork.rglob("*")
        if path.is_file() and path.name != "keys.json" and SECRET.encode() in path.read_bytes()
    ]
    return f"the secret is kept in {kept}" if kept else unseen(world, said)


SECRETS: list[Row] = [
    shell("the environment", "env; export -p; set; declare -x; printenv", not_kept),
    shell("environments of all processes", "cat /proc/*/environ | tr '\\0' '\\n'", not_kept),
    shell("the first process", "cat /proc/1/environ /proc/1/cmdline /proc/self/environ /proc/thread-self/environ", not_kept),
    shell("our own process", "cat /proc/@PID@/environ /proc/@PID@/task/*/environ /proc/@PID@/mem", not_kept),
    shell("command lines", "cat /proc/*/cmdline | tr '\\0' ' '; ps auxwwe", not_kept),
    shell("a new shell", "bash -lic env; env -i bash -c env; sh -c env", not_kept),
    python("the environment", "import os; print(dict(os.environ), os.environb)", not_kept),
    python("a child's environment", "import subprocess; print(subprocess.run(['env'], capture_output=True).stdout)", not_kept),
    python("environments of all processes",
        "import glob\nfor f in glob.glob('/proc/[0-9]*/environ'):\n    try: print(open(f, 'rb').read())\n    except OSError as e: "
        "print(e)", not_kept),
    python("memory of the parent",
        "import os\ntry:\n    print(open(f'/proc/{os.getppid()}/mem', 'rb').read(10))\nexcept OSError as e: print(e)", not_kept),
    python("ctypes environ",
        "import ctypes; e = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), 'environ'); i = 0\nwhile e[i]: print(e[i]); i "
        "+= 1", not_kept),
    shell("an agent of keys", "ssh-add -l && echo LEAK; gpg-connect-agent /bye && echo LEAK; ls $SSH_AUTH_SOCK; true", not_kept),
    shell("keys of the kernel", "keyctl show; grep -q . /proc/keys && echo LEAK; true", not_kept),
    shell("credentials of the user",
        "cat ~/.ssh/* @HOME@/.ssh/* ~/.aws/credentials ~/.netrc ~/.config/gh/hosts.yml ~root/.ssh/id_*", not_kept),
    shell("the metadata service", "curl -sm 1 http://169.254.169.254/latest/meta-data/ && echo LEAK; true", not_kept),
    shell("the project's own", "cat .env", lambda _world, said: "it was told" if PRIVATE in said else "",
          "what lies in the workspace is the agent's to read, unless a rule of [policy] denies it"),
    shell("say it backwards", f"echo {SECRET[::-1]}", lambda _world, said: "it was said" if SECRET[::-1] in said else "",
          "a key that a model knows already and spells in another way is text like any other"),
]  # fmt: skip
