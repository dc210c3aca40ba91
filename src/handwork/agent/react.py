"""ReActAgent: a step is think(), then act()."""

from __future__ import annotations

from abc import abstractmethod

from handwork.agent.base import BaseAgent


class ReActAgent(BaseAgent):
    """Subclasses write `think()` (is there something to do?) and `act()` (do it, return the step's line)."""

    @abstractmethod
    async def think(self) -> bool:
        """Decide what to do next; False means that there is nothing to act on in this step."""

    @abstractmethod
    async def act(self) -> str:
        """Do what think() decided; returns the step's line."""

    async def step(self) -> str:
        if not await self.think():
            return "Thinking complete - no action needed"
        return await self.act()
