"""Choose a session's sandbox by the settings, and say early whether it can run here."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from handwork.config import DaytonaSettings, SandboxSettings
from handwork.errors import ConfigError
from handwork.sandbox.auto import AutoSandbox
from handwork.sandbox.base import Sandbox
from handwork.sandbox.bwrap import BwrapSandbox, find_bwrap
from handwork.sandbox.closed import Rules
from handwork.sandbox.host import HostSandbox
from handwork.sandbox.landlock import LandlockSandbox
from handwork.sandbox.limits import limits_of
from handwork.sandbox.network.opening import proxy_of
from handwork.sandbox.readable import shown, without_own
from handwork.sandbox.remote.opening import open_daytona, open_docker
from handwork.sandbox.unfit import unfit
from handwork.schema import AllowHost, Notify

__all__ = ["check_workspace", "find_bwrap", "open_sandbox", "probe"]


def open_sandbox(
    settings: SandboxSettings,
    *,
    workspace: Path,
    artifacts: Path,
    notify: Notify,
    hide: Sequence[Path] = (),
    allow_host: AllowHost | None = None,
    daytona: DaytonaSettings | None = None,
    environ: Mapping[str, str] | None = None,
    rules: Rules | None = None,
    readable: Sequence[Path] = (),
    installed: Path | None = None,
) -> Sandbox:
    """The sandbox that the settings name; nothing is started or made before its first use.

    `hide` are Handwork's own folders and files (store, configuration), which nothing inside may see. `auto` means bwrap, and
    landlock where that does not run: announced, and `contained` no more; never host. `allow_host` decides about each place that is
    to be reached; without it, the allow-list alone does. `rules` close paths, as far as the backend can: it says where it cannot.
    `readable` are files and folders outside of the workspace that are shown read-only; what cannot be shown is told. In the
    folder `installed`, which is Handwork's own, programs lie that may be among them.
    `environ` says where an engine is. Raises ConfigError for a workspace that cannot be one; the first use raises
    SandboxUnavailable, with the choices, where the backend does not run.
    """
    real, kept = Path(os.path.realpath(workspace)), Path(os.path.realpath(artifacts))
    for path in map(Path, map(os.path.realpath, hide)):
        if real.is_relative_to(path):
            raise ConfigError(
                f"The workspace {real} lies in Handwork's own folder {path}", hint="choose another with --workspace"
            )
    if real.exists() and not real.is_dir():
        raise ConfigError(f"The workspace {real} is no folder", hint="choose another with --workspace")
    proxy = proxy_of(settings, "bwrap" if settings.chosen == "auto" else settings.chosen, allow_host, notify)
    if settings.backend == "host":
        _say_unheld(rules, notify)
        return HostSandbox(real, kept, notify, hide=hide, limits=limits_of(settings), readable=readable)
    check_workspace(settings, real)
    extra = shown(readable, workspace=real, hide=hide, notify=notify, installed=installed)
    known = os.environ if environ is None else environ
    if settings.chosen == "docker":
        return open_docker(
            settings,
            workspace=real,
            artifacts=kept,
            notify=notify,
            hide=hide,
            environ=known,
            rules=rules,
            readable=without_own(extra, hide=hide, notify=notify),
        )
    if settings.chosen == "daytona":
        if extra:
            notify(
                "warning",
                f"A sandbox at Daytona does not have {', '.join(map(str, extra))}: it sees no files of this machine",
            )
        return open_daytona(
            settings,
            daytona or DaytonaSettings(),
            workspace=real,
            artifacts=kept,
            notify=notify,
            hide=hide,
            environ=known,
            rules=rules,
        )

    def weaker() -> LandlockSandbox:
        seen = without_own(extra, hide=hide, notify=notify)
        return LandlockSandbox(
            real,
            kept,
            notify,
            network=settings.network,
            hide=hide,
            limits=limits_of(settings),
            writable=settings.writable,
            rules=rules,
            readable=seen,
        )

    if settings.backend == "landlock":
        return weaker()
    sandbox = BwrapSandbox(
        real,
        kept,
        notify,
        network=settings.network,
        hide=hide,
        limits=limits_of(settings),
        writable=settings.writable,
        rules=rules,
        readable=extra,
    )
    sandbox.proxy = proxy
    if settings.backend == "bwrap":
        return sandbox
    return AutoSandbox(sandbox, None if proxy else weaker, notify)  # a list of hosts needs a network of its own


def _say_unheld(rules: Rules | None, notify: Notify) -> None:
    if rules is None or not rules.written:
        return
    more = f" and {len(rules.written) - 5} more" if len(rules.written) > 5 else ""
    notify(
        "warning",
        "Without a sandbox, rules about paths bind the tools that name a path, and no program that is run: "
        f"{', '.join(rules.written[:5])}{more}",
    )


def check_workspace(settings: SandboxSettings, workspace: Path) -> None:
    """Raises ConfigError for a folder that must not be shown to a sandbox; any will do on the host."""
    if settings.backend != "host" and (why := unfit(workspace)):
        raise ConfigError(
            f"The workspace {workspace} cannot be shown to a sandbox: {why}",
            hint="make a folder for the task and name it with --workspace, or work in one below",
        )


async def probe(settings: SandboxSettings | None = None) -> None:
    """Start the sandbox once, in an empty folder. Raises SandboxUnavailable, with the reason and the choices, if it does not run;
    of `auto`, if its first choice does not."""
    settings = settings or SandboxSettings()
    if settings.backend == "auto":
        settings = settings.model_copy(update={"backend": "bwrap"})
    with tempfile.TemporaryDirectory(prefix="handwork-probe-") as folder:
        base = Path(folder)
        sandbox = open_sandbox(
            settings,
            workspace=base / "workspace",
            artifacts=base / "artifacts",
            notify=lambda level, text: None,
        )
        try:
            await sandbox.exec(["true"], timeout=30)
        finally:
            await sandbox.close()
