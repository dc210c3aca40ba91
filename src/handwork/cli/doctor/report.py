"""`handwork doctor --report`: a file for a bug report, in which everything stands by permission and nothing by accident."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from handwork import __version__
from handwork.agent.names import ROLES
from handwork.cli.doctor.finding import Finding, Ground
from handwork.cli.doctor.installation import installed_by, requirements
from handwork.cli.doctor.redact import HIDDEN, Redactor
from handwork.cli.doctor.show import passed
from handwork.config import Settings
from handwork.config.providers import PROVIDERS
from handwork.errors import ConfigError, HandworkError
from handwork.store.check import check_store
from handwork.store.sqlite import Store

_SESSIONS = 20
_SAID = {"model", "api_type", "api_version", "backend", "synchronous", "approve", "engine", "type", "lang", "country"}
"""Keys of the configuration whose texts are written; of the others only that they are set."""
_PROXIES = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}
_ALSO = {
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "TERM",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "NO_COLOR",
    "COLUMNS",
    "PYTHONPATH",
    "PYTHONHOME",
}
_README = """This file was written by `handwork doctor --report` for a bug report.
Look at it before you send it.

doctor.json       what the doctor found
versions.json     Python, Handwork, the packages that it needs, the system
config.json       the effective configuration: numbers, choices and model names; of other texts only that they are set
sessions.json     the last sessions: how they ended and the types of their errors; no names, prompts or contents
environment.json  names of variables that are set; no values

Left out: keys, passwords, headers, values of variables, prompts, answers, file contents and names.
Replaced: user, host, home folder, workspace, addresses of servers.
"""


def write_report(file: Path | None, ground: Ground, findings: Sequence[Finding]) -> tuple[Path, list[str]]:
    """Write the report; returns its path and the names of its parts. Raises ConfigError if it cannot be written."""
    hide = Redactor(ground.settings, ground.workspace)
    parts: dict[str, Any] = {
        "doctor.json": {"ok": passed(findings), "findings": [_finding(each, hide) for each in findings]},
        "versions.json": _versions(hide),
        "config.json": _tables(ground.settings, hide),
        "sessions.json": _sessions(ground.settings, hide),
        "environment.json": _environment(ground.settings.environ),
    }
    texts = {name: json.dumps(part, indent=1, ensure_ascii=False) + "\n" for name, part in parts.items()}
    path = _new_file(file)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as bundle:
            for name, text in {"README.txt": _README, **texts}.items():
                bundle.writestr(name, text.encode("utf-8", "backslashreplace"))
    except FileExistsError:
        raise ConfigError(f"{path} is there already", hint="name another file, or take that one away") from None
    except OSError as error:
        hint = "name a file in a folder that you can write to: handwork doctor --report FILE"
        raise ConfigError(f"The report {path} cannot be written: {error.strerror}", hint=hint) from None
    return path, list(texts)


def _new_file(file: Path | None) -> Path:
    name = time.strftime("handwork-report-%Y%m%d-%H%M%S.zip")
    if file is None:
        return Path(name)
    return file / name if file.is_dir() else file


def _finding(finding: Finding, hide: Redactor) -> dict[str, Any]:
    shown = asdict(finding)
    return shown | {name: hide.text(shown[name]) for name in ("id", "text", "fix")}


def _versions(hide: Redactor) -> dict[str, Any]:
    release = platform.freedesktop_os_release() if sys.platform == "linux" and _has_release() else {}
    return {
        "handwork": __version__,
        "installation": installed_by()[0],
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "distribution": hide.text(release.get("PRETTY_NAME", "")),
        "libc": " ".join(platform.libc_ver()),
        "packages": {each.name: each.installed for each in requirements() if each.installed},
    }


def _has_release() -> bool:
    return any(Path(place).is_file() for place in ("/etc/os-release", "/usr/lib/os-release"))


def _tables(settings: Settings, hide: Redactor) -> dict[str, Any]:
    """The settings: what stands as it does by default is written, and of the rest what says nothing about anybody."""
    left_out = {"home", "environ", "notices", "withheld"}
    dumped = settings.model_dump(mode="json", exclude=left_out)
    usual = Settings(home=settings.home, environ={}).model_dump(mode="json", exclude=left_out)
    usual["llm"] = dict.fromkeys(dumped["llm"], usual["llm"]["default"])
    return {name: _value(name, table, usual.get(name), hide) for name, table in dumped.items()}


def _value(key: str, value: Any, usual: Any, hide: Redactor) -> Any:
    """A setting as the report says it."""
    if value == usual:
        return value
    if isinstance(value, Mapping):
        names = {name: f"server {number}" for number, name in enumerate(value, 1)} if key == "servers" else {}
        defaults = usual if isinstance(usual, Mapping) else {}
        return {
            names.get(name, hide.text(str(name))): _value(str(name), inner, defaults.get(name), hide)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return f"<{len(value)} set>" if value else []
    if isinstance(value, str) and value:
        return hide.text(value) if key in _SAID else HIDDEN
    return value


def _sessions(settings: Settings, hide: Redactor) -> Any:
    path = settings.store_path
    if not path.exists():
        return []
    try:
        check_store(path)
        store = Store.open(path)
    except HandworkError as error:
        return {"unreadable": type(error).__name__}
    try:
        return [_session(store, info, hide) for info in store.sessions(limit=_SESSIONS)]
    except HandworkError as error:
        return {"unreadable": type(error).__name__}
    finally:
        store.close()


def _session(store: Store, info: Any, hide: Redactor) -> dict[str, Any]:
    kinds: Counter[str] = Counter()
    ends: list[dict[str, Any]] = []
    for _, raw in store.events(info.id):
        event = json.loads(raw)
        kind = str(event.get("type"))
        kinds[hide.text(kind)] += 1
        if kind == "run_finished":
            error = event.get("error") or {}
            ends.append({"status": event.get("status"), "steps": event.get("steps"), "error": error.get("type")})
    return {
        "created": info.created,
        "updated": info.updated,
        "status": info.status,
        "agent": info.agent if info.agent in ROLES else "<custom>",
        "model": hide.text(info.model),
        "steps": info.steps,
        "events": dict(kinds),
        "runs": ends[-10:],
    }


def _environment(environ: Mapping[str, str]) -> list[str]:
    """Names of variables that are ours, a provider's, or about the network, the terminal or Python."""
    of_providers = {name for each in PROVIDERS.values() for name in (*each.key_variables, each.base_url_variable)}
    wanted = of_providers | _ALSO
    return sorted(
        name
        for name, value in environ.items()
        if value and (name in wanted or name.startswith("HANDWORK_") or name.lower() in _PROXIES)
    )
