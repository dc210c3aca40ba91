"""Where tools run: the sandbox and the Python kernel, both really started."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from handwork.cli.doctor.finding import Finding, Ground
from handwork.config.own_keys import without_keys
from handwork.errors import SandboxError, SandboxUnavailable
from handwork.sandbox import cgroup
from handwork.sandbox.base import Sandbox
from handwork.sandbox.limits import limits_of, size
from handwork.sandbox.open import find_bwrap, open_sandbox, probe
from handwork.tool.kernel import Kernel

_GROUP = "Tools"
_START_SECONDS = 20.0
_UNPROTECTED = "tools run without any protection (host), as configured: the model's programs can do all that you can"


async def sandbox(ground: Ground) -> list[Finding]:
    """Start one and run a command in it."""
    began = time.monotonic()
    try:
        async with _opened(ground) as (opened, notices):
            result = await opened.exec(["bash", "-c", "echo ready"], timeout=_START_SECONDS)
    except SandboxError as error:
        return [Finding("sandbox.starts", _GROUP, "problem", error.what, error.hint, True)]
    took = f"{time.monotonic() - began:.1f} s"
    if result.output.strip() != b"ready":
        said = result.stderr.decode(errors="replace").strip() or f"exit code {result.exit_code}"
        fix = "install bash with the system's package manager"
        return [Finding("sandbox.starts", _GROUP, "problem", f"bash does not run in the sandbox: {said}", fix, True)]
    if opened.name == "landlock":
        return [await _weaker(ground, notices), _limits(ground), *_notices(notices)]
    if not opened.contained:
        fix = "take `host` out of the configuration ([sandbox] backend) and off the command line"
        return [Finding("sandbox.starts", _GROUP, "warning", _UNPROTECTED, fix, True)]
    version = await _version() if opened.name == "bwrap" else ""
    choice = ", which auto takes as it runs here" if ground.settings.sandbox.backend == "auto" else ""
    text = f"a command ran in the sandbox ({version or opened.name}{choice}) in {took}"
    found = [Finding("sandbox.starts", _GROUP, "ok", text, essential=True)]
    found += [*([_limits(ground)] if opened.name == "bwrap" else []), *_notices(notices)]
    if ground.settings.sandbox.network:
        found.append(
            Finding("sandbox.network", _GROUP, "ok", "programs in the sandbox reach the network, as configured")
        )
    elif listed := ground.settings.sandbox.allow_net:
        text = f"programs in the sandbox reach what allow_net names, as configured ({len(listed)}), and nothing else"
        found.append(Finding("sandbox.network", _GROUP, "ok", text))
    return found


def _limits(ground: Ground) -> Finding:
    """What programs in a sandbox of this machine may use, and who holds them to it."""
    limits = limits_of(ground.settings.sandbox)
    cpus = f", {limits.cpus:g} processors" if limits.cpus else ""
    who = (
        "a control group of the kernel" if cgroup.possible(limits.words()) else "Handwork's supervisor, which looks on"
    )
    text = (
        f"programs in it may use together {size(limits.memory)} of memory{cpus} and {limits.processes} processes, held by {who}; "
        f"a file may have {size(limits.file)}, and {size(limits.disk_reserve)} of the disk stay free"
    )
    return Finding("sandbox.limits", _GROUP, "ok", text)


def _notices(notices: list[tuple[str, str]]) -> list[Finding]:
    return [Finding("sandbox.notice", _GROUP, "warning", text) for level, text in notices if level == "warning"]


async def _weaker(ground: Ground, notices: list[tuple[str, str]]) -> Finding:
    """That tools run in landlock: as configured, or since auto found nothing better, and why."""
    if ground.settings.sandbox.backend != "auto":
        text, fix = "a command ran in the weaker sandbox landlock, as configured", '[sandbox] backend = "auto"'
        return Finding("sandbox.starts", _GROUP, "warning", text, fix, True)
    try:
        await probe(ground.settings.sandbox)
    except SandboxError as error:
        notices[:] = notices[1:]  # it says the same
        text = f"auto takes the weaker sandbox landlock, since bubblewrap does not run: {error.what}"
        return Finding("sandbox.starts", _GROUP, "warning", text, error.hint, True)
    return Finding(
        "sandbox.starts", _GROUP, "warning", "auto took the weaker sandbox landlock; now bubblewrap runs", "", True
    )


async def kernel(ground: Ground) -> list[Finding]:
    """Start the Python kernel in a sandbox and have it count."""
    began = time.monotonic()
    try:
        async with _opened(ground) as (opened, _):
            python = Kernel(opened)
            try:
                outcome = await python.run("1 + 1", _START_SECONDS, _nobody)
            finally:
                await python.close()
    except SandboxUnavailable:
        return [Finding("kernel.starts", _GROUP, "warning", "the Python kernel was not tried: no sandbox starts")]
    except SandboxError as error:
        fix = error.hint or "install Handwork anew: a package that the kernel needs is missing or broken"
        return [Finding("kernel.starts", _GROUP, "problem", error.what, fix, True)]
    if outcome.text.strip() != "2":
        said = (outcome.traceback or outcome.log or outcome.text).strip()[-300:]
        text = f"the Python kernel started, but did not answer 1 + 1: {said or 'it said nothing'}"
        fix = "install Handwork anew, and report it with `handwork doctor --report` if that does not help"
        return [Finding("kernel.starts", _GROUP, "problem", text, fix, True)]
    took = f"{time.monotonic() - began:.1f} s"
    return [Finding("kernel.starts", _GROUP, "ok", f"the Python kernel answered in {took}", essential=True)]


@asynccontextmanager
async def _opened(ground: Ground) -> AsyncIterator[tuple[Sandbox, list[tuple[str, str]]]]:
    """A sandbox as a session has it, in an empty folder that goes with it, and what it notified."""
    notices: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory(prefix="handwork-doctor-", ignore_cleanup_errors=True) as folder:
        base = Path(folder)
        for name in ("workspace", "artifacts"):
            (base / name).mkdir()
        opened = open_sandbox(
            ground.settings.sandbox,
            workspace=base / "workspace",
            artifacts=base / "artifacts",
            notify=lambda level, text: notices.append((level, text)),
        )
        try:
            yield opened, notices
        finally:
            await opened.close()


async def _version() -> str:
    """What bubblewrap calls itself (`bubblewrap 0.8.0`); '' if it does not say."""
    program = find_bwrap()
    if program is None:
        return ""
    process = await asyncio.create_subprocess_exec(
        program,
        "--version",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=without_keys(os.environ),
    )
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return said.decode(errors="replace").strip()[:60]


async def _nobody(_text: str) -> None:
    pass
