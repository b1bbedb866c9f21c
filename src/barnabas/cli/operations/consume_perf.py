"""Consuming as fast as it goes, and what it took: the work of kafka-consumer-perf-test."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

MEBIBYTE = 1 << 20
_AT_ONCE = 10_000
_SLICE_S = 0.1


@dataclass(slots=True)
class ConsumeStats:
    """What came until some moment."""

    started_s: float = field(default_factory=time.time)
    ended_s: float = 0.0
    records: int = 0
    size_bytes: int = 0
    rebalance_ms: float = 0.0
    """Spent in becoming a member of the group, and becoming one again."""
    has_timed_out: bool = False
    """Nothing came for too long, and so less than was asked for."""

    def since(self, before: "ConsumeStats") -> "ConsumeStats":
        """What came after that moment."""
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
    """Consume so many, and report every now and then: all so far, and up to the last report."""
    intake = ConsumeStats()
    joining_s = time.time()

    def joined(*_: Any) -> None:
        intake.rebalance_ms += (time.time() - joining_s) * 1000

    def left(*_: Any) -> None:
        nonlocal joining_s
        joining_s = time.time()

    consumer.subscribe([topic], on_assign=joined, on_revoke=left)
    last_s = intake.ended_s = intake.started_s
    before = replace(intake)
    while intake.records < records and not intake.has_timed_out:
        messages = consumer.consume(min(_AT_ONCE, records - intake.records), _SLICE_S)
        intake.ended_s = time.time()
        for message in messages:
            if message.error() is None:
                intake.size_bytes += len(message.value() or b"") + len(message.key() or b"")
                intake.records += 1
                last_s = intake.ended_s
        intake.has_timed_out = (intake.ended_s - last_s) * 1000 > timeout_ms
        if (intake.ended_s - before.ended_s) * 1000 >= interval_ms:
            report(intake, before)
            before = replace(intake)
    return intake
