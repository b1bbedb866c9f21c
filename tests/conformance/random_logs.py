"""Random logs, and the two cleaners that clean copies of them: ours and Kafka's own class."""

import random
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.conformance.brokers import PEERS
from tests.log.cleaner.cleaner_harness import COMPACTED, CleanerHarness
from tests.log.log_test_directory import TOPIC_ID

from barnabas.log import Log, LogConfig, LogDirectory
from barnabas.log.cleaner.cleanable import find_cleanable_range
from barnabas.log.cleaner.cleaning import CleanerLimits, Cleaning
from barnabas.log.cleaner.throttler import CleanerThrottler
from barnabas.wire.records.batch import CODEC_BITS, BatchHeader, crc_is_valid, iterate_batches
from barnabas.wire.records.build import build_batch
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.read import read_records
from barnabas.wire.records.record import Record

PROGRAM = Path(__file__).parent / "java" / "CleanLogs.java"
TOPIC = "prices"
DELETE_RETENTION_MS = 60_000

Batch = tuple[BatchHeader, list[Record]]


@dataclass(slots=True, frozen=True)
class CleanerSettings:
    """What decides the batches, the groups and the passes of a cleaning."""

    segment_bytes: int = 2_000
    map_bytes: int = 1 << 20
    buffer_bytes: int = 1 << 14
    codecs: Sequence[Codec] = tuple(Codec)

    @property
    def has_small_map(self) -> bool:
        """Whether the keys of a random log do not fit into the map."""
        return self.map_bytes < 24 * 60

    @property
    def log_config(self) -> LogConfig:
        return replace(
            COMPACTED,
            segment_bytes=self.segment_bytes,
            delete_retention_ms=DELETE_RETENTION_MS,
            delete_delay_ms=60_000,
        )


class RandomLog:
    """Writes a log with batches of every kind."""

    def __init__(
        self, path: Path, seed: int, settings: CleanerSettings, *, reuse_producers: bool = True
    ) -> None:
        self._harness = CleanerHarness(path, settings.log_config)
        self._codecs = settings.codecs
        self._random = random.Random(seed)
        self._new_producer_ids = None if reuse_producers else count(100)
        self._sequences: Counter[int] = Counter()
        self._epochs: Counter[int] = Counter()
        self._open: set[int] = set()  # producers with an open transaction

    def write(self, steps: int) -> None:
        """Appends batches of records and markers, ends all transactions, and closes the log."""
        for _ in range(steps):
            self._harness.now_ms += self._random.choice([0, 1, 50, 3_000])
            self._step()
        for producer_id in sorted(self._open):
            self._end_transaction(producer_id)
        self._write_batch()
        self._harness.stop()

    def _step(self) -> None:
        kind = self._random.random()
        if kind < 0.5:
            self._write_batch()
        elif kind < 0.6:
            self._write_batch(self._random.randrange(1, 11))
        elif kind < 0.8:
            self._write_in_transaction(self._random.choice([0, 1, 2]))
        elif kind < 0.95 and self._open:
            self._end_transaction(self._random.choice(sorted(self._open)))
        elif kind < 0.97:
            self._end_transaction(self._random.choice([14, 15]))  # without any data
        else:
            producer_id = self._random.randrange(1, 16)
            if producer_id not in self._open:
                self._begin_epoch(producer_id)

    def _begin_epoch(self, producer_id: int) -> None:
        self._epochs[producer_id] += 1
        self._sequences[producer_id] = 0

    def _write_in_transaction(self, index: int) -> None:
        """Writes in one of up to three transactions at a time."""
        producer_id = 11 + index
        if self._new_producer_ids is not None:
            others = sorted(self._open)
            producer_id = others[index] if index < len(others) else next(self._new_producer_ids)
        self._write_batch(producer_id, transactional=True)
        self._open.add(producer_id)

    def _write_batch(self, producer_id: int = -1, *, transactional: bool = False) -> None:
        records = [self._record() for _ in range(self._random.choice([1, 1, 2, 5, 20]))]
        has_producer = producer_id >= 0
        content = build_batch(
            records,
            codec=self._random.choice([Codec.NONE, Codec.NONE, Codec.NONE, *self._codecs]),
            producer_id=producer_id,
            producer_epoch=self._epochs[producer_id] if has_producer else -1,
            base_sequence=self._sequences[producer_id] if has_producer else -1,
            transactional=transactional,
            append_time=self._harness.now_ms if self._random.random() < 0.1 else None,
        )
        self._sequences[producer_id] += len(records)
        self._harness.append(content)

    def _record(self) -> Record:
        """Some keys are never written again, some records have an empty key or none."""
        key: bytes | None = b"k%d" % min(int(self._random.expovariate(0.1)), 60)
        if self._random.random() < 0.06:
            key = self._random.choice([b"", None])
        value: bytes | None = b"v" * self._random.choice([0, 1, 10, 60])
        if self._random.random() < 0.15:
            value = None
        headers: list[tuple[str, bytes | None]] = [("h", b"1"), ("", None)]
        return Record(
            0,
            self._harness.now_ms - self._random.choice([0, 0, 0, 7, 5_000]),
            key,
            value,
            headers if self._random.random() < 0.2 else [],
        )

    def _end_transaction(self, producer_id: int) -> None:
        """Writes a marker, some with the next epoch, as KIP-890 has it."""
        if self._random.random() < 0.2:
            self._begin_epoch(producer_id)
        self._harness.end_transaction(
            committed=self._random.random() < 0.5,
            producer_id=producer_id,
            epoch=self._epochs[producer_id],
        )
        self._open.discard(producer_id)


class OurCleaner:
    """Cleans a log with the steps of `Cleaning`, at times that the caller chooses."""

    def __init__(self, path: Path, settings: CleanerSettings) -> None:
        self._directory = LogDirectory.open(path)
        self.log: Log = self._directory.open_log(TOPIC, 0, TOPIC_ID, settings.log_config)
        self._limits = CleanerLimits(settings.map_bytes, 0.9, settings.buffer_bytes)
        self._throttler = CleanerThrottler(lambda: 1e300)

    @property
    def folder(self) -> Path:
        return Path(self.log.path)

    def clean(self, first_dirty_offset: int, end_offset: int, now_ms: int) -> int:
        """Cleans the log once; returns the new first dirty offset."""
        cleanable = find_cleanable_range(
            self.log, first_dirty_offset, last_stable_offset=end_offset, now_ms=now_ms
        )
        assert cleanable.end_offset == end_offset
        cleaning = Cleaning(self.log, cleanable, self._limits, self._throttler, now_ms)
        while not cleaning.is_done:
            cleaning.step()
            if (group := cleaning.finished_group) is not None:
                replaced = [source.segment for source in group.sources]
                self.log.maintenance.put_in_place(replaced, group.cleaned)
        cleaning.close()
        return cleaning.first_dirty_offset

    def close(self) -> None:
        self._directory.close()


class KafkaCleaner:
    """Cleans logs with Kafka's cleaner, in one JVM."""

    def __init__(self) -> None:
        home = subprocess.run(
            [PEERS / "kafka", "install"], check=True, capture_output=True, text=True
        ).stdout.strip()
        self._jvm = subprocess.Popen(
            ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{home}/libs/*", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: object, trace: TracebackType | None
    ) -> None:
        self._jvm.communicate(timeout=60)

    def open(self, folder: Path, settings: CleanerSettings) -> int:
        """Opens a log after a clean shutdown; returns its end offset."""
        configs = {
            "cleanup.policy": "compact",
            "internal.segment.bytes": settings.segment_bytes,
            "index.interval.bytes": settings.log_config.index_interval_bytes,
            "delete.retention.ms": DELETE_RETENTION_MS,
        }
        assigned = " ".join(f"{key}={value}" for key, value in configs.items())
        return self._run(f"open {folder} {settings.map_bytes} {settings.buffer_bytes} {assigned}")

    def clean(self, first_dirty_offset: int, end_offset: int, now_ms: int, copy: Path) -> int:
        """Cleans the log once and copies its files; returns the new first dirty offset."""
        return self._run(f"clean {first_dirty_offset} {end_offset} {now_ms} {copy}")

    def _run(self, command: str) -> int:
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        self._jvm.stdin.write(command + "\n")
        self._jvm.stdin.flush()
        line = self._jvm.stdout.readline()
        assert line, f"Kafka's cleaner failed: {command}"
        return int(line)


def segment_batches(folder: Path) -> dict[str, list[Batch]]:
    """Returns the batches of every segment of a log by the name of its file."""
    return {path.name: list(read_batches(path)) for path in sorted(folder.glob("*.log"))}


def read_batches(path: Path) -> Iterator[Batch]:
    """Yields the batches of a file; checks their checksums and the order of their offsets.

    The size and the checksum of a compressed batch depend on the library that compressed it, so
    they are -1 here.
    """
    content = path.read_bytes()
    last_offset = -1
    for position, header in iterate_batches(content):
        assert crc_is_valid(content, position, header), f"{path}: {header}"
        assert header.base_offset > last_offset, f"{path}: {header} is not after {last_offset}"
        last_offset = header.last_offset
        records = read_records(content, position)
        if header.attributes & CODEC_BITS:
            header = header._replace(length=-1, crc=-1)
        yield header, records
