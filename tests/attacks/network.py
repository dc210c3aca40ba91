"""The network while it is off: by every protocol, spelling and program."""

from __future__ import annotations

from .row import Row, python, shell

_SPELLINGS = (
    "127.0.0.1",
    "localhost",
    "0.0.0.0",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "127.0.0.2",
    "::ffff:127.0.0.1",
)
_CONNECT = """import socket
try:
    socket.create_connection(({host!r}, @TCP@), 2).send(b'x'); print('LEAK')
except OSError as error:
    print(error)"""

NETWORK: list[Row] = [
    *(python(f"TCP to {host}", _CONNECT.format(host=host)) for host in _SPELLINGS),
    python("TCP over IPv6",
        "import socket\ns = socket.socket(socket.AF_INET6); s.settimeout(2)\ns.connect(('::1', @TCP6@)); print('LEAK')"),
    python("UDP", "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.sendto(b'x', ('127.0.0.1', @UDP@))"),
    python("TCP elsewhere", "import socket\nsocket.create_connection(('192.0.2.1', 80), 2); print('LEAK')"),
    python("UDP elsewhere",
        "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53)); print('LEAK')"),
    python("a raw socket", "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print('LEAK')"),
    python("a packet socket", "import socket\nsocket.socket(socket.AF_PACKET, socket.SOCK_RAW); print('LEAK')"),
    python("a vsock",
        "import socket\ns = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM); s.settimeout(2); s.connect((2, 22)); print('LEAK')"),
    python("a unix socket outside", "import socket\nsocket.socket(socket.AF_UNIX).connect('@OUT@/socket'); print('LEAK')"),
    python("a unix socket in the workspace", "import socket\nsocket.socket(socket.AF_UNIX).connect('agent.sock'); print('LEAK')"),
    python("a unix socket by a link",
        "import os, socket\nos.symlink('agent.sock', 'to-sock'); socket.socket(socket.AF_UNIX).connect('to-sock'); print('LEAK')"),
    python("a unix socket by another name",
        "import os, socket\nos.link('agent.sock', 'hard.sock'); socket.socket(socket.AF_UNIX).connect('hard.sock'); print('LEAK')"),
    python("a unix socket that was renamed",
        "import os, socket\nos.rename('agent.sock', 'moved.sock'); socket.socket(socket.AF_UNIX).connect('moved.sock'); print('LEAK')"),
    python("an abstract socket", "import socket\nsocket.socket(socket.AF_UNIX).connect('\\0@ABSTRACT@'); print('LEAK')"),
    shell("/dev/tcp", "(echo x > /dev/tcp/127.0.0.1/@TCP@) && echo LEAK"),
    shell("/dev/udp", "echo x > /dev/udp/127.0.0.1/@UDP@"),
    shell("curl and wget", "curl -sm 2 http://127.0.0.1:@TCP@/ && echo LEAK; wget -qT 2 -t 1 http://127.0.0.1:@TCP@/"),
    shell("curl by a proxy", "curl -sm 2 -x http://127.0.0.1:@TCP@ http://example.com && echo LEAK"),
    shell("curl by a unix socket", "curl -sm 2 --unix-socket @OUT@/socket http://x/; curl -sm 2 --unix-socket agent.sock http://x/"),
    shell("DNS",
        "getent hosts example.com && echo LEAK; python3 -c 'import socket; socket.getaddrinfo(\"example.com\", 80)' && echo LEAK; true"),
    shell("ssh and git",
        "timeout 3 ssh -o BatchMode=yes 127.0.0.1 -p @TCP@ true && echo LEAK; timeout 3 git clone http://127.0.0.1:@TCP@/x && echo "
        "LEAK; true"),
    shell("ping", "ping -c1 -W1 127.0.0.2 >/dev/null && ping -c1 -W1 192.0.2.1 && echo LEAK; true"),
    shell("another interface",
        "ip link add dummy0 type dummy && echo LEAK; ls /sys/class/net 2>/dev/null | grep -v -x lo && echo LEAK; true"),
    Row("a unix socket that is made later",
        (("python_execute", {"code": "import socket\nsocket.socket(socket.AF_UNIX).connect('late.sock'); print('LE' + 'AK')"}),), None,
        "a socket that a program outside makes in the workspace while the sandbox runs can be reached: no rule of the kernel's is about it",
        before=lambda world: world.listen("late.sock")),
]  # fmt: skip
