"""The daytona backend, by the real SDK, against a stand-in: what it asks for, that nothing is left, and that the key stays here."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from handwork.config import DaytonaSettings, SandboxSettings
from handwork.errors import SandboxError, SandboxUnavailable
from handwork.sandbox.open import open_sandbox
from tests.support.daytona_server import KEY, DaytonaServer

from .conftest import Opener


async def test_a_machine_is_asked_for_at_the_first_use_and_not_before(daytona: DaytonaServer, opener: Opener) -> None:
    sandbox = opener.daytona(memory_limit="3g", cpu_limit=1.5, table={"sandbox_image_name": "some/image:2"})
    assert daytona.asked == []
    await sandbox.exec(["true"])
    (machine,) = daytona.made
    wishes = machine.wishes
    assert "some/image:2" in wishes["buildInfo"]["dockerfileContent"]
    assert (wishes["cpu"], wishes["memory"], wishes["public"], wishes["networkBlockAll"]) == (2, 3, False, True)
    assert (wishes["autoStopInterval"], wishes["autoDeleteInterval"], wishes["target"]) == (15, 0, "us")
    assert wishes["labels"]["handwork.session"] == "artifacts"
    assert wishes["name"].startswith("handwork-")


async def test_the_vnc_password_is_the_users_or_another_each_time(daytona: DaytonaServer, opener: Opener) -> None:
    for table in ({}, {}, {"VNC_password": "mine"}):
        await opener.daytona(table=table).exec(["true"])
    first, second, third = (machine.wishes["env"]["VNC_PASSWORD"] for machine in daytona.made)
    assert len({first, second, "", "123456"}) == 4
    assert third == "mine"


async def test_the_network_is_opened_on_request_alone(daytona: DaytonaServer, opener: Opener) -> None:
    await opener.daytona(network=True).exec(["true"])
    assert daytona.made[0].wishes["networkBlockAll"] is False


async def test_no_machine_is_left_by_a_close(daytona: DaytonaServer, opener: Opener) -> None:
    sandbox = opener.daytona()
    await sandbox.spawn(["sleep", "1000"])
    assert len(daytona.machines) == 1
    await sandbox.close()
    assert daytona.machines == {}


async def test_a_machine_that_is_to_be_kept_is_stopped(daytona: DaytonaServer, opener: Opener) -> None:
    sandbox = opener.daytona(table={"keep": True})
    await sandbox.exec(["true"])
    await sandbox.close()
    (machine,) = daytona.machines.values()
    assert machine.state == "stopped"
    assert machine.wishes["autoDeleteInterval"] == -1


async def test_a_machine_that_goes_away_is_replaced_at_the_next_use(daytona: DaytonaServer, opener: Opener) -> None:
    sandbox = opener.daytona()
    process = await sandbox.spawn(["sleep", "1000"])
    await daytona.made[0].end()
    with pytest.raises(SandboxError, match="gone"):
        await process.wait()
    assert (await sandbox.exec(["echo", "again"])).output == b"again\n"
    assert len(daytona.made) == 2
    await sandbox.close()
    assert daytona.machines == {}


@pytest.mark.parametrize("fault", ["terminal", "error", "python"])
async def test_a_start_that_fails_half_way_leaves_no_machine(
    daytona: DaytonaServer, opener: Opener, fault: str
) -> None:
    daytona.no_terminal = fault == "terminal"
    daytona.states = ["creating", "error"] if fault == "error" else []
    if fault == "python":
        daytona.shell = ["env", "PATH=/nowhere", "/bin/bash", "--norc", "-i"]
    with pytest.raises(SandboxUnavailable) as caught:
        await opener.daytona().exec(["true"])
    assert {"error": "out of machines", "terminal": "500", "python": "python3: not found"}[fault] in caught.value.what
    assert caught.value.hint
    assert len(daytona.made) == 1
    assert daytona.machines == {}


async def test_closing_or_cancelling_while_a_machine_is_made_leaves_none(
    daytona: DaytonaServer, opener: Opener
) -> None:
    daytona.mute.clear()
    sandbox = opener.daytona()
    start = asyncio.ensure_future(sandbox.exec(["true"]))
    async with asyncio.timeout(20):
        await daytona.making.wait()
    await sandbox.close()
    with pytest.raises(SandboxError, match="closed"):
        await start
    assert daytona.machines == {}


async def test_without_a_key_it_is_said_which_to_set_and_nobody_is_asked(
    daytona: DaytonaServer, opener: Opener
) -> None:
    with pytest.raises(SandboxUnavailable, match=r"needs a key.*daytona_api_key in \[daytona\], or DAYTONA_API_KEY"):
        await opener.daytona(key="").exec(["true"])
    assert daytona.asked == []


@pytest.mark.parametrize(
    ("status", "words"), [(403, "is the key right"), (401, "is the key right"), (400, "daytona_server_url")]
)
async def test_a_refusal_is_told_without_the_key(
    daytona: DaytonaServer, opener: Opener, status: int, words: str
) -> None:
    daytona.refuse = status
    with pytest.raises(SandboxUnavailable) as caught:
        await opener.daytona().exec(["true"])
    assert "refused for ***" in caught.value.what
    assert words in str(caught.value)
    assert KEY not in repr(caught.value) + str(caught.value) + str(opener.notices)


async def test_nobody_there_is_told(opener: Opener) -> None:
    opener.server.url = "http://127.0.0.1:9"
    with pytest.raises(
        SandboxUnavailable, match=r"Daytona gives no sandbox: .*daytona_server_url is http://127.0.0.1:9/api"
    ):
        await opener.daytona().exec(["true"])


async def test_the_key_never_enters_the_machine(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYTONA_API_KEY", KEY)
    sandbox = opener.daytona(work_dir="/workspace")
    found = await sandbox.exec(
        ["sh", "-c", "env; cat /proc/*/environ /proc/*/cmdline; grep -r dtn_ /tmp /workspace /root"]
    )
    assert KEY.encode() not in found.output + found.stderr


async def test_a_dotenv_in_our_folder_turns_on_no_telemetry_and_sends_the_key_nowhere(
    daytona: DaytonaServer, opener: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("DAYTONA_OTEL_ENABLED=true\nDAYTONA_TARGET=elsewhere\n")
    await opener.daytona().exec(["true"])
    assert daytona.made[0].wishes["target"] == "us"
    from opentelemetry import trace

    assert type(trace.get_tracer_provider()).__name__ == "ProxyTracerProvider"


async def test_the_settings_of_a_session_lead_there(daytona: DaytonaServer, tmp_path: Path) -> None:
    sandbox = open_sandbox(
        SandboxSettings(backend="daytona"), workspace=tmp_path / "w", artifacts=tmp_path / "a", notify=print,
        daytona=DaytonaSettings(daytona_server_url=f"{daytona.url}/api"), environ={"DAYTONA_API_KEY": KEY},
    )  # fmt: skip
    assert (sandbox.name, sandbox.contained, sandbox.workspace) == ("daytona", True, "/workspace")
    try:
        await sandbox.write("file", b"there")
        assert (await sandbox.exec(["cat", "/workspace/file"])).output == b"there"
    finally:
        await sandbox.close()
    assert daytona.machines == {}
