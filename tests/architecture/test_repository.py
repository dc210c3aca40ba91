"""The repository's files name no registry and no machine, and its documents name only what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.architecture import repository
from tests.architecture.source import ROOT

DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def test_no_file_names_a_registrys_host() -> None:
    assert list(repository.registry_hosts(ROOT, repository.tracked_files(ROOT))) == []


def test_no_file_has_a_path_of_a_machine() -> None:
    assert list(repository.machine_paths(ROOT, repository.tracked_files(ROOT))) == []


@pytest.mark.parametrize(
    "host", ["pypi" + ".org", "files.pythonhosted" + ".org", "registry.npmjs" + ".org", "deb.debian" + ".org"]
)
def test_a_host_is_caught_in_any_file_but_the_catalog(host: str, tmp_path: Path) -> None:
    odd, catalog = tmp_path / "odd.bin", tmp_path / "src/handwork/llm/local/catalog.py"
    catalog.parent.mkdir(parents=True)
    odd.write_bytes(b"\xff\x00 https://" + host.encode() + b"/simple\n")
    catalog.write_text(f"INDEX = 'https://{host}/simple'")
    found = list(repository.registry_hosts(tmp_path, [odd, catalog]))
    assert len(found) == 1
    assert found[0].startswith("odd.bin")


@pytest.mark.parametrize(
    "path", ["/home/" + "jo/project/x", "/root" + "/project", "/work" + "/main/x", "/Users" + "/jo/x"]
)
def test_a_machines_path_is_caught(path: str, tmp_path: Path) -> None:
    (tmp_path / "odd.bin").write_bytes(b"\xff\x00" + f"see {path}".encode())
    assert len(list(repository.machine_paths(tmp_path, [tmp_path / "odd.bin"]))) == 1


def test_the_checkouts_own_path_is_caught(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(f"in {tmp_path}/src")
    assert list(repository.machine_paths(tmp_path, [tmp_path / "x"])) == ["x: has the path of this checkout"]


def test_files_are_found_without_git(tmp_path: Path) -> None:
    for name in ("a/b.txt", ".venv/c.txt", "d/__pycache__/e.pyc", ".ci/run"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [path.relative_to(tmp_path).as_posix() for path in repository.tracked_files(tmp_path)] == [
        ".ci/run",
        "a/b.txt",
    ]


def test_documents_name_only_what_is_there() -> None:
    assert list(repository.make_targets_named_but_missing(ROOT, DOCUMENTS)) == []
    assert list(repository.paths_named_but_missing(ROOT, DOCUMENTS)) == []


def test_a_document_that_names_what_is_missing_is_caught(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("demo: x\n\techo\n")
    page = tmp_path / "README.md"
    page.write_text(
        "Run `make demo`, or\n\n    $ make tea\n\nSee `src/handwork/nowhere.py` and [this](docs/none.md), [that](https://x.example/)."
    )
    assert list(repository.make_targets_named_but_missing(tmp_path, [page])) == ["README.md: there is no `make tea`"]
    assert len(list(repository.paths_named_but_missing(tmp_path, [page]))) == 2


def test_agents_md_is_short_opens_with_the_layout_and_names_every_folder() -> None:
    text = (ROOT / "AGENTS.md").read_text()
    assert len(text.splitlines()) <= 80
    tree = text.split("```")[1]
    folders = {path.name for path in (ROOT / "src/handwork").iterdir() if path.is_dir() and path.name != "__pycache__"}
    named = set(re.findall(r"(\w+)/", tree))
    assert folders - named == set(), "AGENTS.md does not say what these are for"
    assert text.index("```") < 400


def test_requirements_are_hashed_and_name_no_source() -> None:
    for path in sorted((ROOT / "requirements").glob("*.txt")):
        text = path.read_text()
        entries = [line for line in re.sub(r"\\\n", "", text).splitlines() if line and not line.startswith("#")]
        assert entries
        assert all(re.match(r"[\w.\[\],-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line) for line in entries), path.name
