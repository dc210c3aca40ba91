"""What the agents' tests share: settings that keep the store in the test's own folder, and a collector of events."""

from __future__ import annotations

from pathlib import Path

import pytest

from handwork.config import Settings
from handwork.events import Event
from handwork.session import Session


@pytest.fixture
def settings(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The current folder, which is the workspace of whoever names none, is the test's own: this project has an AGENTS.md."""
    monkeypatch.chdir(tmp_path)
    return Settings()


class Seen(list[Event]):
    """A listener that keeps what it is told."""

    def __call__(self, event: Event) -> None:
        self.append(event)

    def types(self) -> list[str]:
        return [getattr(event, "type", "") for event in self]

    def of(self, *types: str) -> list[Event]:
        return [event for event in self if getattr(event, "type", "") in types]


@pytest.fixture
def seen() -> Seen:
    return Seen()


def reopened(session: Session) -> Session:
    """The same session in what could be another process."""
    return Session.open(session.settings, session.workspace, session.id, create=False)
