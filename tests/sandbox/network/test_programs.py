"""Programs as they are, in a sandbox without a network, through the proxy."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import zipfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from handwork.sandbox.base import ExecResult
from handwork.sandbox.client import SupervisedSandbox
from handwork.sandbox.network.proxy import Proxy
from tests.sandbox.conftest import Opener
from tests.sandbox.network.conftest import Net
from tests.sandbox.network.websites import Website, certificate, website


@pytest.fixture
async def sandbox(opener: Opener, net: Net) -> AsyncIterator[SupervisedSandbox]:
    """A bwrap sandbox whose names the test's resolver knows: all `.test` names but evil.test lead to this machine."""
    found = opener("bwrap")
    net.names |= {f"{name}.test": ["127.0.0.1"] for name in ("one", "two", "evil", "secure", "pypi")}
    net.allow("one.test", "secure.test", "pypi.test")
    found.proxy = Proxy(net.decide, lambda level, text: net.notices.append(text), resolve=net.resolve, environ={})
    yield found
    await found.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Website]:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "hello.txt").write_text("hello\n")
    (folder / "page.html").write_text(
        "<p id=p>before</p><script>document.getElementById('p').textContent='ran'</script>"
    )
    with website(folder) as found:
        yield found


async def bash(sandbox: SupervisedSandbox, command: str, timeout: float = 60) -> ExecResult:
    return await sandbox.exec(["bash", "-c", command], timeout=timeout)


async def test_curl_and_python_reach_what_is_listed_and_nothing_else(
    sandbox: SupervisedSandbox, site: Website, net: Net
) -> None:
    done = await bash(sandbox, f"curl -sS http://one.test:{site.port}/hello.txt")
    assert (done.output, done.stderr) == (b"hello\n", b"")
    script = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read())"
    done = await sandbox.exec(["python3", "-c", script, f"http://one.test:{site.port}/hello.txt"], timeout=60)
    assert done.output == b"b'hello\\n'\n"
    done = await bash(sandbox, f"curl -sS http://evil.test:{site.port}/hello.txt")
    assert b"evil.test:%d may not be reached: it is not in the allow-list" % site.port in done.output
    done = await sandbox.exec(["python3", "-c", script, "https://evil.test/"], timeout=60)
    assert b"Tunnel connection failed: 403 evil.test:443 may not be reached" in done.stderr
    assert len(site.said) == 2
    told = await sandbox.after_call()
    assert [line.partition(":")[0] for line in told] == ["The sandbox's network refused evil.test"] * 2
    assert await sandbox.after_call() == []


async def test_past_the_proxy_there_is_no_network_and_inside_the_loopback_is_direct(
    sandbox: SupervisedSandbox, site: Website, net: Net
) -> None:
    probe = (
        f"curl -sS --noproxy '*' --max-time 5 http://127.0.0.1:{site.port}/; echo $?;"
        "(echo > /dev/tcp/192.0.2.1/80) 2>&1; (echo x > /dev/udp/192.0.2.1/53) 2>&1;"
        "cd /tmp && echo inside > here.txt;"
        "python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 & "
        "for _ in $(seq 100); do curl -s http://localhost:8000/here.txt && break; sleep 0.05; done; kill %1"
    )
    done = await bash(sandbox, probe)
    assert b"7\n" in done.output
    assert [b"/dev/%b/" % kind in done.output for kind in (b"tcp", b"udp")] == [True, True]
    assert done.output.count(b"connect: Network is unreachable") == 2, done
    assert done.output.endswith(b"inside\n")
    assert site.said == []
    assert net.notices == []


async def test_https_with_the_name_that_was_asked_for_passes_and_a_borrowed_one_does_not(
    sandbox: SupervisedSandbox, tmp_path: Path, net: Net
) -> None:
    tls = certificate(tmp_path, "secure.test", "evil.test")
    (tmp_path / "hello.txt").write_text("hello\n")
    await sandbox.write("ca.crt", tls[0].read_bytes())
    with website(tmp_path, tls) as site:
        done = await bash(sandbox, f"curl -sS --cacert ca.crt https://secure.test:{site.port}/hello.txt")
        assert (done.output, done.stderr) == (b"hello\n", b"")
        reach = f"curl -sS --cacert ca.crt --connect-to evil.test:{site.port}:secure.test:{site.port}"
        done = await bash(sandbox, f"{reach} https://evil.test:{site.port}/hello.txt")
        assert done.exit_code != 0
        assert b"unrecognized name" in done.stderr, done
        assert len(site.said) == 1
    told = await sandbox.after_call()
    assert told == [
        f"The sandbox's network refused evil.test:{site.port}: a connection to secure.test asked for evil.test by TLS: "
        "it is not in the allow-list (--allow-net)"
    ]


async def test_git_clones_fetches_and_pushes(sandbox: SupervisedSandbox, tmp_path: Path) -> None:
    def git(*words: str) -> bytes:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(command, check=True, capture_output=True).stdout

    bare, work = tmp_path / "r.git", tmp_path / "work"
    git("init", "-q", "--bare", "-b", "main", str(bare))
    git("-C", str(bare), "config", "http.receivepack", "true")
    git("clone", "-q", str(bare), str(work))
    (work / "big").write_bytes(bytes(range(256)) * 20_000)
    git("-C", str(work), "add", "big")
    git("-C", str(work), "commit", "-qm", "one")
    git("-C", str(work), "push", "-q", "origin", "HEAD:main")
    with website(tmp_path) as site:
        script = f"""set -e; export GIT_CONFIG_GLOBAL=/tmp/gitconfig
            git config --global user.name x; git config --global user.email x@y
            git clone -q http://one.test:{site.port}/git/r.git /tmp/clone; cd /tmp/clone; sha256sum < big
            head -c 3000000 /dev/urandom > more; git add more; git commit -qm two; git push -q origin HEAD:main; git fetch -q
            git log --format=%s origin/main"""
        done = await bash(sandbox, script)
    assert done.exit_code == 0, done
    assert done.output.split()[-2:] == [b"two", b"one"]
    assert git("-C", str(bare), "log", "--format=%s", "main") == b"two\none\n"


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="this python has no pip")
async def test_pip_installs_from_an_index(sandbox: SupervisedSandbox, tmp_path: Path) -> None:
    simple = tmp_path / "simple" / "greeting"
    simple.mkdir(parents=True)
    wheel = "greeting-1.0-py3-none-any.whl"
    with zipfile.ZipFile(simple / wheel, "w") as archive:
        archive.writestr("greeting.py", "print('installed')\n")
        archive.writestr("greeting-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        archive.writestr(
            "greeting-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("greeting-1.0.dist-info/RECORD", "")
    (simple / "index.html").write_text(f'<a href="{wheel}">{wheel}</a>')
    with website(tmp_path) as site:
        index = f"--index-url http://pypi.test:{site.port}/simple/ --trusted-host pypi.test"
        command = f"{sandbox.python} -m pip install -q --target /tmp/site {index} greeting && PYTHONPATH=/tmp/site python3 -m greeting"
        done = await bash(sandbox, command)
    assert done.output == b"installed\n", done


def _fetch_knows_proxies() -> bool:
    node = shutil.which("node")
    if node is None:
        return False
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    major, minor = map(int, version.strip().lstrip("v").split(".")[:2])
    return major >= 24 or (major == 22 and minor >= 21)


@pytest.mark.skipif(not _fetch_knows_proxies(), reason="needs a node whose fetch knows proxies (22.21, 24)")
async def test_node_fetches(sandbox: SupervisedSandbox, site: Website) -> None:
    script = f"fetch('http://one.test:{site.port}/hello.txt').then(r => r.text()).then(t => console.log(t))"
    done = await sandbox.exec(["node", "-e", script], timeout=60)
    assert done.output == b"hello\n\n", done


@pytest.mark.slow
@pytest.mark.timeout(320)
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
async def test_a_browser_loads_a_page_and_not_one_of_another_host(
    sandbox: SupervisedSandbox, site: Website, net: Net
) -> None:
    browser = (
        "chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run "
        "--disable-background-networking --disable-component-update --disable-sync --user-data-dir=/tmp/profile "
        '--proxy-server="$http_proxy" --proxy-bypass-list="<-loopback>" --dump-dom'
    )
    done = await bash(sandbox, f"{browser} http://one.test:{site.port}/page.html 2>/dev/null", timeout=150)
    assert b'<p id="p">ran</p>' in done.output, done
    done = await bash(sandbox, f"{browser} http://evil.test:{site.port}/page.html 2>/dev/null", timeout=150)
    assert b"may not be reached" in done.output, done
    assert [line for line in site.said if "page.html" in line] == ["GET /page.html HTTP/1.1"]


async def test_a_port_of_this_machine_that_is_listed_is_found_inside_without_a_proxy(
    opener: Opener, site: Website
) -> None:
    found = opener("bwrap", allow_net=(f"localhost:{site.port}", "localhost:81", "*.example.com"))
    url = f"http://localhost:{site.port}/hello.txt"
    for _ in range(2):  # the second time in a sandbox that had to start anew
        done = await bash(found, f"env -u http_proxy curl -sS {url}; env -u http_proxy curl -sS {url}")
        assert (done.output, done.stderr) == (b"hello\nhello\n", b"")
        assert found._connection is not None
        await found._connection.end()
    (notice,) = {text for _, text in opener.notices}
    assert notice.startswith("localhost:81 is not found at its own port inside the sandbox: port 81 cannot be opened")
    assert len(site.said) == 4


async def test_a_sandbox_that_had_to_start_anew_has_its_network_again(
    sandbox: SupervisedSandbox, site: Website
) -> None:
    url = f"http://one.test:{site.port}/hello.txt"
    assert (await bash(sandbox, f"curl -sS {url}")).output == b"hello\n"
    connection = sandbox._connection
    assert connection is not None
    await connection.end()
    assert (await bash(sandbox, f"curl -sS {url}")).output == b"hello\n"
    assert sandbox.generation == 1


async def test_nothing_of_the_users_own_proxy_is_seen_inside(
    opener: Opener, monkeypatch: pytest.MonkeyPatch, net: Net
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:sesame@127.0.0.1:9")
    found = opener("bwrap")
    found.proxy = Proxy(net.decide, lambda level, text: None)
    done = await bash(found, "env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'")
    assert b"https_proxy=http://127.0.0.1:3128" in done.output
    assert b"sesame" not in done.output
    await found.close()
