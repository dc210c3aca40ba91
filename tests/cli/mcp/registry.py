"""A loopback registry for npm and pip, with one small server for each."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote

from tests.mcp import stub

_JS = """\
#!/usr/bin/env node
const lines = require('readline').createInterface({ input: process.stdin });
const reply = (id, result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
lines.on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') {
    const serverInfo = { name: 'tiny', version: '1.2.3' };
    reply(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo });
  } else if (method === 'tools/list') {
    reply(id, { tools: [{ name: 'hello', description: 'Says hello', inputSchema: { type: 'object' } }] });
  } else if (id !== undefined) {
    console.log(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }));
  }
});
"""
_INFO = "stubbed-1.0.dist-info"


def _wheel() -> bytes:
    """The stub as a Python package with a program `stubbed`."""
    files = {
        "stubbed.py": Path(stub.__file__ or "").read_text(),
        f"{_INFO}/METADATA": "Metadata-Version: 2.1\nName: stubbed\nVersion: 1.0\n",
        f"{_INFO}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{_INFO}/entry_points.txt": "[console_scripts]\nstubbed = stubbed:main\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{_INFO}/RECORD"])
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in {**files, f"{_INFO}/RECORD": record}.items():
            archive.writestr(name, text)
    return made.getvalue()


def _sdist() -> bytes:
    """A package that comes as source only: installing it runs its own code, which leaves a mark."""
    backend = "import os, pathlib\npathlib.Path(os.environ['STUB_MARK']).touch()\n"
    build = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    about = "Metadata-Version: 2.1\nName: sourced\nVersion: 1.0\n"
    files = {"pyproject.toml": build, "backend.py": backend, "PKG-INFO": about}
    return _tar({f"sourced-1.0/{name}": text for name, text in files.items()})


def _manifest() -> dict[str, object]:
    scripts = {"postinstall": "touch was-run"}
    return {"name": "@tiny/server-hello", "version": "1.2.3", "bin": {"server-hello": "index.js"}, "scripts": scripts}


def _tgz() -> bytes:
    return _tar({"package/package.json": json.dumps(_manifest()), "package/index.js": _JS})


def _tar(files: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path, host = unquote(self.path).split("?")[0], f"http://{self.headers['Host']}"
        tgz = _tgz()
        dist = {
            "tarball": f"{host}/hello.tgz",
            "integrity": f"sha512-{base64.b64encode(hashlib.sha512(tgz).digest()).decode()}",
        }
        versions = {"1.2.3": {**_manifest(), "dist": dist, "hasInstallScript": True}}
        packument = {"name": "@tiny/server-hello", "dist-tags": {"latest": "1.2.3"}, "versions": versions}
        pages: dict[str, bytes] = {
            "/simple/stubbed/": b'<a href="/stubbed-1.0-py3-none-any.whl">stubbed-1.0-py3-none-any.whl</a>',
            "/stubbed-1.0-py3-none-any.whl": _wheel(),
            "/simple/sourced/": b'<a href="/sourced-1.0.tar.gz">sourced-1.0.tar.gz</a>',
            "/sourced-1.0.tar.gz": _sdist(),
            "/@tiny/server-hello": json.dumps(packument).encode(),
            "/hello.tgz": tgz,
        }
        found = pages.get(path)
        self.send_response(200 if found is not None else 404)
        ends = {".whl": "application/zip", "gz": "application/gzip", "hello": "application/json"}
        kind = next((kind for end, kind in ends.items() if path.endswith(end)), "text/html")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(found or b"")))
        self.end_headers()
        self.wfile.write(found or b"")

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def registry(folder: Path) -> Iterator[dict[str, str]]:
    """The variables by which npm and pip look there and nowhere else; the user's own file for npm lies in the folder."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        host = f"http://127.0.0.1:{server.server_port}"
        own = folder / "npmrc"
        own.write_text(f"registry={host}/\n")
        yield {"PIP_INDEX_URL": f"{host}/simple", "PIP_CONFIG_FILE": "/dev/null", "npm_config_userconfig": str(own)}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
