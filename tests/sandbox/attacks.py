"""Ways out of a sandbox, each a shell command that prints LEAK where it gets through.

None may change the machine where it does get through: system files and kernel settings are only opened for writing.

Run as a program it tries them all as the user that runs it, and prints the names of those that got through as JSON:
`python attacks.py FOLDER` makes what is attacked in FOLDER.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import socket
import sys
from pathlib import Path

from handwork.config import SandboxSettings
from handwork.sandbox.base import Sandbox
from handwork.sandbox.open import open_sandbox

SECRET = "sk-this-key-must-not-be-seen"
_OPEN = "test -e {0} && (exec 3>>{0}) 2>/dev/null && echo LEAK"
_PYTHON = "python3 -I -c '{}' 2>/dev/null && echo LEAK"
_KEYS = _PYTHON.format(
    "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); text = ctypes.create_string_buffer(99); "
    'keyctl, session, user = map(int, os.environ["KEYS"].split()); name = b"handwork-" + os.environb[b"PARENT"]; '
    "assert {}; print(text.value.decode())"
)
_OLD_KEYCTL = "53 b8 20010000 bb 00000000 b9 fdffffff ba 00000000 cd80 5b c3"
"""keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING) by the numbers of i386."""

ATTACKS = {
    "read the password file": "cat /etc/shadow && echo LEAK",
    "read a private key": "cat $OUTSIDE/home/.ssh/id_ed25519 && echo LEAK",
    "list the user's home": "ls $OUTSIDE/home/.ssh && echo LEAK",
    "list the homes": "ls /r*t/.bashrc /r*t/.ssh /home/*/.bashrc && echo LEAK",
    "read through a link": "ln -sf $OUTSIDE/secret link; cat link && echo LEAK",
    "read through a folder link": "ln -sfn $OUTSIDE out; cat out/secret && echo LEAK",
    "read through dots": "cat ../../outside/secret && echo LEAK",
    "read through proc": "cat /proc/self/root$OUTSIDE/secret /proc/1/root$OUTSIDE/secret 2>/dev/null | grep -q . && echo LEAK",
    "read through the first process": "cat /proc/1/cwd$OUTSIDE/secret && echo LEAK",
    "hard link": "ln $OUTSIDE/secret hard && echo LEAK",
    "write outside": "echo x > $OUTSIDE/new && echo LEAK",
    "write beside the workspace": "echo x > ../beside",
    "write to the system": "for f in / /usr /usr/bin /usr/bin/env /etc /etc/passwd /etc/ssl /lib; do test -w $f && echo LEAK; done",
    "write to the interpreter": f"test -w {sys.prefix} -o -w {sys.base_prefix} -o -w {sys.base_prefix}/bin && echo LEAK",
    "write to an artifact": "echo x > $ARTIFACTS/new && echo LEAK",
    "change a mode outside": "chmod 777 $OUTSIDE/secret && echo LEAK",
    "keys in environments": f"cat /proc/*/environ | tr '\\0' '\\n' | grep -q -e {SECRET} -e SECRET_KEY && echo LEAK",
    "keys in own environment": "env | grep -q SECRET_KEY && echo LEAK",
    "environment of the first process": "tr '\\0' '\\n' < /proc/1/environ | grep -q SECRET && echo LEAK",
    "memory of the first process": _PYTHON.format('open("/proc/1/mem", "rb")'),
    "descriptors of the first process": "ls -l /proc/1/fd/ | grep -q socket && echo LEAK",
    "processes of others": "test $(ls -d /proc/[0-9]* | wc -l) -gt 9 && echo LEAK",
    "end a process of others": "kill -0 $PARENT && echo LEAK",
    "TCP to the host": _PYTHON.format(
        'import os, socket; socket.create_connection(("127.0.0.1", int(os.environ["TCP_PORT"])), 2)'
    ),
    "TCP by the shell": "(echo x > /dev/tcp/127.0.0.1/$TCP_PORT) 2>/dev/null && echo LEAK",
    "TCP elsewhere": _PYTHON.format('import socket; socket.create_connection(("192.0.2.1", 80), 2)'),
    "UDP elsewhere": _PYTHON.format('import socket; socket.socket(2, 2).sendto(b"x", ("192.0.2.1", 53))'),
    "UDP to the host": _PYTHON.format(
        'import os, socket; s = socket.socket(2, 2); s.connect(("127.0.0.1", int(os.environ["UDP_PORT"]))); '
        's.send(b"x"); s.settimeout(1); s.recv(9)'
    ),
    "raw socket": _PYTHON.format("import socket; socket.socket(17, 3)"),
    "a unix socket of the host": _PYTHON.format(
        'import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ["OUTSIDE"] + "/socket")'
    ),
    "an abstract socket of the host": _PYTHON.format(
        'import os, socket; socket.socket(socket.AF_UNIX).connect("\\0handwork-" + os.environ["PARENT"])'
    ),
    "names by DNS": "getent hosts example.com && echo LEAK",
    "anything of the kernel's": "for f in $(find /proc -maxdepth 3 -not -path '/proc/[0-9]*' -not -path '/proc/*self/*' -type f); "
    "do test -w $f && echo LEAK $f; done",
    "the magic key": _OPEN.format("/proc/sysrq-trigger"),
    "a new user namespace": "unshare -U true && echo LEAK",
    "kernel settings": _OPEN.format("/proc/sys/kernel/core_pattern"),
    "kernel settings in a new namespace": "unshare -Urpmf --mount-proc sh -c 'test -w /proc/sys/kernel/core_pattern' && echo LEAK",
    "mount": "mount -t tmpfs none /mnt && echo LEAK",
    "lift a mount": "unshare -Urm sh -c 'umount -l /usr || umount -l /etc/passwd || mount -o remount,rw,bind /usr' && echo LEAK",
    "device nodes": "mknod device b 253 0 && echo LEAK || (ls /dev | grep -q -e sda -e vda -e mem -e kvm -e fuse && echo LEAK)",
    "the host's name": "test $(cat /proc/sys/kernel/hostname) = $HOST && echo LEAK",
    "Handwork's own store": "cat $OUTSIDE/store/store.db && echo LEAK",
    "Handwork's own store in the workspace": "cat own/store.db && echo LEAK; echo x > own/store.db && echo LEAK",
    "read a key of the session": _KEYS.format("libc.syscall(keyctl, 11, session, text, 99) > 0"),
    "read a key of the user": _KEYS.format("libc.syscall(keyctl, 11, user, text, 99) > 0"),
    "find a key by its name": _KEYS.format('libc.syscall(keyctl - 1, b"user", name, None, 0) > 0'),
    "make a key": _KEYS.format(
        "libc.syscall(keyctl - 2, None, None, None, 0, -4) and ctypes.get_errno() not in (1, 38)"
    ),
    "keys by the numbers of another architecture": _PYTHON.format(
        f'import ctypes, mmap; code = mmap.mmap(-1, 4096, prot=7); code.write(bytes.fromhex("{_OLD_KEYCTL}")); '
        "call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code))); assert call() not in (-1, -38)"
    ),
    "list the keys": "grep -q . /proc/keys /proc/key-users && echo LEAK",
    "move a hidden folder away": "mv deep deeper && echo LEAK",
}


class _Keys:
    """A key of the user's in his session keyring and one in his own, by their numbers; `missing` where the kernel gives none."""

    _SESSION, _USER, _UNLINK = -3, -4, 9

    def __init__(self, name: str) -> None:
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        self.keyctl = {"x86_64": 250, "aarch64": 219}.get(os.uname().machine, 0)
        secret = SECRET.encode()
        self.session, self.user = (
            self._call(self.keyctl - 2, b"user", name.encode() + end, secret, len(secret), ring) if self.keyctl else -1
            for ring, end in ((self._SESSION, b""), (self._USER, b"-user"))
        )
        self.missing = min(self.session, self.user) < 0

    def close(self) -> None:
        for key, ring in ((self.session, self._SESSION), (self.user, self._USER)):
            if key > 0:
                self._call(self.keyctl, self._UNLINK, key, ring)


class Target:
    """What the attacks aim at, made below `base`: files, sockets and ports of the host, and a sandbox beside them."""

    def __init__(self, base: Path) -> None:
        self.outside = base / "outside"
        for folder in ("home/.ssh", "store"):
            (self.outside / folder).mkdir(parents=True)
        for name in ("home/.ssh/id_ed25519", "secret", "store/store.db"):
            (self.outside / name).write_text(SECRET)
        self.workspace, self.artifacts = base / "inner" / "workspace", base / "inner" / "artifacts"
        for folder in ("own", "deep/own"):
            (self.workspace / folder).mkdir(parents=True)
            (self.workspace / folder / "store.db").write_text(SECRET)
        self.sockets = [socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
        for sock in self.sockets:
            sock.bind(("127.0.0.1", 0))
        for address in (str(self.outside / "socket"), f"\0handwork-{os.getpid()}"):
            self.sockets.append(sock := socket.socket(socket.AF_UNIX))
            sock.bind(address)
        for sock in (self.sockets[0], *self.sockets[2:]):
            sock.listen()
        self.keys = _Keys(f"handwork-{os.getpid()}")

    @property
    def environment(self) -> dict[str, str]:
        ports = [str(sock.getsockname()[1]) for sock in self.sockets[:2]]
        return {
            "OUTSIDE": str(self.outside), "ARTIFACTS": str(self.artifacts), "PARENT": str(os.getpid()), "TCP_PORT": ports[0],
            "UDP_PORT": ports[1], "HOST": socket.gethostname(),
            "KEYS": f"{self.keys.keyctl} {self.keys.session} {self.keys.user}",
        }  # fmt: skip

    def open(self) -> Sandbox:
        hide = [self.outside / "store", self.workspace / "own", self.workspace / "deep" / "own"]
        return open_sandbox(
            SandboxSettings(backend="bwrap"),
            workspace=self.workspace,
            artifacts=self.artifacts,
            notify=print,
            hide=hide,
        )

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()
        self.keys.close()

    async def gets_through(self, sandbox: Sandbox, attack: str) -> str:
        """What it printed if it got through, else ''."""
        result = await sandbox.exec(["bash", "-c", ATTACKS[attack]], env=self.environment, timeout=20)
        beside = (self.workspace.parent / "beside").exists()
        leaked = beside or b"LEAK" in result.output or SECRET.encode() in result.output or result.timed_out
        return f"{result}" if leaked else ""


async def main(base: Path) -> dict[str, str]:
    os.environ["SECRET_KEY"] = SECRET
    target = Target(base)
    sandbox = target.open()
    try:
        found = {attack: await target.gets_through(sandbox, attack) for attack in ATTACKS}
        works = await sandbox.exec(["bash", "-c", "id -u; echo hello > file; cat file; python3 -c 'print(6 * 7)'"])
        await sandbox.write("made", b"by the file tools")
        found |= {"": "" if works.output.endswith(b"hello\n42\n") and await sandbox.read("made") else repr(works)}
        return {attack: text for attack, text in found.items() if text}
    finally:
        await sandbox.close()
        target.close()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1])))))
