"""The library's own log stays off the user's terminal: what matters of it comes as errors and notices of ours."""

from __future__ import annotations


def keep_quiet() -> None:
    """Let a handler that does nothing stand for none at all, for which python prints warnings with their tracebacks. A program that has
    set up its logging gets all as before."""
    import logging

    for name in ("mcp", "client"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
