"""Measuring producers, consumers and the latency between them.

As kafka-producer-perf-test, kafka-consumer-perf-test and kafka-e2e-latency do.
"""

import random
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count, repeat
from pathlib import Path
from typing import Any

from barnabas.cli.operations.console_clients import close_producer
from barnabas.cli.operations.errors import CommandError, UnreadableFileError

_MAX_SAMPLES = 500_000
"""Latencies kept for percentiles; a longer test samples every second, third, ... one."""

MEBIBYTE = 1 << 20
_MAX_POLL_RECORDS = 10_000
_POLL_S = 0.1
LATENCY_TIMEOUT_S = 60


@dataclass(slots=True, frozen=True)
class ProduceLoad:
    topic: str
    records: int
    per_second: float
    """The maximum rate; -1 for no limit."""
    transaction_ms: int | None = None
    """The duration of a transaction; None without transactions."""
    warmup_records: int = 0
    reporting_interval_ms: int = 5000


@dataclass(slots=True)
class LatencyStats:
    """The records delivered in a period, and their latencies."""

    sample_interval: int = 1
    started_s: float = field(default_factory=time.perf_counter)
    count: int = 0
    size_bytes: int = 0
    total_ms: float = 0.0
    max_ms: float = 0.0
    samples: "array[int]" = field(default_factory=lambda: array("i"))

    def add(self, latency_ms: float, size_bytes: int) -> None:
        if self.count % self.sample_interval == 0:
            self.samples.append(int(latency_ms))
        self.count += 1
        self.size_bytes += size_bytes
        self.total_ms += latency_ms
        if latency_ms > self.max_ms:
            self.max_ms = latency_ms

    @property
    def seconds(self) -> float:
        return max(time.perf_counter() - self.started_s, 1e-9)

    @property
    def average_ms(self) -> float:
        return self.total_ms / self.count if self.count else 0.0

    def throughput(self) -> tuple[float, float]:
        """Returns records and mebibytes per second."""
        seconds = self.seconds
        return self.count / seconds, self.size_bytes / seconds / (1 << 20)

    def percentiles(self, *shares: float) -> list[int]:
        ordered = sorted(self.samples)
        if not ordered:
            return [0] * len(shares)
        return [ordered[int(share * (len(ordered) - 1))] for share in shares]


class ProduceStats:
    """Stats of the whole test, since the last report, and after the warm-up."""

    def __init__(self, load: ProduceLoad, report: Callable[[LatencyStats], None]) -> None:
        sample_interval = max(1, load.records // _MAX_SAMPLES)
        self.total = LatencyStats(sample_interval)
        self.steady_state: LatencyStats | None = None
        self.errors: list[Any] = []
        self._load = load
        self._report = report
        self._sample_interval = sample_interval
        self._window = LatencyStats(sample_interval)

    def on_delivery(self, error: Any, message: Any) -> None:
        """Handles a delivery report."""
        if error is not None:
            self.errors.append(error)
            return
        latency_ms = message.latency() * 1000
        size = len(message)
        self.total.add(latency_ms, size)
        self._window.add(latency_ms, size)
        if self.steady_state is not None:
            self.steady_state.add(latency_ms, size)
        elif 0 < self._load.warmup_records <= self.total.count:
            self.steady_state = LatencyStats(self._sample_interval)
        if self._window.seconds * 1000 >= self._load.reporting_interval_ms:
            self._report(self._window)
            self._window = LatencyStats(self._sample_interval)


def measure_produce(
    producer: Any,
    load: ProduceLoad,
    values: Iterator[bytes],
    report: Callable[[LatencyStats], None],
) -> ProduceStats:
    """Produces all records and waits until they are delivered."""
    progress = ProduceStats(load, report)
    paced = _pacer(load.per_second)
    started_s = 0.0
    if load.transaction_ms is not None:
        producer.init_transactions()
    for number in range(load.records):
        if load.transaction_ms is not None and not started_s:
            producer.begin_transaction()
            started_s = time.perf_counter()
        value = next(values)
        while True:
            try:
                producer.produce(load.topic, value, on_delivery=progress.on_delivery)
                break
            except BufferError:
                producer.poll(0.1)
        if paced is not None:
            _poll_for(producer, paced(number + 1))
        elif number % 100 == 0:
            producer.poll(0)
        if started_s and (time.perf_counter() - started_s) * 1000 >= (load.transaction_ms or 0):
            producer.commit_transaction()
            started_s = 0.0
    if started_s:
        producer.commit_transaction()
    producer.flush()
    return progress


def random_letters(size: int) -> Iterator[bytes]:
    """Yields the same random capital letters each time."""
    return repeat(bytes(random.Random(0).choices(range(65, 91), k=size)))


def increasing_numbers() -> Iterator[bytes]:
    return (str(number).encode() for number in count())


def random_choices(lines: Sequence[bytes]) -> Iterator[bytes]:
    """Yields random lines, the same ones in each run."""
    chance = random.Random(0)
    while True:
        yield chance.choice(lines)


def read_payloads(file: Path, delimiter: str) -> Sequence[bytes]:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UnreadableFileError(file, error) from None
    if not content:
        raise CommandError(f"{file} is empty")
    # The shell passes \\n as two characters.
    separator = delimiter.encode().decode("unicode_escape").encode()
    return content.removesuffix(separator).split(separator)


def _pacer(per_second: float) -> Callable[[int], float] | None:
    """Returns a function from the records sent to the seconds to wait; None for no limit."""
    if per_second <= 0:
        return None
    started_s = time.perf_counter()
    return lambda sent: started_s + sent / per_second - time.perf_counter()


def _poll_for(producer: Any, seconds: float) -> None:
    producer.poll(0)
    if seconds > 0:
        end_s = time.perf_counter() + seconds
        while (remaining_s := end_s - time.perf_counter()) > 0:
            producer.poll(min(remaining_s, 0.1))


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


@dataclass(slots=True, frozen=True)
class RecordTemplate:
    """What every record contains."""

    topic: str
    size: int
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


@contextmanager
def open_clients(
    producing: dict[str, Any],
    consuming: dict[str, Any],
    topic: str,
    partitions_of: Callable[[Any, str], Iterable[int]],
) -> Iterator[tuple[Any, Any]]:
    """Yields a producer, and a consumer at the end of all partitions of the topic."""
    from barnabas import Consumer, Producer, TopicPartition

    own_group = {"group.id": f"test-group-{int(time.time() * 1000)}", "enable.auto.commit": "false"}
    consumer = Consumer(consuming | own_group | {"fetch.max.wait.ms": "0"})
    producer = Producer(producing | {"linger.ms": "0", "max.block.ms": str(2**31 - 1)})
    try:
        topic_partitions = [
            TopicPartition(topic, partition) for partition in partitions_of(consumer, topic)
        ]
        for topic_partition in topic_partitions:  # before the first record is sent
            _, topic_partition.offset = consumer.get_watermark_offsets(topic_partition)
        consumer.assign(topic_partitions)
        yield producer, consumer
    finally:
        consumer.close()
        close_producer(producer)


def measure_latency(
    ends: tuple[Any, Any], sent: RecordTemplate, records: int, report: Callable[[int, int], None]
) -> list[int]:
    """Returns the latency of each record in ns. Calls `report` with its number and latency."""
    latencies_ns = []
    for number in range(records):
        took_ns = _round_trip(*ends, sent, number)
        latencies_ns.append(took_ns)
        report(number, took_ns)
    return latencies_ns


def _round_trip(producer: Any, consumer: Any, sent: RecordTemplate, number: int) -> int:
    value = str(number).encode().ljust(sent.size, b".")[: sent.size]
    began_ns = time.perf_counter_ns()
    producer.produce(sent.topic, value, sent.key, headers=list(sent.headers))
    producer.flush()
    message = consumer.poll(LATENCY_TIMEOUT_S)
    took_ns = time.perf_counter_ns() - began_ns
    if message is None:
        raise CommandError(
            f"poll() timed out before finding a result (timeout:[{LATENCY_TIMEOUT_S}s])"
        )
    if message.error() is not None:
        raise CommandError(message.error().str())
    if message.value() != value:
        raise CommandError(f"The record read {message.value()!r} did not match the one sent")
    return took_ns
