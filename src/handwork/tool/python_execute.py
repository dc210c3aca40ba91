"""python_execute: run code in the session's Python kernel inside the sandbox."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

from handwork.errors import ToolError
from handwork.schema import JSON, Action, Artifact, ToolResult, scrub
from handwork.tool.base import Tool, ToolContext
from handwork.tool.call_facts import has_results_of, time_left
from handwork.tool.kernel import Kernel, Outcome
from handwork.tool.no_text import without_bytes
from handwork.tool.process_end import how_it_ended
from handwork.tool.sandbox_hint import sandbox_hints
from handwork.tool.spent import as_details

TIMEOUT = 60
"""Seconds that code may run unless the call says otherwise."""
_NEW_AFTER_RESUME = "This is a new kernel: the session was resumed, so variables and imports of earlier calls are gone (files are kept)."
_NEXT_IS_NEW = "The next call starts a new kernel: all variables and imports are lost, files are kept."
_LIVES_ON = "The kernel and its variables live on."


class PythonExecute(Tool):
    """A persistent Python kernel (CONTRACT D1): state is kept, figures come back as images."""

    name = "python_execute"
    description = (
        "Run Python code in a kernel that stays alive: variables and imports are kept over calls. Returns what is printed, the "
        "value of the last expression, and the traceback if it fails; figures are shown as images, and of long values head, "
        "tail and size. The current folder is the workspace. `!command`, magics and await work; input() does not. Code that "
        "takes longer than `timeout` is interrupted. exit() ends the kernel: the next call has a fresh one."
    )
    parameters: Mapping[str, JSON] = {
        "type": "object",
        "properties": {
            "code": {"type": "string", "description": "The Python code to run."},
            "timeout": {
                "type": "integer",
                "minimum": 1,
                "description": f"Seconds that it may take (default {TIMEOUT}).",
            },
        },
        "required": ["code"],
    }
    sandboxed = True

    def actions(self, arguments: Mapping[str, JSON]) -> Sequence[Action]:
        return [Action(kind="execute", resource="*")]

    async def execute(self, *, context: ToolContext, code: str, timeout: float | None = None) -> ToolResult:
        """Run the code. Errors: ToolError for unusable arguments; SandboxError when no kernel can be started."""
        if "\0" in code:
            raise ToolError("`code` holds a NUL character, which Python source cannot: write it as an escape (\\x00).")
        kernel = context.resource("kernel", lambda: Kernel(context.sandbox))
        resumed = not kernel.started and has_results_of(self.name, context.history)
        seconds = time_left(context, timeout, TIMEOUT)
        outcome = await kernel.run(scrub(code), seconds, context.progress, context.clock)
        if resumed:
            outcome.notes.insert(0, _NEW_AFTER_RESUME)
        image, artifacts = await _pictures(outcome, context)
        output, advice = without_bytes(outcome.text)
        outcome.notes += [advice] if advice else []
        if outcome.omitted:
            outcome.notes.append(
                f"The middle of the output ({outcome.omitted} characters) was too long to keep: write it to a file instead."
            )
        if outcome.pictures_omitted:
            outcome.notes.append(f"{outcome.pictures_omitted} more figures were left out: save them to files.")
        if outcome.error_name == "SystemExit":
            outcome.notes.append(f"The code called {_exit_call(outcome)} and ended there. {_LIVES_ON}")
        if outcome.left:
            outcome.notes.append(f"The kernel has ended, as the code asked. {_NEXT_IS_NEW}")
        outcome.notes += sandbox_hints(f"{outcome.text}\n{outcome.traceback}")
        return ToolResult(
            output=output,
            error=_error(outcome, seconds),
            base64_image=image,
            system=" ".join(outcome.notes) or None,
            details={
                "seconds": outcome.seconds,
                "timed_out": outcome.timed_out,
                "state_kept": outcome.survived,
                **as_details(outcome.spent),
            },
            artifacts=artifacts,
        )


async def _pictures(outcome: Outcome, context: ToolContext) -> tuple[str | None, tuple[Artifact, ...]]:
    """All figures become files, for people; the first is for the result itself, and of the others the model is told."""
    image: str | None = None
    artifacts: list[Artifact] = []
    for number, picture in enumerate(outcome.pictures, 1):
        if not picture.data:
            outcome.notes.append(
                f"Figure {number} is too large to show ({picture.size} characters): save it to a file."
            )
            continue
        image = image or picture.data
        suffix = picture.media_type.split("/")[1]
        name = f"figure_{context.call_id}_{number}.{suffix}"
        data = base64.b64decode(picture.data)
        artifacts.append(
            await context.save_artifact(name, data, title=f"Figure {number}", media_type=picture.media_type)
        )
    if len(artifacts) > 1:
        names = ", ".join(f"{context.sandbox.artifacts}/{artifact.path.rsplit('/', 1)[-1]}" for artifact in artifacts)
        outcome.notes.append(f"Only the first figure is shown; all are in {names}.")
    return image, tuple(artifacts)


def _error(outcome: Outcome, seconds: float) -> str | None:
    if outcome.timed_out:
        fate = "was interrupted. The kernel's state (variables, imports) survived."
        if not outcome.survived:
            fate = f"did not answer an interrupt, so the kernel and all its processes were killed. {_NEXT_IS_NEW}"
        where = f"\n{outcome.traceback}" if outcome.traceback else ""
        return f"The code timed out after {seconds:g} s and {fate}{where}"
    if not outcome.survived and not outcome.left:
        log = f" It wrote: {outcome.log}" if outcome.log else ""
        return f"The kernel crashed while the code ran ({how_it_ended(outcome.exit_code)}). {_NEXT_IS_NEW}{log}"
    if outcome.error_name == "StdinNotImplementedError":
        return f"input() and getpass() have nobody to answer them: put the values into the code.\n{outcome.traceback}"
    if outcome.error_name == "SystemExit" and _exit_call(outcome) in ("sys.exit()", "sys.exit(0)"):
        return None
    return outcome.traceback or None


def _exit_call(outcome: Outcome) -> str:
    code = outcome.traceback.strip().partition("SystemExit: ")[2]
    return f"sys.exit({'' if code == 'None' else code})"
