"""Measuring consumer throughput, as kafka-consumer-perf-test does."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

MEBIBYTE = 1 << 20
_MAX_POLL_RECORDS = 10_000
_POLL_S = 0.1


@dataclass(slots=True)
class ConsumeStats:
    """The records consumed in a period."""

    started_s: float = field(default_factory=time.time)
    ended_s: float = 0.0
    records: int = 0
    size_bytes: int = 0
    rebalance_ms: float = 0.0
    """Time spent in rebalances."""
    has_timed_out: bool = False
    """No record arrived within the timeout, so there are fewer than requested."""

    def since(self, before: "ConsumeStats") -> "ConsumeStats":
        """Returns the records consumed after `before`."""
        return ConsumeStats(
            before.ended_s or before.started_s,
            self.ended_s,
            self.records - before.records,
            self.size_bytes - before.size_bytes,
            self.rebalance_ms - before.rebalance_ms,
        )

    @property
    def seconds(self) -> float:
        return max(self.ended_s - self.started_s, 0.001)

    @property
    def fetch_s(self) -> float:
        return max(self.seconds - self.rebalance_ms / 1000, 0.001)


def measure_consume(
    consumer: Any,
    topic: str,
    records: int,
    *,
    timeout_ms: int,
    interval_ms: int,
    report: Callable[[ConsumeStats, ConsumeStats], None],
) -> ConsumeStats:
    """Consumes `records` records.

    Calls `report` every interval with the current stats and those of the last report.
    """
    stats = ConsumeStats()
    rebalance_started_s = time.time()

    def on_assign(*_: Any) -> None:
        stats.rebalance_ms += (time.time() - rebalance_started_s) * 1000

    def on_revoke(*_: Any) -> None:
        nonlocal rebalance_started_s
        rebalance_started_s = time.time()

    consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke)
    last_s = stats.ended_s = stats.started_s
    before = replace(stats)
    while stats.records < records and not stats.has_timed_out:
        messages = consumer.consume(min(_MAX_POLL_RECORDS, records - stats.records), _POLL_S)
        stats.ended_s = time.time()
        for message in messages:
            if message.error() is None:
                stats.size_bytes += len(message.value() or b"") + len(message.key() or b"")
                stats.records += 1
                last_s = stats.ended_s
        stats.has_timed_out = (stats.ended_s - last_s) * 1000 > timeout_ms
        if (stats.ended_s - before.ended_s) * 1000 >= interval_ms:
            report(stats, before)
            before = replace(stats)
    return stats
