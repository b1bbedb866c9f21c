"""What holds of a compacted log whatever happens to it.

Batches of every kind are appended, segments are rolled and cleaned, time passes, the log is
truncated and opened again. A history of all that was appended says what must be left.
"""

import shutil
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.log.cleaner.cleaner_harness import COMPACTED, DAY_MS, CleanerHarness
from tests.log.cleaner.committed_view import committed_records, last_values
from tests.log.cleaner.log_history import NO_PRODUCER, AppendedBatch, LogHistory, Outcome
from tests.simulation.world.run import MEMORY

from barnabas.log import Log
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.record import Record

HOUR_MS = 60 * 60 * 1000
IDEMPOTENT, TRANSACTIONAL = (1, 2), (11, 12)

keys = st.sampled_from([b"a", b"b", b"c", b"d", b"", b"key" * 20])
values = st.none() | st.sampled_from([b"", b"1", b"2", bytes(100)])
pairs = st.lists(st.tuples(keys, values), min_size=1, max_size=5)
codecs = st.sampled_from([Codec.NONE, Codec.NONE, Codec.NONE, *Codec])


class ReplicatedLog(CleanerHarness):
    """A log whose records are committed when its high watermark passes them."""

    high_watermark = 0

    def last_stable_offset(self, log: Log) -> int:
        return log.last_stable_offset(self.high_watermark)


class CompactedLogMachine(RuleBasedStateMachine):
    """A log, its history, and the times of its cleanings."""

    def __init__(self) -> None:
        super().__init__()
        within = MEMORY if MEMORY.is_dir() else None
        self.path = Path(tempfile.mkdtemp(prefix="barnabas-laws-", dir=within))
        self.history = LogHistory()
        self.epochs: dict[int, int] = defaultdict(int)
        self.cleaned_ms: list[int] = []
        self.reached = 0  # the largest first dirty offset

    @initialize(
        segment_bytes=st.sampled_from([800, 3000, 1 << 20]),
        slots=st.sampled_from([3, 5, 1000]),
        buffer_bytes=st.sampled_from([200, 1000, 1 << 16]),
    )
    def open(self, segment_bytes: int, slots: int, buffer_bytes: int) -> None:
        self.harness = ReplicatedLog(
            self.path / "data",
            replace(COMPACTED, segment_bytes=segment_bytes),
            log_cleaner_dedupe_buffer_size=24 * slots,
            log_cleaner_io_buffer_size=buffer_bytes,
        )

    def teardown(self) -> None:
        if hasattr(self, "harness"):
            self.settle()
            self.harness.kill()
        shutil.rmtree(self.path)

    # Appending

    @rule(pairs=pairs, codec=codecs)
    def write(self, pairs: list[tuple[bytes, bytes | None]], codec: Codec) -> None:
        self._append(pairs, codec)

    @rule(pairs=pairs, codec=codecs, producer_id=st.sampled_from(IDEMPOTENT))
    def write_idempotently(
        self, pairs: list[tuple[bytes, bytes | None]], codec: Codec, producer_id: int
    ) -> None:
        self._append(pairs, codec, producer_id)

    @rule(pairs=pairs, codec=codecs, producer_id=st.sampled_from(TRANSACTIONAL))
    def write_in_transaction(
        self, pairs: list[tuple[bytes, bytes | None]], codec: Codec, producer_id: int
    ) -> None:
        self._append(pairs, codec, producer_id, transactional=True)

    @precondition(lambda self: self.history.open_transactions())
    @rule(data=st.data(), committed=st.booleans())
    def end_transaction(self, data: st.DataObject, committed: bool) -> None:
        producer_id = data.draw(st.sampled_from(sorted(self.history.open_transactions())))
        epoch = self.epochs[producer_id]
        offset = self.harness.end_transaction(
            committed=committed, producer_id=producer_id, epoch=epoch
        )
        outcome = Outcome.COMMITTED if committed else Outcome.ABORTED
        self.history.append(
            AppendedBatch(offset, 1, producer_id=producer_id, epoch=epoch, marker=outcome)
        )

    @rule(producer_id=st.sampled_from(IDEMPOTENT + TRANSACTIONAL))
    def bump_epoch(self, producer_id: int) -> None:
        if producer_id not in self.history.open_transactions():
            self.epochs[producer_id] += 1

    def _append(
        self,
        pairs: list[tuple[bytes, bytes | None]],
        codec: Codec,
        producer_id: int = NO_PRODUCER,
        *,
        transactional: bool = False,
    ) -> None:
        epoch, sequence = -1, -1
        if producer_id != NO_PRODUCER:
            epoch = self.epochs[producer_id]
            last_epoch, last_sequence = self.history.sequences().get(producer_id, (epoch, -1))
            sequence = last_sequence + 1 if last_epoch == epoch else 0
        offset = self.harness.write(
            *pairs,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        records = [
            Record(offset + number, self.harness.now_ms, key, value, [])
            for number, (key, value) in enumerate(pairs)
        ]
        self.history.append(
            AppendedBatch(offset, len(pairs), records, producer_id, epoch, sequence, transactional)
        )

    # What happens to the log

    @rule(by_ms=st.sampled_from([1, 1000, -1000, HOUR_MS, DAY_MS, 2 * DAY_MS]))
    def pass_time(self, by_ms: int) -> None:
        """The clock may be set back a little."""
        self.harness.now_ms += by_ms

    @rule(data=st.data())
    def advance_high_watermark(self, data: st.DataObject) -> None:
        harness = self.harness
        ends = [batch.next_offset for batch in self.history.batches]
        later = [end_offset for end_offset in ends if end_offset > harness.high_watermark]
        if later:
            harness.high_watermark = data.draw(st.sampled_from(later))

    @rule()
    def roll(self) -> None:
        self.harness.roll()

    @rule()
    def commit_and_clean(self) -> None:
        self.harness.high_watermark = self.harness.log.log_end_offset
        self.harness.roll()
        self.clean()

    @rule()
    def clean(self) -> None:
        self.harness.clean()
        self.cleaned_ms.append(self.harness.now_ms)
        self.reached = max(self.reached, self.harness.first_dirty_offset() or 0)
        self.check()

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """Only what is not committed is truncated."""
        log = self.harness.log
        offset = data.draw(st.integers(self.harness.high_watermark, log.log_end_offset))
        log.truncate_to(offset)
        self.history.truncate(offset)
        for producer_id, (epoch, _) in self.history.sequences().items():
            self.epochs[producer_id] = max(epoch, 0)
        self.check()

    @rule(clean=st.booleans(), flushed=st.booleans(), lose_snapshots=st.booleans())
    def restart(self, clean: bool, flushed: bool, lose_snapshots: bool) -> None:
        harness = self.harness
        if flushed:
            harness.log.flusher.flush()
            harness.log_dir.directory.checkpoint()
        if clean:
            harness.stop()
        else:
            harness.kill()
        if lose_snapshots:
            for name in harness.files(".snapshot"):
                Path(harness.log.path, name).unlink()
        harness.start()
        self.check()

    def settle(self) -> None:
        """Commits and cleans everything: then each key has one record, at most."""
        self.harness.high_watermark = self.harness.log.log_end_offset
        self.harness.roll()
        stable = self.harness.last_stable_offset(self.harness.log)
        for _ in range(200):
            self.clean()
            cleanable = self.harness.cleaner.cleanable_range(self.harness.log, stable)
            if not cleanable.cleanable_bytes:
                return
        raise AssertionError("the cleaner makes no progress")

    # The laws

    def check(self) -> None:
        harness, log = self.harness, self.harness.log
        assert log.log_end_offset == self.history.end_offset
        assert harness.files(".cleaned") == harness.files(".swap") == []
        assert not harness.failures
        assert not log.compaction_state().uncleanable_reason
        outcomes = {record.offset: (record, outcome) for record, outcome in self.history.outcomes()}
        self.check_offsets(outcomes)
        self.check_reads()
        self.check_committed(outcomes)
        self.check_removed(outcomes)
        self.check_producers()

    def check_offsets(self, outcomes: dict[int, tuple[Record, Outcome]]) -> None:
        """An offset always has the same key, value and timestamp."""
        for record in self.harness.records():
            assert record == outcomes[record.offset][0]

    def check_reads(self) -> None:
        """A reader from any offset gets the batches after it, up to the end of the log."""
        batches = list(self.harness.batches())
        assert self.harness.log.log_end_offset == (batches[-1][0].next_offset if batches else 0)
        for offset in range(self.harness.log.log_end_offset):
            first = next(self.harness.batches(offset=offset), None)
            assert first == next((b for b in batches if b[0].last_offset >= offset), None)
        records = [record for _, batch in batches for record in batch]
        for timestamp in {record.timestamp for record in records}:
            found = self.harness.log.offset_for_timestamp(timestamp)
            assert found is not None
            assert found.offset == min(r.offset for r in records if r.timestamp >= timestamp)

    def check_committed(self, outcomes: dict[int, tuple[Record, Outcome]]) -> None:
        """Committed records are there unless a later one replaced them; others are not visible."""
        harness = self.harness
        stable = harness.last_stable_offset(harness.log)
        committed = [
            record
            for record, outcome in outcomes.values()
            if outcome is Outcome.COMMITTED and record.offset < stable
        ]
        visible = committed_records(harness.log, high_watermark=harness.high_watermark)
        assert set(map(offset_of, visible)) <= set(map(offset_of, committed))
        assert last_values(visible) == last_values(committed)
        last = {record.key: record.offset for record in committed if record.offset < self.reached}
        for record in committed:
            is_replaced = record.offset < last.get(record.key, -1)
            is_old_tombstone = record.value is None and self.could_remove_tombstones()
            assert record in visible or is_replaced or is_old_tombstone, record

    def could_remove_tombstones(self) -> bool:
        """Whether there were two cleanings of which the second is delete.retention.ms later."""
        first_ms = min(self.cleaned_ms, default=0)
        return any(now_ms >= first_ms + DAY_MS for now_ms in self.cleaned_ms)

    def check_removed(self, outcomes: dict[int, tuple[Record, Outcome]]) -> None:
        """The clean part has no aborted records, and none that a later one of it replaces."""
        first_dirty_offset = self.harness.first_dirty_offset() or 0
        clean = {
            offset: record
            for offset, (record, outcome) in outcomes.items()
            if outcome is Outcome.COMMITTED and offset < first_dirty_offset
        }
        last = {record.key: offset for offset, record in clean.items()}
        for record in self.harness.records():
            if record.offset < first_dirty_offset:
                assert record.offset in clean, f"{record} was aborted"
                assert last[record.key] == record.offset

    def check_producers(self) -> None:
        """Each producer goes on with its next sequence, and no transaction opens or ends."""
        producers = self.harness.log.producers
        sequences = {
            producer.producer_id: (producer.epoch, producer.last_sequence)
            for producer in producers.entries.values()
            if producer.batches
        }
        assert sequences == self.history.sequences()
        opened = self.history.open_transactions()
        assert producers.first_undecided_offset == min(opened.values(), default=None)


def offset_of(record: Record) -> int:
    return record.offset


TestCompactedLog = CompactedLogMachine.TestCase
TestCompactedLog.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
