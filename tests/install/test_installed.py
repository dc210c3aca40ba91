from __future__ import annotations

import asyncio
import os
import stat
import subprocess
from pathlib import Path

import pytest
from tests.install.places import Installed, install, pythons
from tests.install.test_wheel import ABOUT, ROOT, build
from tests.support.strict_server import StrictServer, tool

pytestmark = pytest.mark.slow

VERSION = ABOUT.removeprefix("handwork-").removesuffix(".dist-info")
MOST_MEGABYTES = 125
"""Core install without bytecode; 118 in November 2026: half of it jedi and debugpy, which the kernel's packages bring along, and 18
the MCP SDK with what it builds on (cryptography, starlette, httpx2)."""

PLACES = [("pip", "own"), ("pipx", "own"), *(("uv", version) for version in pythons())]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("dist"))[1]


@pytest.fixture(scope="module", params=PLACES, ids="-".join)
def installed(
    request: pytest.FixtureRequest,
    wheel: Path,
    tools: Path,
    measured: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Installed:
    installer, version = request.param
    found = pythons()
    python = found.get(version) or next(iter(found.values()))
    made = install(installer, wheel, tmp_path_factory.mktemp(installer), tools, python)
    measured.append(f"{installer} ({version}): {made.megabytes:.0f} MB in {made.seconds:.0f} s")
    return made


class Person:
    """Somebody with a home of their own, in a folder of their own, who knows nothing of this checkout."""

    def __init__(self, base: Path, installed: Installed) -> None:
        self.home, self.folder, self._program = base / "home", base / "work here", installed.command
        self.home.mkdir()
        self.folder.mkdir()
        self._environ = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TERM": "xterm",
        }

    async def types(self, *words: str, **environ: str) -> tuple[int, str, str]:
        process = await asyncio.create_subprocess_exec(
            str(self._program),
            *words,
            cwd=self.folder,
            env={**self._environ, **environ},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), 120)
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()


@pytest.fixture
def person(tmp_path: Path, installed: Installed) -> Person:
    return Person(tmp_path, installed)


def test_the_core_is_not_larger_than_it_should_be(installed: Installed) -> None:
    assert installed.megabytes < MOST_MEGABYTES


async def test_the_command_answers(person: Person) -> None:
    assert (await person.types("--version"))[:2] == (0, f"handwork {VERSION}\n")
    code, out, err = await person.types("--help")
    assert (code, err) == (0, "")
    assert "run" in out
    code, out, err = await person.types("config", "show")
    assert (code, err) == (0, ""), err
    code, out, err = await person.types("doctor")
    assert "Traceback" not in out + err
    assert code in (0, 1), err


async def test_without_a_model_it_says_the_ways_on(person: Person) -> None:
    code, out, err = await person.types("say hello")
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert "OPENAI_API_KEY" in err


async def test_a_task_is_done_in_the_persons_folder(person: Person) -> None:
    make = tool("bash", command="echo it works > made.txt")
    count = tool("python_execute", code="print(len(open('made.txt').read()))")
    async with StrictServer([make, count, "Done."]) as server:
        code, out, err = await person.types("make a file", "--base-url", server.url, "--model", "strict")
    assert (code, out) == (0, "Done.\n"), err
    assert (person.folder / "made.txt").read_text() == "it works\n"
    assert stat.S_IMODE((person.home / ".local/share/handwork").stat().st_mode) & 0o077 == 0


def test_the_command_that_gets_an_extra_gets_it(installed: Installed) -> None:
    def there() -> bool:
        code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('keyring') is None)"
        return subprocess.run([installed.python, "-c", code]).returncode == 0

    assert not there()
    code = "from handwork.config.extras import way_to_get; print(way_to_get('keyring'))"
    way = subprocess.run([installed.python, "-c", code], capture_output=True, text=True, check=True).stdout
    ended = subprocess.run(way, shell=True, env=installed.environ, capture_output=True, text=True)
    assert ended.returncode == 0, f"{way}{ended.stderr}"
    assert there()
