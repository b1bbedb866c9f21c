"""Consuming as fast as it goes, and what it took: the work of kafka-consumer-perf-test."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

MEBIBYTE = 1 << 20
_AT_ONCE = 10_000
_SLICE_S = 0.1


@dataclass(slots=True)
class Intake:
    """What came until some moment."""

    began_s: float = field(default_factory=time.time)
    ended_s: float = 0.0
    records: int = 0
    size_bytes: int = 0
    joining_ms: float = 0.0
    """Spent in becoming a member of the group, and becoming one again."""
    is_late: bool = False
    """Nothing came for too long, and so less than was asked for."""

    def since(self, before: "Intake") -> "Intake":
        """What came after that moment."""
        return Intake(
            before.ended_s or before.began_s,
            self.ended_s,
            self.records - before.records,
            self.size_bytes - before.size_bytes,
            self.joining_ms - before.joining_ms,
        )

    @property
    def seconds(self) -> float:
        return max(self.ended_s - self.began_s, 0.001)

    @property
    def fetching_s(self) -> float:
        return max(self.seconds - self.joining_ms / 1000, 0.001)


def take_in(
    consumer: Any,
    topic: str,
    records: int,
    *,
    timeout_ms: int,
    interval_ms: int,
    report: Callable[[Intake, Intake], None],
) -> Intake:
    """Consume so many, and report every now and then: all so far, and up to the last report."""
    intake = Intake()
    joining_s = time.time()

    def joined(*_: Any) -> None:
        intake.joining_ms += (time.time() - joining_s) * 1000

    def left(*_: Any) -> None:
        nonlocal joining_s
        joining_s = time.time()

    consumer.subscribe([topic], on_assign=joined, on_revoke=left)
    last_s = intake.ended_s = intake.began_s
    before = replace(intake)
    while intake.records < records and not intake.is_late:
        messages = consumer.consume(min(_AT_ONCE, records - intake.records), _SLICE_S)
        intake.ended_s = time.time()
        for message in messages:
            if message.error() is None:
                intake.size_bytes += len(message.value() or b"") + len(message.key() or b"")
                intake.records += 1
                last_s = intake.ended_s
        intake.is_late = (intake.ended_s - last_s) * 1000 > timeout_ms
        if (intake.ended_s - before.ended_s) * 1000 >= interval_ms:
            report(intake, before)
            before = replace(intake)
    return intake
