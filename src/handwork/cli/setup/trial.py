"""One small request to a model that is being set up, and what to do when it fails."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Literal

from handwork.cli.clean import one_line
from handwork.cli.outcome import complaint
from handwork.cli.setup.talk import Talk
from handwork.config import LLMSettings, Settings
from handwork.config.providers import find_provider
from handwork.errors import AuthenticationError, HandworkError, ModelNotFoundError
from handwork.llm.asking import close_model, reply_of
from handwork.llm.build import build_model
from handwork.schema import Message, Request

Outcome = Literal["good", "kept", "key", "model", "back"]
_LIMIT = 60.0
_ENOUGH = 512
"""Tokens that the answer may take: models that think first need some."""


@dataclass(frozen=True)
class Trial:
    """A model with a key, before either is stored."""

    model: str
    key: str
    base_url: str = ""

    def run(self, settings: Settings, talk: Talk) -> Outcome:
        """Ask until it works, or until the person decides otherwise: another key or model, keep it all the same, go back.

        Raises Left.
        """
        while True:
            began = time.monotonic()
            try:
                asyncio.run(self._ask(settings, talk))
            except HandworkError as error:
                if isinstance(error, AuthenticationError):
                    error.hint = self._about_key()
                talk.say(f"✗ {complaint(error)}", "red")
                if (decided := self._decide(error, talk)) != "again":
                    return decided
                continue
            talk.say(f"✓ {one_line(self.model, 60)} answered in {time.monotonic() - began:.1f} s.", "green")
            return "good"

    def _about_key(self) -> str:
        provider = find_provider(self.model.partition(":")[0])
        where = (
            f"from {provider.keys_at}"
            if provider and provider.keys_at and not self.base_url
            else "from where it was made"
        )
        return f"copy the key again {where}, or make a new one there"

    async def _ask(self, settings: Settings, talk: Talk) -> None:
        table = LLMSettings(
            model=self.model,
            base_url=self.base_url,
            api_key=self.key,
            max_tokens=_ENOUGH,
            timeout=_LIMIT,
            idle_timeout=_LIMIT,
            retries=0,
        )
        model = build_model(table, settings.environ, lambda _, text: talk.say(f"! {text}", "yellow"))
        talk.screen.wait(f"asking {one_line(self.model, 50)} for one word")
        try:
            await reply_of(model, Request(messages=[Message.user_message("Answer with one word: ready")]))
        finally:
            talk.screen.wait("")
            await close_model(model)

    def _decide(self, error: HandworkError, talk: Talk) -> Literal["again", "kept", "key", "model", "back"]:
        wrong_key = isinstance(error, AuthenticationError)
        wrong_model = isinstance(error, ModelNotFoundError)
        rows = ["try again", "another key", "another model"]
        actions: list[Literal["again", "kept", "key", "model", "back"]] = ["again", "key", "model"]
        if not wrong_key and not wrong_model:
            rows.append("keep it all the same")
            actions.append("kept")
        place = talk.choose(rows, "What now? (Enter goes back, q leaves) ")
        return "back" if place is None else actions[place]
