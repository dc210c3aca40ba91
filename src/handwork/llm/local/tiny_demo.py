"""The task of `handwork demo`: small enough for the embedded model, and its effect can be checked."""

from __future__ import annotations

DEMO_TASK = "Create a file named hello.txt with the content: Hello from Handwork"
DEMO_FILE = "hello.txt"
"""The file that the task makes, relative to the workspace."""
DEMO_CONTENT = "Hello from Handwork"
"""What it must hold, white space at its ends aside."""
