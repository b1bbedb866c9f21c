"""What the cleaner knows about one log. It is in memory: a restart begins without it."""

from collections.abc import Hashable
from typing import NamedTuple

UNKNOWN_HORIZON_MS = -2
"""The batches of the log were not looked at since the start."""

NO_HORIZON_MS = -1
"""No batch of the log has a delete horizon."""


class QuietLook(NamedTuple):
    """The cleaner's last look at a log, which was not dirty enough."""

    at_ms: int
    next_ms: int
    """When to look again, although the log has not changed."""
    marks: Hashable
    """Equal as long as the log has not changed."""
    dirty_ratio: float


class CompactionState:
    """The state of one log between two cleanings."""

    __slots__ = (
        "earliest_horizon_ms",
        "is_busy",
        "lacks_space",
        "last_cleaned_ms",
        "last_look",
        "uncleanable_reason",
    )

    def __init__(self) -> None:
        self.is_busy = False
        """Whether a cleaning or a scan is in progress."""
        self.last_look: QuietLook | None = None
        self.earliest_horizon_ms = UNKNOWN_HORIZON_MS
        """When a cleaning can remove the next tombstones or markers."""
        self.lacks_space = False
        """Whether the last cleaning failed because the disk was full."""
        self.last_cleaned_ms = -1
        self.uncleanable_reason = ""
        """Why the log is not cleaned any more; empty while it is."""

    def is_quiet(self, marks: Hashable, now_ms: int) -> bool:
        """Whether another look would see what the last one saw."""
        look = self.last_look
        return look is not None and look.at_ms <= now_ms < look.next_ms and look.marks == marks

    def has_expired_horizon(self, now_ms: int) -> bool:
        return 0 <= self.earliest_horizon_ms <= now_ms
