"""The report gives nobody away: everything secret or personal that this machine is made to hold is looked for in its bytes."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.cli.doctor.conftest import MakeGround

from handwork.cli.doctor.finding import Finding, Ground
from handwork.cli.doctor.redact import Redactor
from handwork.cli.doctor.report import write_report
from handwork.config import load_settings
from handwork.errors import ConfigError
from handwork.events import Notice, RunFinished, RunStarted
from handwork.events import kinds as ev
from handwork.session import Session

SECRETS = {
    "environment key": "sk-envKEY0123456789abcdef",
    "other variable": "Tr0ub4dor&3-correct",
    "configured key": "cfg-key-with-no-known-form",
    "header": "header-Value-42",
    "url password": "urlP4ssw0rd",
    "url query": "queryK3yValue",
    "proxy password": "pr0xy%40Pass",
    "proxy password as meant": "pr0xy@Pass",
    "proxy user": "proxyuser",
    "mcp header": "mcpHeaderToken",
    "mcp environment": "mcpEnvPassw",
    "mcp argument": "mcpArgS3cret",
    "mcp url key": "mcpUrlT0ken",
    "stored key": "xai-" + "storedKEY" * 5,
    "user": "joanna",
    "full home": "/people/joanna",
    "host": "joannas-laptop",
    "company": "acme-corp",
    "workspace": "secret-client",
    "prompt": "buy the island",
    "title": "island",
    "server name": "acme-jira",
    "session id": "my-client-session",
}
NOBODY_KNOWS = {"prompt", "title", "server name", "session id", "company", "workspace"}
"""Words of which a text does not tell that they are private: none of our findings says them."""
CONFIG = """
[llm]
model = "openai:gpt-5.4"
base_url = "https://joanna:urlP4ssw0rd@llm.acme-corp.internal:8443/v1?api_key=queryK3yValue"
api_key = "cfg-key-with-no-known-form"
headers = { "X-Auth" = "header-Value-42" }
[browser.proxy]
server = "http://proxy.acme-corp.internal:3128"
username = "proxyuser"
password = "urlP4ssw0rd"
[daytona]
daytona_api_key = "cfg-key-with-no-known-form"
"""
MCP = {
    "mcpServers": {
        "acme-jira": {
            "command": "npx",
            "args": ["-y", "--token=mcpArgS3cret", "mcpArgS3cret"],
            "env": {"JIRA_PASS": "mcpEnvPassw"},
        },
        "remote": {
            "type": "http",
            "url": "https://mcp.acme-corp.internal/mcp?token=mcpUrlT0ken",
            "headers": {"Authorization": "Bearer mcpHeaderToken"},
        },
    }
}


@pytest.fixture
def attacked(tmp_path: Path) -> Ground:
    """A machine that holds each of the secrets where people keep them."""
    user = tmp_path / "people" / "joanna"
    workspace = user / "work" / "secret-client"
    home = user / "own"
    for folder in (workspace, home):
        folder.mkdir(parents=True)
    config = home / "config.toml"
    config.write_text(CONFIG)
    (home / "mcp.json").write_text(json.dumps(MCP))
    environ = {
        "HOME": str(user),
        "HANDWORK_HOME": str(home),
        "USER": "joanna",
        "HOSTNAME": "joannas-laptop.acme-corp.internal",
        "OPENAI_API_KEY": SECRETS["environment key"],
        "VAULT_PASSPHRASE": SECRETS["other variable"],
        "HTTPS_PROXY": "http://proxyuser:pr0xy%40Pass@proxy.acme-corp.internal:3128",
        "NO_PROXY": "intranet.acme-corp.internal",
        "SSL_CERT_FILE": f"{user}/acme-corp-ca.pem",
    }
    settings = load_settings(workspace=workspace, environ=environ)
    settings.keys.set("xai", SECRETS["stored key"], base_url="https://api.x.ai/v1")
    return Ground(settings, workspace)


def _findings(ground: Ground) -> list[Finding]:
    """Texts that say all that could be said."""
    everything = " · ".join(
        [*SECRETS.values(), str(ground.workspace), str(ground.settings.home.data), *ground.settings.environ.values()]
    )
    addresses = "https://joanna:urlP4ssw0rd@llm.acme-corp.internal/v1 joanna@acme-corp.internal 10.11.12.13 127.0.0.1"
    return [
        Finding(
            "model",
            "Model",
            "problem",
            f"{everything} {addresses}",
            f"chmod 600 {ground.workspace}/x y/{SECRETS['stored key']}",
        )
    ]


def _parts(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as bundle:
        return {name: bundle.read(name).decode() for name in bundle.namelist()}


async def _with_a_session(ground: Ground) -> None:
    async with Session.open(ground.settings, ground.workspace, "my-client-session") as session:
        session.emit(
            RunStarted(request="buy the island", model="openai:gpt-5.4", workspace=str(ground.workspace), limits={})
        )
        session.emit(Notice(level="warning", text="buy the island for joanna"))
        error = ev.ErrorInfo(type="AuthenticationError", message=f"no: {SECRETS['environment key']}")
        session.emit(
            RunFinished(status="error", output="island", steps=1, usage={}, cost_usd=None, artifacts=(), error=error)
        )
        await session.gate()


async def test_nothing_secret_or_personal_stands_in_the_report(attacked: Ground, tmp_path: Path) -> None:
    await _with_a_session(attacked)
    found = [Finding("store", "Store", "ok", "all is well")]
    path, names = write_report(tmp_path / "report.zip", attacked, found)
    parts = _parts(path)
    assert set(parts) == {"README.txt", *names}
    whole = "\n".join(parts.values()).lower()
    for what, secret in SECRETS.items():
        assert secret.lower() not in whole, f"{what}: {secret}"
    assert path.stat().st_mode & 0o777 == 0o600


async def test_what_the_doctor_says_loses_secrets_people_places_and_hosts(attacked: Ground, tmp_path: Path) -> None:
    path, _ = write_report(tmp_path / "report.zip", attacked, _findings(attacked))
    said = _parts(path)["doctor.json"].lower()
    for what, secret in SECRETS.items():
        if what not in NOBODY_KNOWS:
            assert secret.lower() not in said, f"{what}: {secret} in {said}"
    assert "10.11.12.13" not in said
    assert "127.0.0.1" in said


async def test_the_report_says_what_helps(attacked: Ground, tmp_path: Path) -> None:
    await _with_a_session(attacked)
    path, _ = write_report(
        tmp_path / "report.zip", attacked, [Finding("store", "Store", "problem", "broken", "mend it", True)]
    )
    parts = _parts(path)
    doctor: Any = json.loads(parts["doctor.json"])
    assert doctor["ok"] is False
    config = json.loads(parts["config.json"])
    assert config["llm"]["default"]["model"] == "openai:gpt-5.4"
    assert config["llm"]["default"]["max_tokens"] == 4096
    assert config["sandbox"]["backend"] == "auto"
    assert list(config["mcp"]["servers"]) == ["server 1", "server 2"]
    (session,) = json.loads(parts["sessions.json"])
    assert session["runs"] == [{"status": "error", "steps": 1, "error": "AuthenticationError"}]
    assert {"OPENAI_API_KEY", "HTTPS_PROXY", "HANDWORK_HOME"} <= set(json.loads(parts["environment.json"]))
    assert "VAULT_PASSPHRASE" not in parts["environment.json"]
    assert "aiohttp" in json.loads(parts["versions.json"])["packages"]
    assert "Look at it before you send it" in parts["README.txt"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Bearer abc.def-ghi123", "<hidden>"),
        ("key ghp_abcdefghij0123456789", "key <hidden>"),
        ("a AKIAIOSFODNN7EXAMPLE", "a <hidden>"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.abc", "<hidden>"),
        ("0123456789abcdef0123456789abcdef", "<hidden>"),
        ("/srv/acme/file.txt is full", "<path> is full"),
        ("PATH=/srv/acme:/usr/bin", "PATH=<path>:/usr/bin"),
        ("at /usr/lib/x and /etc/ssl/y", "at /usr/lib/x and /etc/ssl/y"),
        (r"D:\tasks\jo\x.txt", "<path>"),
        ("https://api.openai.com/v1?key=abc", "https://api.openai.com"),
        ("http://localhost:11434/v1", "http://localhost:11434"),
        ("http://10.0.0.1:8000/v1", "http://<host>:8000"),
        ("jo@example.org", "<mail>"),
        ("handwork.extras.missing 3.11.7 gpt-5.4", "handwork.extras.missing 3.11.7 gpt-5.4"),
        ("install it: `apt-get install bubblewrap`", "install it: `apt-get install bubblewrap`"),
    ],
)
def test_what_has_the_form_of_a_secret_or_a_place_goes_and_the_rest_stays(
    text: str, left: str, ground: MakeGround, workspace: Path
) -> None:
    assert Redactor(ground().settings, workspace).text(text) == left


def test_an_existing_file_is_never_written_over(ground: MakeGround, tmp_path: Path) -> None:
    file = tmp_path / "report.zip"
    file.write_text("mine")
    with pytest.raises(ConfigError, match="name another file"):
        write_report(file, ground(), [])
    assert file.read_text() == "mine"
    path, _ = write_report(tmp_path, ground(), [])
    assert path.parent == tmp_path
    assert path.name.startswith("handwork-report-")


def test_a_folder_that_cannot_be_written_is_told_with_another_way(ground: MakeGround) -> None:
    with pytest.raises(ConfigError, match="--report FILE"):
        write_report(Path("/proc/report.zip"), ground(), [])


def test_a_broken_store_does_not_stop_the_report(home: Path, ground: MakeGround, tmp_path: Path) -> None:
    (home / "store.db").write_bytes(b"no store at all" * 1000)
    path, _ = write_report(tmp_path / "r.zip", ground(), [])
    assert json.loads(_parts(path)["sessions.json"]) == {"unreadable": "JournalCorrupt"}
