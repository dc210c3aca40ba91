"""Odd files: pipes, devices, second names, very many, very long; swapped while they are used."""

from __future__ import annotations

from .row import Check, Row, edit, python, search, shell
from .world import World


def _answered(_world: World, said: str) -> str:
    """The call came back by itself."""
    return f"it hung: {said[:200]}" if "timed out" in said or not said else ""


def _no_shadow(_world: World, said: str) -> str:
    """No line of the password file."""
    return "hashes of passwords" if any(line.count(":") == 8 for line in said.splitlines()) else ""


def _kept(name: str, text: str) -> Check:
    def check(world: World, _said: str) -> str:
        place = world.workspace / name
        return "" if place.is_file() and place.read_text() == text else f"{name} is not what it was"

    return check


_SWAP = """
import os, threading
stop = False
os.makedirs('real', exist_ok=True); open('real/f.txt', 'w').write('plain')
os.makedirs('@WS@/two/victim', exist_ok=True)
def swap():
    while not stop:
        for target in ('real', '@OUT@'):
            try:
                os.symlink(target, 'dir.new'); os.rename('dir.new', 'dir')
            except OSError: pass
threading.Thread(target=swap, daemon=True).start()
"""

ODD: list[Row] = [
    shell("make a pipe", "mkfifo pipe; ln -s pipe to-pipe; ls -l pipe"),
    *(edit(f"{command} a pipe", _answered, command=command, path="pipe", **more)
      for command, more in (("view", {}), ("create", {"file_text": "x"}), ("str_replace", {"old_str": "a", "new_str": "b"}),
                            ("insert", {"insert_line": 0, "new_str": "x"}))),
    edit("view a link to a pipe", _answered, command="view", path="to-pipe"),
    edit("view a pipe by a link and a folder", _answered, command="view", path="./to-pipe/../pipe"),
    search("a pipe", "x", "pipe", _answered),
    search("a folder with a pipe", "plain", ".", _answered),
    *(edit(f"view {path}", _answered, command="view", path=path)
      for path in ("/dev/zero", "/dev/stdin", "/proc/kmsg", "/proc/self/mem", "/proc/self/fd/0", "/dev/tty", "/sys", "/proc/self/pagemap")),
    *(search(path, "x", path, _answered) for path in ("/dev/zero", "/proc/self")),
    edit("create over a device", _answered, command="create", path="/dev/full", file_text="x"),
    shell("a link to an endless device",
        "ln -s /dev/zero endless; ln -s endless endless2; ln -s loop loop; ln -s loop2 loop3; ln -s loop3 loop2"),
    *(edit(f"view {path}", _answered, command="view", path=path) for path in ("endless", "endless2", "loop", "loop2", "loop/x")),
    search("an endless link", "x", "endless", _answered),
    python("names that are no text",
        r"import os; [open(os.fsencode(os.getcwd()) + b'/' + n, 'w').close() for n in (b'\xff\xfe', b'-rf', b'a\nb', b'$(x)', b' ')]"),
    edit("view such names", _answered, command="view", path="."),
    search("such names", "f", ".", _answered, kind="name"),
    search("a query like an option", "--pre=touch @MARKS@/pre", "."),
    search("a path like an option", "x", "--pre=sh"),
    search("a program in the workspace", "plain", "."),
    edit("view the password file over dots", _no_shadow, command="view", path="../" * 40 + "etc/shadow"),
    *(edit(f"view {path}", _no_shadow, command="view", path=path) for path in ("/etc/shadow-", "/etc/gshadow", "/etc/./shadow")),
    shell("the password file", "cat /etc/shadow /etc/shadow- /etc/gshadow /proc/1/root/etc/shadow", _no_shadow),
    python("the password file", "print(open('/etc/shadow').read())", _no_shadow),
    edit("write a file that has a second name outside", command="create", path="second-name", file_text="OWNED\n"),
    edit("replace in a file with a second name", command="str_replace", path="second-name", old_str="untouched", new_str="x"),
    python("a racing folder", _SWAP),
    *(edit(f"view in a racing folder ({number})", command="view", path="dir/secret") for number in range(9)),
    *(edit(f"create in a racing folder ({number})", command="create", path=f"dir/new{number}", file_text="OWNED") for number in range(9)),
    *(edit(f"replace in a racing folder ({number})", command="str_replace", path="dir/victim", old_str="untouched", new_str="x")
      for number in range(6)),
    *(search(f"a racing folder ({number})", "words-from", "dir") for number in range(3)),
    python("the end of that race", "stop = True"),
    shell("a workspace that is read-only for all", "chmod 500 .; chmod 0 plain.txt; echo x > new.txt; chmod 700 .; chmod 600 plain.txt"),
    edit("create after it", _kept("after.txt", "x"), command="create", path="after.txt", file_text="x"),
    shell("write to a file with a second name outside", "cat second-name; ls -l; echo OWNED >> hard-name",
          before=lambda world: (world.workspace / "hard-name").hardlink_to(world.outside / "victim"),
          reason="a file in the workspace that has a second name elsewhere is one file: who writes it by one name writes it by both"),
]  # fmt: skip

LARGE: list[Row] = [
    *(search(f"all of {path}", "x", path, _answered) for path in ("/dev", "/sys")),
    python("a huge folder", "import os\nos.makedirs('many')\nfor n in range(4_000): open(f'many/{n}', 'w').close()"),
    edit("view a huge folder", _answered, command="view", path="many"),
    edit("view above a huge folder", _answered, command="view", path="."),
    search("a huge folder", "1", "many", _answered, kind="name"),
    shell("list a huge folder", "ls many | tail -1; rm -rf many", _answered),
    python("a deep folder", "import os\nfor n in range(400):\n    os.mkdir('deep'); os.chdir('deep')\nos.chdir('@WS@')"),
    edit("view a deep folder", _answered, command="view", path="deep"),
    search("a deep folder", "x", "deep", _answered),
    shell("remove a deep folder", "rm -rf deep; ls", _answered),
    shell("a sparse file", "truncate -s 900G sparse; ls -ls sparse"),
    edit("view a sparse file", _answered, command="view", path="sparse"),
    edit("replace in a sparse file", _answered, command="str_replace", path="sparse", old_str="a", new_str="b"),
    search("a sparse file", "x", "sparse", _answered),
    shell("remove a sparse file", "rm sparse"),
    python("a line of 20 MB", "open('line.txt', 'w').write('x' * 20_000_000)"),
    edit("view a line of 20 MB", _answered, command="view", path="line.txt"),
    search("a line of 20 MB", "(x+x+)+y", "line.txt", _answered),
    shell("remove it", "rm line.txt"),
]  # fmt: skip
