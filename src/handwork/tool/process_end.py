"""How a process ended, in words."""

from __future__ import annotations

import signal


def how_it_ended(code: int | None) -> str:
    """`exit code 3`, or `killed by signal 11 (SIGSEGV)`; `code` is negative for a signal, None if nobody knows it."""
    if code is None:
        return "nobody knows how"
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by signal {-code} ({signal.Signals(-code).name})"
    except ValueError:  # a real-time signal
        return f"killed by signal {-code}"
