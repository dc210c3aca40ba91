"""What outlives a run, opened and closed as one."""

from handwork.session.session import Session, uncancelled

__all__ = ["Session", "uncancelled"]
