"""The recordings lie beside the repository; without them their tests do not exist."""

from __future__ import annotations

from pathlib import Path

collect_ignore = [] if (Path(__file__).parents[3] / "shared" / "cassettes").is_dir() else ["test_cassettes.py"]
