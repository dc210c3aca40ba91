"""Files outside of the workspace, and names inside that only the user may write."""

from __future__ import annotations

from pathlib import Path

from .row import Row, edit, python, reads, shell, unseen, writes
from .world import World

_READ = {
    "an absolute path": "@OUT@/secret",
    "a prefix sibling": "../ws-evil/secret",
    "a prefix sibling by its whole path": "@EVIL@/secret",
    "dots": "config/../../outside/secret",
    "many dots": "../../../../../../../../../..@OUT@/secret",
    "doubled slashes": "//@OUT@//secret",
    "a link": "link-to-secret",
    "a linked folder": "link-to-outside/secret",
    "a link upwards": "link-up/outside/secret",
    "the root of a process": "/proc/self/root@OUT@/secret",
    "the root of the first process": "/proc/1/root@OUT@/secret",
    "the folder of a process": "/proc/self/cwd/../outside/secret",
    "the root of another process": "/proc/@PID@/root@OUT@/secret",
    "a key in the home": "@HOME@/.ssh/id_ed25519",
    "the home of root": "~root/.ssh/id_ed25519",
    "the password file": "/etc/shadow",
    "our own keys": "@STORE@/keys.json",
    "our own store": "@STORE@/store.db",
}
_WRITE = {
    "an absolute path": "@OUT@/victim",
    "a new file outside": "@OUT@/new",
    "beside the workspace": "../new",
    "a prefix sibling": "../ws-evil/secret",
    "a dangling link": "dangling",
    "a linked folder": "link-to-outside/new",
    "a link upwards": "link-up/new",
    "the root of a process": "/proc/self/root@OUT@/victim",
    "the user's start-up file": "@HOME@/.bashrc",
    "the user's keys": "@HOME@/.ssh/authorized_keys",
    "the system": "/etc/cron.d/owned",
    "a program of the system": "/usr/local/bin/owned",
    "the marks": "@MARKS@/owned",
    "our own configuration": "@STORE@/config.toml",
    "our own approvals": "@STORE@/approvals.toml",
    "our own trust": "@STORE@/trusted.toml",
    "our own skills": "@STORE@/skills/owned/SKILL.md",
    "our own store": "@STORE@/store.db-wal",
}
_OURS = ("config.toml", "approvals.toml", "trusted.toml", "skills")


def _store_kept(world: World, _said: str) -> str:
    """Our own folder holds nothing that the agent put there."""
    own = [path.name for path in world.handwork.rglob("*") if path.name in _OURS or b"OWNED" in _bytes(path)]
    return f"our own folder holds {own}" if own else ""


def _bytes(file: Path) -> bytes:
    return file.read_bytes()[:4096] if file.is_file() and file.suffix in (".toml", ".json", ".md") else b""


_RACE = """
import os, threading, time
stop = False
def swap():
    while not stop:
        for target in ("plain.txt", "@OUT@/secret"):
            try:
                os.symlink(target, "swap.new"); os.rename("swap.new", "swapped")
            except OSError:
                pass
thread = threading.Thread(target=swap, daemon=True); thread.start()
"""

FILES: list[Row] = [
    *(row for name, path in _READ.items() for row in reads(name, path, unseen)),
    *(row for name, path in _WRITE.items() for row in writes(name, path, _store_kept)),
    shell("copy a file to be moved", "cp plain.txt copy.txt"),
    shell("a hard link to a file outside", "ln @OUT@/secret hard; cat hard"),
    shell("a hard link through proc", "ln -L /proc/self/root@OUT@/secret hard; cat hard"),
    python("link() with a descriptor", "import os; os.link('@OUT@/secret', 'hard'); print(open('hard').read())"),
    edit("a path with a NUL", command="view", path="plain.txt\0@OUT@/secret"),
    edit("a huge path", command="view", path="a/" * 5000 + "../" * 5000 + "outside/secret"),
    edit("a huge name", command="create", path="n" * 5000, file_text="x"),
    edit("a path of dots alone", command="view", path="../" * 40 + "etc/shadow"),
    edit("a home that is not there", command="view", path="~nobody-at-all/secret"),
    edit("an address", command="view", path="file://@OUT@/secret"),
    edit("a path with a newline", command="view", path="plain.txt\n@OUT@/secret"),
    shell("set the id of a program", "cp /bin/sh own; chmod 6755 own; ./own -p -c 'cat @OUT@/secret'"),
    shell("change a mode outside", "chmod 777 @OUT@/secret @OUT@"),
    shell("change a mode of the system", "chmod u+r /etc/shadow /etc/passwd"),
    shell("change an owner outside", "chown -R 12345 @OUT@"),
    shell("set an attribute outside", "touch -d 2001-01-01 @OUT@/victim; truncate -s 0 @OUT@/victim"),
    shell("remove outside", "rm -rf @OUT@/victim @EVIL@ @HOME@ link-to-outside/victim"),
    shell("rename out", "mv plain.txt @OUT@/plain; mv @OUT@/victim ."),
    shell("remove the workspace and put a link there", "cd /; rmdir @WS@; mv @WS@ @WS@-2; ln -sfn @OUT@ @WS@"),
    shell("a device of the disk", "mknod disk b 254 0; mknod disk2 b 8 0; head -c 64 disk disk2 /dev/vda /dev/sda"),
    shell("memory of the machine", "head -c 64 /dev/mem /dev/kmem /dev/port /proc/kcore"),
    shell("open by a handle", "python3 -c 'import ctypes, os; l = ctypes.CDLL(None, use_errno=True); b = ctypes.create_string_buffer(144); "
          "b[0:4] = (128).to_bytes(4, \"little\"); m = ctypes.c_int(); "
          "r = l.name_to_handle_at(-100, b\"/usr\", b, ctypes.byref(m), 0); f = l.open_by_handle_at(os.open(\"/usr\", 0), b, 0); "
          "assert f >= 0; print(\"LEAK\")'"),
    python("a racing link, read by the shell", _RACE),
    *(edit(f"view a racing link ({number})", command="view", path="swapped") for number in range(12)),
    *(edit(f"write a racing link ({number})", command="str_replace", path="swapped", old_str="plain", new_str="plain")
      for number in range(6)),
    python("end of the race", "stop = True; thread.join(5)"),
    shell("an overlay of the workspace", "mount -t overlay overlay -o lowerdir=/,upperdir=@WS@,workdir=/tmp /mnt && echo LEAK"),
    shell("a bind mount", "mount --bind / /mnt && echo LEAK"),
]  # fmt: skip
