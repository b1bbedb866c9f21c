"""One replica of a partition, whoever leads it: its log, how far it counts, and how it follows."""

import logging

from barnabas.log import Appended, CorruptLog, Log, LogDirectory, LogDirFailure, Slice
from barnabas.metadata.states import PartitionRegistration
from barnabas.replication.ports import Caretaker, Waiting
from barnabas.replication.topic_config import TopicRules
from barnabas.wire.errors import ErrorCode
from barnabas.wire.records.batch import iterate_batches

NO_EPOCH = -1
READ_UNCOMMITTED = 0
READ_COMMITTED = 1

_logger = logging.getLogger(__name__)


class Replica:
    """The log of a partition on this broker, and the offset up to which it will stay as it is."""

    __slots__ = (
        "_caretaker",
        "_damage_told",
        "_waiting",
        "failure",
        "high_watermark",
        "index",
        "is_leader",
        "leader_epoch",
        "log",
        "node_id",
        "rules",
        "state",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        log: Log,
        rules: TopicRules,
        *,
        node_id: int,
        high_watermark: int,
        caretaker: Caretaker,
        waiting: Waiting,
    ) -> None:
        self.topic = log.topic
        self.topic_id = log.topic_id
        self.index = log.partition
        self.log = log
        self.rules = rules
        self.high_watermark = max(log.start_offset, min(high_watermark, log.end_offset))
        """Below it, every replica that may lead has the same records: only that is shown."""
        self.is_leader = False
        self.leader_epoch = NO_EPOCH
        self.failure: ErrorCode | None = None
        """Why nothing more can be asked of this partition: its disk failed, or it was deleted."""
        self.state: PartitionRegistration | None = None
        self.node_id = node_id
        self._caretaker = caretaker
        self._waiting = waiting
        self._damage_told = ""

    def __repr__(self) -> str:
        offsets = f"[{self.log.start_offset}, {self.high_watermark}, {self.log.end_offset})"
        return f"<Partition {self.topic}-{self.index} {offsets}>"

    @property
    def directory(self) -> LogDirectory:
        return self.log.directory

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction has ended."""
        return self.log.last_stable_offset(self.high_watermark)

    def readable_end(self, isolation: int) -> int:
        """The offset up to which a consumer sees records."""
        return self.last_stable_offset if isolation == READ_COMMITTED else self.high_watermark

    def flushed(self) -> None:
        """The disk has caught up: acknowledgements that waited for it can leave."""
        self._waiting.poke(self)

    def advance_start(self, offset: int) -> None:
        """Let go of the records before an offset."""
        try:
            self.log.advance_start(offset)
        except LogDirFailure as failure:
            self._caretaker.lose(self.directory, failure)
            raise
        self.high_watermark = max(self.high_watermark, offset)
        self.let_all_look()

    def let_all_look(self) -> None:
        """Something is not as it was: who waits here may see it otherwise now."""
        self._waiting.poke(self)
        self._waiting.poke(self.log)

    # Following

    def replicate(
        self,
        records: memoryview,
        *,
        leader_high_watermark: int,
        leader_start_offset: int,
        now_ms: int,
    ) -> Appended:
        """Append what the leader sent, as it is, and learn how much of it counts.

        CorruptBatch if the leader's bytes did not arrive whole, OFFSET_OUT_OF_RANGE if they do
        not go on where this log ends, LogDirFailure if the disk refuses.
        """
        log = self.log
        try:
            self._begin_within(records)
            appended = log.append_as_follower(records, now_ms, leader_epoch=self.leader_epoch)
        except LogDirFailure as failure:
            self._caretaker.lose(self.directory, failure)
            raise
        self.follow_high_watermark(
            leader_high_watermark=leader_high_watermark, leader_start_offset=leader_start_offset
        )
        if self.rules.flushes_by_count and log.flush_due(now_ms):
            self._caretaker.flush(self)
        return appended

    def follow_high_watermark(
        self, *, leader_high_watermark: int, leader_start_offset: int
    ) -> None:
        """Let count, and let go of, as much as the leader does: as far as this log reaches."""
        log = self.log
        high_watermark = min(leader_high_watermark, log.end_offset)
        if high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
            log.producers.replicated(high_watermark)
            self._waiting.poke(self)
        start_offset = min(leader_start_offset, log.end_offset)
        if start_offset > log.start_offset:
            self.advance_start(start_offset)

    def truncate_to(self, offset: int) -> None:
        """Drop what the leader does not have, from `offset` on.

        What counted goes only after an unclean election, and not without a word.
        """
        log = self.log
        if offset < self.high_watermark:
            _logger.warning(
                "%s-%d loses records that counted: it ends at offset %d by its leader of epoch "
                "%d, its high watermark is %d",
                self.topic,
                self.index,
                offset,
                self.leader_epoch,
                self.high_watermark,
            )
        try:
            log.truncate_to(offset)
        except LogDirFailure as failure:
            self._caretaker.lose(self.directory, failure)
            raise
        self.high_watermark = min(self.high_watermark, log.end_offset)

    def restart_at(self, offset: int) -> None:
        """Drop everything and go on from `offset`: the leader has nothing older any more."""
        try:
            self.log.truncate_fully_and_start_at(offset)
        except LogDirFailure as failure:
            self._caretaker.lose(self.directory, failure)
            raise
        self.high_watermark = offset

    def _begin_within(self, records: memoryview) -> None:
        """DeleteRecords may have left the leader's start within a batch, which comes whole: an
        empty log begins where that batch does."""
        log = self.log
        if log.start_offset < log.end_offset:
            return
        first = next((header for _, header in iterate_batches(records)), None)
        if first is not None and first.base_offset < log.end_offset <= first.last_offset:
            log.truncate_fully_and_start_at(first.base_offset)
            self.high_watermark = first.base_offset

    # Reading

    def _read(self, offset: int, max_bytes: int, upto: int, at_least_one: bool) -> Slice | None:
        try:
            return self.log.read(offset, max_bytes, upto=upto, at_least_one=at_least_one)
        except LogDirFailure as failure:
            self._caretaker.lose(self.directory, failure)
            raise
        except CorruptLog as damage:
            self._tell_of(damage)
            raise

    def _tell_of(self, damage: CorruptLog) -> None:
        """Once, for its readers will come back to the same place."""
        if damage.message != self._damage_told:
            self._damage_told = damage.message
            _logger.error("%s-%d cannot be read: %s", self.topic, self.index, damage.message)
