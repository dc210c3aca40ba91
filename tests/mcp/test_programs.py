"""Package runners of mcp.json are recognised, and stand for what was installed of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from handwork.config import MCPServerSettings
from handwork.config.settings import Home
from handwork.errors import MCPUnavailable
from handwork.mcp.programs import (
    RECORD,
    Installed,
    Package,
    find,
    folder_for,
    installed_argv,
    package_of,
    pinned,
    program_of,
    program_paths,
    record,
    resolved,
)


def server(line: str) -> MCPServerSettings:
    command, *args = line.split()
    return MCPServerSettings(command=command, args=tuple(args))


@pytest.fixture
def own(tmp_path: Path) -> Home:
    return Home.from_environ({"HANDWORK_HOME": str(tmp_path)})


def lay(home: Home, line: str, version: str, when: str = "2026-01-01", **programs: str) -> Installed:
    """Note a package as installed."""
    package = package_of(server(line))
    assert package is not None
    folder = folder_for(package, version, home)
    folder.mkdir(parents=True)
    argv = {name.replace("_", "-"): ("/x/runs", path) for name, path in programs.items()}
    kept = (package.kind, package.name, version, package.extras, package.more, package.version)
    found = Installed(*kept, argv, (str(folder),), when)
    record(folder, found)
    return found


@pytest.mark.parametrize(
    ("line", "package"),
    [
        ("npx -y @a/server-files /work", Package("npm", "@a/server-files", arguments=("/work",))),
        ("/usr/bin/npx @a/b@1.2.3", Package("npm", "@a/b", "1.2.3")),
        ("npx --yes plain@latest --port 1", Package("npm", "plain", arguments=("--port", "1"))),
        ("npx -y -p @a/b@^1.0 tool x", Package("npm", "@a/b", "^1.0", program="tool", arguments=("x",))),
        ("npx --package=@a/b -- tool -y", Package("npm", "@a/b", program="tool", arguments=("-y",))),
        ("npm exec -y -- some@next", Package("npm", "some", "next")),
        ("bunx some", Package("npm", "some")),
        ("pnpm dlx some", Package("npm", "some")),
        ("uvx mcp-server-time --zone=UTC", Package("python", "mcp-server-time", arguments=("--zone=UTC",))),
        ("uvx some@2.0", Package("python", "some", "2.0")),
        ("uvx some@latest", Package("python", "some")),
        ("uvx --from some[cli]==1.0 tool", Package("python", "some", "==1.0", "[cli]", program="tool")),
        ("uvx --with httpx --from some>=1 tool", Package("python", "some", ">=1", more=("httpx",), program="tool")),
        ("uv tool run some", Package("python", "some")),
        ("pipx run --spec some==1.0 tool", Package("python", "some", "==1.0", program="tool")),
    ],
)
def test_what_a_runner_would_fetch_is_read(line: str, package: Package) -> None:
    assert package_of(server(line)) == package


@pytest.mark.parametrize("line", ["python -m server", "npm start", "uv run server.py", "docker run x", "npxx some"])
def test_a_command_that_fetches_nothing_is_left_alone(line: str, own: Home) -> None:
    assert package_of(server(line)) is None
    assert resolved("it", server(line), own) == server(line)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("npx -y github:owner/repo", "github:owner/repo is no name of a package"),
        ("npx ./local", "./local is no name"),
        ("uvx --from git+https://x.example/y tool", "is no name of a package"),
        ("uvx --with ./local some", "./local is no name"),
        ("uvx --index-url https://x.example some", "its option --index-url is not known"),
        ("npx -c some", "its option -c is not known"),
        ("npx -y", "it names no package"),
        ("npx", "it names no package"),
        ("uvx --from", "its option --from is not known"),
    ],
)
def test_what_cannot_be_installed_is_said_with_the_way_on(line: str, said: str) -> None:
    with pytest.raises(MCPUnavailable, match=re.escape(said)) as caught:
        package_of(server(line))
    assert caught.value.lasting
    assert "install it yourself" in caught.value.hint


def test_what_is_not_installed_says_which_command_installs_it(own: Home) -> None:
    with pytest.raises(MCPUnavailable, match=r"The MCP server clock: some \(PyPI\) is not installed") as caught:
        resolved("clock", server("uvx some"), own)
    assert caught.value.lasting
    assert caught.value.hint == "handwork mcp add clock installs it"


def test_an_installed_program_takes_the_runners_place_and_its_folder_can_be_seen(own: Home) -> None:
    laid = lay(own, "uvx some", "1.0", some="/x/some")
    found = resolved("it", server("uvx some --flag").model_copy(update={"paths": ("/data",)}), own)
    assert (found.command, found.args) == ("/x/runs", ("/x/some", "--flag"))
    assert found.paths == ("/data", *laid.paths)


def test_what_is_started_and_what_it_needs_to_see_are_known_without_the_rest(own: Home) -> None:
    laid = lay(own, "uvx some", "1.0", some="/x/some")
    assert installed_argv("it", ["uvx", "some", "--flag"], own) == ["/x/runs", "/x/some", "--flag"]
    assert installed_argv("it", ["python", "server.py"], own) == ["python", "server.py"]
    assert program_paths(server("uvx some"), own) == laid.paths
    for other in ("python server.py", "uvx other", "uvx --from ./here it"):
        assert program_paths(server(other), own) == ()


def test_an_exact_version_is_that_one_and_none_means_the_last_that_was_installed(own: Home) -> None:
    lay(own, "npx some", "1.0", "2026-01-02", some="/1")
    lay(own, "npx some", "2.0", "2026-01-01", some="/2")
    assert resolved("it", server("npx some@2.0"), own).args == ("/2",)
    assert resolved("it", server("npx some"), own).args == ("/1",)
    for other in ("npx some@3.0", "npx some@^1", "npx some@next", "uvx some", "npx @a/some"):
        with pytest.raises(MCPUnavailable, match="is not installed"):
            resolved("it", server(other), own)


def test_extras_and_further_packages_are_another_installation(own: Home) -> None:
    lay(own, "uvx some", "1.0", some="/x")
    for other in ("uvx some[cli]", "uvx --with more some"):
        with pytest.raises(MCPUnavailable, match="is not installed"):
            resolved("it", server(other), own)
    assert resolved("it", server("uvx Some"), own).args == ("/x",)


def test_a_program_is_found_by_its_name_the_packages_name_or_as_the_only_one(own: Home) -> None:
    found = lay(own, "npx @a/server-some", "1.0", server_some="/s", other="/o")
    package = package_of(server("npx @a/server-some"))
    named = package_of(server("npx -p @a/server-some other"))
    wrong = package_of(server("npx -p @a/server-some third"))
    assert package
    assert named
    assert wrong
    assert program_of(found, package) == ("/x/runs", "/s")
    assert program_of(found, named) == ("/x/runs", "/o")
    with pytest.raises(MCPUnavailable, match="has no program named third") as caught:
        program_of(found, wrong)
    assert caught.value.hint == "its programs: other, server-some"
    only, lonely = lay(own, "npx lonely", "1.0", strange="/only"), package_of(server("npx lonely"))
    assert lonely
    assert program_of(only, lonely) == ("/x/runs", "/only")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"kind": "npm"}', '{"more": 1, "programs": 2}', "[" * 9999])
def test_a_record_that_is_damaged_counts_as_not_installed(own: Home, text: str) -> None:
    found = lay(own, "npx some", "1.0", some="/x")
    (Path(found.paths[0]) / RECORD).write_text(text)
    package = package_of(server("npx some"))
    assert package
    assert find(package, own) is None


@pytest.mark.parametrize(
    ("line", "args"),
    [
        ("npx -y @a/b /work", ("-y", "@a/b@1.5", "/work")),
        ("npx -y b@^1", ("-y", "b@1.5")),
        ("npx --package=b tool", ("--package=b@1.5", "tool")),
        ("uvx some --flag", ("some@1.5", "--flag")),
        ("uvx --from some[cli] tool", ("--from", "some[cli]==1.5", "tool")),
        ("pipx run some", ("run", "some==1.5")),
        ("uvx some@1.0", ("some@1.0",)),
    ],
)
def test_an_entry_is_pinned_to_the_version_that_was_installed_and_else_stays(line: str, args: tuple[str, ...]) -> None:
    package = package_of(server(line))
    assert package is not None
    assert pinned(server(line), package, "1.5") == args
