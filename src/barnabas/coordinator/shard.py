"""One partition of an internal topic and the state machine that lives in it.

A write is decided on the state as it is, appended, and replayed into the state: so the state is
never ahead of the log, and nothing has to be taken back when an append fails. It may be ahead of
what is committed; therefore an answer, of a read as well, leaves only when all that was written
before it is committed. No snapshots are needed for that.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.decision import Decision
from barnabas.coordinator.loader import load
from barnabas.coordinator.ports import TransactionMarker
from barnabas.coordinator.ports import TimerService, PartitionLog, CoordinatorState
from barnabas.coordinator.records import CoordinatorRecord, RecordTypes, encode
from barnabas.coordinator.timers import ShardTimers
from barnabas.log.errors import LogDirFailure
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas.wire.records.build import Record, build_batch

S = TypeVar("S", bound=CoordinatorState)
R = TypeVar("R")

BATCH_BYTES = 512 * 1024
"""About how large a batch of records gets that need not all be in one."""

_NO_PRODUCER = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

log = logging.getLogger(__name__)


class CoordinatorShard(Generic[S]):
    """A leader's hold on one partition, for one leader epoch."""

    __slots__ = (
        "_base_sequence",
        "_clock",
        "_end",
        "_log",
        "_missed",
        "_open_log",
        "_types",
        "_write_timeout_ms",
        "epoch",
        "index",
        "is_active",
        "state",
        "timers",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        index: int,
        epoch: int,
        open_log: Callable[[int], PartitionLog],
        types: RecordTypes,
        build: "Callable[[CoordinatorShard[S]], S]",
        clockwork: TimerService,
        clock: Callable[[], int],
        write_timeout_ms: int,
        base_sequence: int,
    ) -> None:
        self.topic = topic
        self.index = index
        self.epoch = epoch
        """The leader epoch, which is the coordinator epoch of transaction markers."""
        self.is_active = False
        self.timers = ShardTimers(clockwork, self)
        self._open_log = open_log
        self._types = types
        self._clock = clock
        self._write_timeout_ms = write_timeout_ms
        self._base_sequence = base_sequence
        self._missed: list[tuple[MetadataDelta, MetadataImage]] = []
        self._end = 0  # the offset after the last write that the state has seen
        self.state = build(self)

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"

    def now_ms(self) -> int:
        return self._clock()

    def write(self, decide: Callable[[S], Decision[R]]) -> PendingResponse[R]:
        """Decide, append, replay; the answer comes when it is committed."""
        if not self.is_active:
            return PendingResponse.failed(not_coordinator(self.topic, self.index))
        try:
            decision = decide(self.state)
        except Exception as error:
            return PendingResponse.failed(error)
        response = decision.response
        answer: PendingResponse[R] = response if isinstance(response, PendingResponse) else PendingResponse()
        refusal = self._append(decision) if decision.records else None

        def settle(failure: KafkaError | None) -> None:
            if failure is not None:
                failure = to_client_error(failure)
            try:
                if failure is None and decision.committed is not None:
                    decision.committed()
                elif failure is not None and decision.refused is not None:
                    decision.refused(failure)
            except Exception:  # a fault of ours, which must not leave the client waiting
                log.exception("%s: what follows a write failed", self)
            if answer is response:
                return  # the state machine's to complete
            if failure is None:
                answer.complete(response)  # type: ignore[arg-type]
            else:
                answer.fail(failure)

        if refusal is not None:
            settle(refusal)
        else:
            self._log.when_committed(self._end, self._write_timeout_ms, settle)
        return answer

    def read(self, look: Callable[[S], R]) -> PendingResponse[R]:
        """What `look` finds, once what it has seen is committed."""
        return self.write(lambda state: Decision(look(state)))

    def end_transaction(self, marker: TransactionMarker) -> PendingResponse[None]:
        """Write a transaction's marker into this partition; what was pending is decided."""
        if not self.is_active:
            return PendingResponse.failed(not_coordinator(self.topic, self.index))
        answer: PendingResponse[None] = PendingResponse()
        try:
            self._end = self._log.append_marker(marker)
        except (KafkaError, LogDirFailure) as error:
            answer.fail(error)
            return answer
        self.state.replay_end(marker.producer_id, marker.committed)
        self._log.when_committed(
            self._end,
            self._write_timeout_ms,
            lambda failure: answer.complete(None) if failure is None else answer.fail(failure),
        )
        return answer

    def load(self) -> Iterator[None]:
        """Replay the log, a slice at each step; the shard is active after the last."""
        self._log = self._open_log(self.index)
        yield from load(self._log, self._types, self.state)
        self._end = self._log.end_offset
        self.is_active = True
        self.state.loaded()
        for delta, image in self._missed:
            self.state.follow(delta, image)
        self._missed.clear()

    def follow(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """The metadata changed; a shard that is being loaded hears of it in the end."""
        if self.is_active:
            self.state.follow(delta, image)
        else:
            self._missed.append((delta, image))

    def resign(self) -> None:
        """Let go: another leads, or nobody."""
        self.is_active = False
        self.timers.cancel_all()
        self.state.unloaded()

    def _append(self, decision: Decision[R]) -> KafkaError | None:
        """Append and replay; what stands against it, if anything."""
        try:
            self._append_all(decision)
        except Exception as error:  # what a client said may not fit into a record
            return to_client_error(error)
        return None

    def _append_all(self, decision: Decision[R]) -> None:
        records, now_ms = decision.records, self._clock()
        if decision.is_atomic:
            encoded = [encode(record, now_ms) for record in records]
            self._append_batch(records, encoded, decision)
            return
        for some, encoded in _batches(records, now_ms):
            self._append_batch(some, encoded, decision)

    def _append_batch(
        self,
        records: Sequence[CoordinatorRecord],
        encoded: Sequence[Record],
        decision: Decision[R],
    ) -> None:
        producer_id, producer_epoch = decision.producer or _NO_PRODUCER
        batch = build_batch(
            encoded,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=self._base_sequence,
            transactional=decision.producer is not None,
        )
        self._end = self._log.append(batch)
        if decision.is_replayed:
            replay = self.state.replay
            for record in records:
                replay(record, producer_id)


def _batches(
    records: Sequence[CoordinatorRecord], now_ms: int
) -> Iterator[tuple[Sequence[CoordinatorRecord], list[Record]]]:
    """The records with their encoding, cut where a batch would grow beyond the limit."""
    start, size, encoded = 0, 0, []
    for position, record in enumerate(records):
        each = encode(record, now_ms)
        encoded.append(each)
        size += len(each.key or b"") + len(each.value or b"")
        if size > BATCH_BYTES:
            yield records[start : position + 1], encoded
            start, size, encoded = position + 1, 0, []
    if encoded:
        yield records[start:], encoded


def not_coordinator(topic: str, index: int) -> KafkaError:
    return KafkaError(
        ErrorCode.NOT_COORDINATOR, f"{topic}-{index} is not led by this broker: ask again who does."
    )


def to_client_error(error: Exception) -> KafkaError:
    """What a coordinator's client is told when the coordinator's own write fails."""
    if isinstance(error, LogDirFailure):
        return KafkaError(ErrorCode.NOT_COORDINATOR, str(error))
    if not isinstance(error, KafkaError):
        log.error("a coordinator's records cannot be written", exc_info=error)
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"It cannot be written: {error}")
    match error.code:
        case (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            | ErrorCode.UNKNOWN_TOPIC_ID
            | ErrorCode.NOT_ENOUGH_REPLICAS
            | ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            | ErrorCode.REQUEST_TIMED_OUT
        ):
            return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)
        case ErrorCode.NOT_LEADER_OR_FOLLOWER | ErrorCode.KAFKA_STORAGE_ERROR:
            return KafkaError(ErrorCode.NOT_COORDINATOR, error.message)
        case ErrorCode.RECORD_LIST_TOO_LARGE | ErrorCode.MESSAGE_TOO_LARGE:
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, error.message)
    return error
