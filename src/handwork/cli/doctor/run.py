"""`handwork doctor`: look at everything, show what was found, write the report if it is wanted."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from handwork.cli.clean import clean_for_terminal, json_for_terminal
from handwork.cli.doctor.checks import CHECKS
from handwork.cli.doctor.examine import examine
from handwork.cli.doctor.finding import Finding, Ground
from handwork.cli.doctor.report import write_report
from handwork.cli.doctor.show import as_json, draw, passed
from handwork.cli.screen import open_screen
from handwork.cli.workspace import real_folder
from handwork.config import Home, Settings, load_settings
from handwork.errors import ConfigError

_NO_HOME = Home(*[Path("/nonexistent")] * 3)
_OF_HOME = {"home", "store", "keys"}
"""Checks of what lies in Handwork's own folders."""


@dataclass(frozen=True, kw_only=True)
class DoctorOptions:
    """What was typed; `file` is where the report goes, None with `report` means a new file in the current folder."""

    online: bool = False
    report: bool = False
    file: Path | None = None
    json: bool = False
    config: Path | None = None
    workspace: Path | None = None


def run_doctor(options: DoctorOptions) -> int:
    """Look, and show; returns the exit code: 1 if something essential fails. Raises ConfigError for what was typed wrong."""
    if options.file is not None and not options.report:
        raise ConfigError(
            f"{options.file} is not needed", hint=f"to write a report: handwork doctor --report {options.file}"
        )
    ground, before = _ground(options)
    screen = open_screen(sys.stdout, spins=False)
    checks = [check for check in CHECKS if check.id not in _OF_HOME or ground.settings.home != _NO_HOME]
    findings = [*before, *asyncio.run(examine(checks, ground))]
    if options.json:
        print(json_for_terminal(as_json(findings)))
    else:
        draw(findings, screen)
    if options.report:
        _report(options, ground, findings)
    return 0 if passed(findings) else 1


def _ground(options: DoctorOptions) -> tuple[Ground, Sequence[Finding]]:
    """What the checks look at; a configuration that cannot be used is the first finding, and the rest goes on without it."""
    found: list[Finding] = []
    try:
        folder = real_folder(options.workspace)
    except ConfigError as error:
        found.append(Finding("workspace", "Folders", "problem", error.what, error.hint, True))
        folder = Path("/nonexistent")
    try:
        settings = load_settings(options.config, workspace=folder)
    except ConfigError as error:
        found.append(Finding("configuration", "Configuration", "problem", error.what, error.hint, True))
        settings = Settings(home=_home())
    found += [Finding("configuration.notice", "Configuration", "warning", text) for text in settings.all_notices]
    return Ground(settings, folder, options.online), found


def _home() -> Home:
    try:
        return Home.from_environ(os.environ)
    except ConfigError:  # which has been said
        return _NO_HOME


def _report(options: DoctorOptions, ground: Ground, findings: Sequence[Finding]) -> None:
    path, names = write_report(options.file, ground, findings)
    stream = sys.stderr if options.json else sys.stdout
    print(f"\nReport: {clean_for_terminal(str(path))}", file=stream)
    print(f"It holds {', '.join(names)}; keys, names and contents were left out.", file=stream)
    print("Look at it before you send it.", file=stream)
