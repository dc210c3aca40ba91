"""The way to a server that cannot be taken: its entry names what is not set here."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from handwork.errors import MCPUnavailable


class Lacking:
    """Entering it says what is missing; nothing is started and nobody is asked."""

    noise = 0
    kind = ""

    def __init__(self, name: str, unset: tuple[str, ...]) -> None:
        self._name, self._unset = name, unset

    async def __aenter__(self) -> tuple[Any, Any]:
        raise self.failure()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is there to be ended."""

    def failure(self, how: str = "") -> MCPUnavailable:
        """What to say of the variables, or of words that only another program knows."""
        variables = [each for each in self._unset if not each.startswith("$")]
        if variables:
            are = "they are not set" if len(variables) > 1 else "it is not set"
            what = f"The MCP server {self._name} needs {', '.join(variables)} in your environment, and {are}"
            return MCPUnavailable(what, lasting=True, hint=f"set it, as in: export {variables[0]}=…")
        what = f"The MCP server {self._name} needs {', '.join(self._unset)}, which another program would fill in"
        return MCPUnavailable(what, lasting=True, hint="write ${NAME} in its place, and set a variable of that name")
