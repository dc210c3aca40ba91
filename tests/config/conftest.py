"""Every test here has a user's folder and a workspace of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.places import Places


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places.below(tmp_path)
