"""One compacted log with its cleaner, without threads and with time at will."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.log.log_test_directory import NOW_MS, LogTestDirectory, valid
from tests.replication.world import InlineExecutor

from barnabas.log import Log, LogConfig, LogDirectory
from barnabas.log.cleaner.log_cleaner import CompactedLog, LogCleaner
from barnabas.wire.records.batch import BatchHeader, iterate_batches
from barnabas.wire.records.build import build_batch
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.control import build_marker
from barnabas.wire.records.read import read_records
from barnabas.wire.records.record import Record

DAY_MS = 24 * 60 * 60 * 1000
COMPACTED = LogConfig(
    delete=False,
    compact=True,
    min_cleanable_dirty_ratio=0.0,
    index_interval_bytes=200,
    delete_delay_ms=0,
)
SETTINGS: dict[str, Any] = {
    "log.cleaner.enable": True,
    "log.cleaner.threads": 1,
    "log.cleaner.backoff.ms": 0,
    "log.cleaner.dedupe.buffer.size": 1 << 20,
    "log.cleaner.io.buffer.load.factor": 0.9,
    "log.cleaner.io.buffer.size": 1 << 16,
    "log.cleaner.io.max.bytes.per.second": 1e300,
}

Pair = tuple[bytes | None, bytes | None]
"""A key and a value."""


class CleanerHarness:
    """A log directory with one compacted log or more, all of which are committed at once.

    The harness is the cleaner's host. It cleans only when it is asked to.
    """

    def __init__(self, path: Path, config: LogConfig = COMPACTED, **settings: Any) -> None:
        self.log_dir = LogTestDirectory(path)
        self.config = config
        self.settings = SETTINGS | {k.replace("_", "."): v for k, v in settings.items()}
        self.now_ms = NOW_MS
        self.background = InlineExecutor()
        self.failures: list[OSError] = []
        self.compacted: list[Log] = []
        self.cleaner = self._new_cleaner()
        self.log = self.create("prices")

    def create(self, topic: str) -> Log:
        """Creates a log, or opens it if there is one."""
        exists = self.log_dir.folder(topic).exists()
        log = (self.log_dir.open if exists else self.log_dir.create)(self.config, topic)
        self.compacted.append(log)
        return log

    def _new_cleaner(self) -> LogCleaner:
        return LogCleaner(self, self.settings.__getitem__, self.background, lambda: self.now_ms)

    # The host of the cleaner

    def compacted_logs(self) -> list[CompactedLog]:
        return [CompactedLog(log, self.last_stable_offset(log)) for log in self.compacted]

    def open_compacted_logs(self) -> None:
        """All are open."""

    def open_dirty_logs(self) -> Iterator[None]:
        return iter(())

    def find_compacted_log(self, log: Log) -> CompactedLog | None:
        if log not in self.compacted:
            return None
        return CompactedLog(log, self.last_stable_offset(log))

    def handle_log_dir_failure(self, directory: LogDirectory, failure: OSError) -> None:
        self.failures.append(failure)

    def last_stable_offset(self, log: Log) -> int:
        return log.last_stable_offset(log.log_end_offset)

    # Writing

    def write(self, *pairs: Pair, log: Log | None = None, **fields: Any) -> int:
        """Appends one batch; returns its first offset."""
        return self.append(build_batch(self._records(pairs), **fields), log)

    def write_each(self, *pairs: Pair, log: Log | None = None, **fields: Any) -> None:
        """Appends each record in a batch of its own."""
        for pair in pairs:
            self.write(pair, log=log, **fields)

    def write_in_transaction(
        self,
        *pairs: Pair,
        producer_id: int = 7,
        epoch: int = 0,
        sequence: int = 0,
        codec: Codec = Codec.NONE,
    ) -> int:
        return self.write(
            *pairs,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=True,
            codec=codec,
        )

    def end_transaction(self, *, committed: bool, producer_id: int = 7, epoch: int = 0) -> int:
        """Appends a marker; returns its offset."""
        marker = build_marker(
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=committed,
            coordinator_epoch=0,
            timestamp=self.now_ms,
        )
        return self.append(marker)

    def append(self, content: bytearray, log: Log | None = None) -> int:
        """Appends a batch; if it opens a transaction, that is verified first."""
        log, batch = log or self.log, valid(content)
        verification = None
        if batch.header.is_transactional and not batch.header.is_control:
            verification = log.producers.start_batch_verification(
                batch.header, from_zero=False, now_ms=self.now_ms
            )
        return log.append_as_leader(batch, 0, self.now_ms, verification=verification).first_offset

    def roll(self, log: Log | None = None) -> None:
        (log or self.log).maintenance.roll()

    def _records(self, pairs: tuple[Pair, ...]) -> list[Record]:
        return [
            Record(number, self.now_ms, key, value, []) for number, (key, value) in enumerate(pairs)
        ]

    # Cleaning, and what else may happen

    def clean(self) -> None:
        """Runs a round of the cleaner, up to the end of the cleanings that it begins."""
        for _ in self.cleaner.run(self.now_ms):
            pass

    def roll_and_clean(self) -> None:
        self.roll()
        self.clean()

    def stop(self) -> None:
        self.cleaner.close()
        self.log_dir.stop()

    def kill(self) -> None:
        """The process ends without a clean shutdown; what was written stays in the files."""
        self.cleaner.close()
        self.log_dir.kill()

    def start(self) -> None:
        """Recovers the logs before their settings are known, as a broker does, and opens them."""
        self.log_dir.restart()
        self.log_dir.directory.recover_all(lambda _: LogConfig())
        assert self.log_dir.directory.unrecovered_partitions() == []
        self.background = InlineExecutor()
        self.cleaner = self._new_cleaner()
        topics = [log.topic for log in self.compacted]
        self.compacted = [self.log_dir.open(self.config, topic) for topic in topics]
        self.log = self.compacted[0]

    # Reading

    def records(self, log: Log | None = None) -> list[Record]:
        """Returns every record that is left, without markers."""
        return [
            record
            for header, records in self.batches(log)
            if not header.is_control
            for record in records
        ]

    def values(self, log: Log | None = None) -> list[tuple[int, bytes | None, bytes | None]]:
        """Returns offset, key and value of every record that is left."""
        return [(record.offset, record.key, record.value) for record in self.records(log)]

    def batches(
        self, log: Log | None = None, offset: int | None = None
    ) -> Iterator[tuple[BatchHeader, list[Record]]]:
        """Yields the batches from an offset on, as a reader fetches them."""
        log = log or self.log
        offset = log.log_start_offset if offset is None else offset
        while (piece := log.read(offset, 1000, upto=log.log_end_offset)) is not None:
            content = memoryview(piece.read())
            for at, header in iterate_batches(content):
                yield header, read_records(content, at)
            assert piece.next_offset > offset
            offset = piece.next_offset

    def first_dirty_offset(self) -> int | None:
        return self.log.directory.cleaner_offsets.get((self.log.topic, self.log.partition))

    def files(self, ending: str) -> list[str]:
        """Returns the names of the log's files with that ending."""
        return sorted(path.name for path in Path(self.log.path).glob(f"*{ending}"))
