"""What outlives a run, opened and closed as one."""

from handwork.session.doors import check_doors
from handwork.session.session import Session
from handwork.tool.uncancelled import uncancelled

__all__ = ["Session", "check_doors", "uncancelled"]
