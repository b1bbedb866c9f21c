"""What the cleaner has done, for the metrics and the log."""

from collections import deque
from collections.abc import Sequence

from barnabas.log.cleaner.cleaning import Cleaning, CleaningStats

_MIB = 1 << 20


class CleanerStats:
    """The numbers behind Kafka's metrics LogCleaner and LogCleanerManager.

    Those of a round are complete: while the next round is in progress, they are of the last one.
    """

    __slots__ = (
        "_compaction_delay_ms",
        "_dirty_ratio",
        "_last_cleanings",
        "last_round_ms",
        "max_compaction_delay_ms",
        "max_dirty_ratio",
    )

    def __init__(self, now_ms: int) -> None:
        self._last_cleanings: deque[CleaningStats] = deque()
        self._dirty_ratio = 0.0
        self._compaction_delay_ms = 0
        self.last_round_ms = now_ms
        """When the logs were last looked at, or else when the broker started."""
        self.max_dirty_ratio = 0.0
        """Of the dirtiest log, whether or not it is cleaned."""
        self.max_compaction_delay_ms = 0
        """By how much the most overdue log has passed its max.compaction.lag.ms."""

    def begin_round(self, now_ms: int) -> None:
        self.last_round_ms = now_ms
        self._dirty_ratio = 0.0
        self._compaction_delay_ms = 0

    def on_assessed(self, dirty_ratio: float, overdue_ms: int) -> None:
        self._dirty_ratio = max(self._dirty_ratio, dirty_ratio)
        self._compaction_delay_ms = max(self._compaction_delay_ms, overdue_ms)

    def end_round(self) -> None:
        self.max_dirty_ratio = self._dirty_ratio
        self.max_compaction_delay_ms = self._compaction_delay_ms

    def on_cleaned(self, stats: CleaningStats, threads: int) -> None:
        """Keeps one cleaning for each thread, as Kafka's threads keep their last one."""
        self._last_cleanings.append(stats)
        while len(self._last_cleanings) > threads:
            self._last_cleanings.popleft()

    @property
    def last_cleanings(self) -> Sequence[CleaningStats]:
        """The latest cleanings, at most as many as there are threads."""
        return self._last_cleanings


def describe_cleaning(cleaning: Cleaning) -> str:
    """Returns what a cleaning did, in one line."""
    stats = cleaning.stats
    rate = stats.read_bytes / _MIB / max(stats.elapsed_s, 0.001)
    return (
        f"cleaned in {stats.elapsed_s:.3f} s ({rate:.1f} MB/s read): {stats.messages_kept} of "
        f"{stats.messages_read} records are left, {stats.source_bytes:,} bytes became "
        f"{stats.cleaned_bytes:,}. {_describe_dirty_part(cleaning)}"
    )


def _describe_dirty_part(cleaning: Cleaning) -> str:
    first, end = cleaning.cleanable.first_dirty_offset, cleaning.first_dirty_offset
    if first == end:
        return "Nothing was dirty: it was for expired tombstones or transaction markers."
    stats = cleaning.stats
    return (
        f"Offsets {first} to {end - 1} were dirty (keys: {stats.map_keys}, "
        f"{stats.map_utilization:.0%} of the offset map)."
    )
