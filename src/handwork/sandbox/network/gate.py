"""Whether a place may be reached: asks, and keeps what was refused until it is told."""

from __future__ import annotations

import asyncio

from handwork.config.allow_list import place
from handwork.sandbox.network.refusal import Refusal
from handwork.schema import AllowHost, Notify, Verdict

PATIENCE = 300.0
"""Seconds that a connection waits for a person's answer."""
_MANY = 20
"""Places that are told one by one; a program can try any number of them."""


class Gate:
    """The way from the proxy to whoever decides; `notify` hears of every place that was refused, once."""

    def __init__(self, allow_host: AllowHost, notify: Notify, patience: float = PATIENCE) -> None:
        self._allow_host, self._notify, self._patience = allow_host, notify, patience
        self._refused: dict[str, str] = {}
        self._failed: dict[str, str] = {}
        self._noticed: set[str] = set()

    async def check(self, host: str, port: int, name: str = "", *, because: str = "") -> None:
        """Raises Refusal (403), with the reason, unless the place may be reached; `name` leads to it, an address. `because`
        says how anybody came to ask for it."""
        try:
            async with asyncio.timeout(self._patience):
                decision = await self._allow_host(host, port, name)
        except TimeoutError:
            raise self.refusal(host, port, f"nobody has answered within {self._patience:g} s whether it may") from None
        if decision.verdict is not Verdict.ALLOW:
            why = decision.why or "it is not in the allow-list"
            raise self.refusal(host, port, f"{because}: {why}" if because else why)

    def refusal(self, host: str, port: int, why: str) -> Refusal:
        """A refusal that is told to people and to the model as well."""
        where = place(host, port)
        if len(self._refused) < _MANY or where in self._refused:
            self._refused[where] = why
        if where not in self._noticed and len(self._noticed) <= _MANY:
            self._noticed.add(where)
            if len(self._noticed) > _MANY:
                self._notify(
                    "warning", "The sandbox tries to reach more and more places; no more of them are told here."
                )
            else:
                self._notify("warning", f"The sandbox may not reach {where}: {why}")
        return Refusal(403, f"{where} may not be reached: {why}")

    def failed(self, where: str, why: str) -> None:
        """A place that may be reached was not: of an answer to CONNECT most programs show a number."""
        if len(self._failed) < _MANY:
            self._failed[where] = why

    def take(self) -> list[str]:
        """Sentences for the model about what was refused, and what failed, since the last time."""
        refused, self._refused = self._refused, {}
        failed, self._failed = self._failed, {}
        return [
            *(f"The sandbox's network refused {where}: {why}" for where, why in refused.items()),
            *(f"The sandbox's network: {why}" for why in dict.fromkeys(failed.values())),
        ]
