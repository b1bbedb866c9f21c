"""One partition of an internal topic and the state machine that is kept in it.

A write is decided on the current state, appended, and replayed into the state. So the state is
never ahead of the log, and nothing has to be undone when an append fails. The state may be ahead
of what is committed: a response, also that of a read, is therefore sent only when everything
written before it is committed. No snapshots are needed for that.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from barnabas.coordinator.decision import (
    CancelTimer,
    CoordinatorDecision,
    Effect,
    LogLine,
    StartTimer,
)
from barnabas.coordinator.loader import load
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.ports import PartitionLog, TimerService, TransactionMarker
from barnabas.coordinator.records import (
    CoordinatorRecord,
    PackedRecords,
    RecordTypes,
    ReplayedState,
    encode,
)
from barnabas.coordinator.timers import ShardTimers
from barnabas.log.errors import LogDirFailure
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import HEADER_BYTES, NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas.wire.records.build import Record, build_batch, complete_batch


class CoordinatorState(ReplayedState, Protocol):
    """A state machine kept in one partition of an internal topic.

    Its contents change by `replay` alone. What it holds besides (timers, pending responses) is
    lost in a failover, and no client depends on it. The effects that methods return are performed
    by the shard.
    """

    def on_loaded(self, context: Any) -> Sequence[Effect]:
        """Everything in the log has been replayed: requests and timers follow."""

    def on_unloaded(self) -> None:
        """Another broker leads: fail the responses that are pending."""

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, context: Any
    ) -> Sequence[Effect]: ...

    def perform(self, effect: Effect, context: Any) -> None:
        """Performs an effect of the state machine's own, one that is not about timers."""


S = TypeVar("S", bound=CoordinatorState)
R = TypeVar("R")

BATCH_BYTES = 512 * 1024
"""The size at which records that need not be in one batch are split into the next one."""

_NO_PRODUCER = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

log = logging.getLogger(__name__)


class CoordinatorShard(Generic[S]):
    """The leadership of one partition, for one leader epoch."""

    __slots__ = (
        "_base_sequence",
        "_clock",
        "_end_offset",
        "_log",
        "_missed_updates",
        "_open_log",
        "_types",
        "_write_timeout_ms",
        "context",
        "epoch",
        "index",
        "is_active",
        "is_loading",
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
        context: Callable[[], Any],
        timer_service: TimerService,
        clock: Callable[[], int],
        write_timeout_ms: int,
        base_sequence: int,
    ) -> None:
        self.topic = topic
        self.index = index
        self.epoch = epoch
        """The leader epoch, which is the coordinator epoch of transaction markers."""
        self.is_active = False
        self.is_loading = False
        """Whether a part of the log has been replayed, and more of it follows."""
        self.timers = ShardTimers(timer_service, self)
        self.context = context
        """Returns the context for decisions that no request causes."""
        self._open_log = open_log
        self._types = types
        self._clock = clock
        self._write_timeout_ms = write_timeout_ms
        self._base_sequence = base_sequence
        self._missed_updates: list[tuple[MetadataDelta, MetadataImage]] = []
        self._end_offset = 0  # the offset after the last record that the state has replayed
        self.state = build(self)

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"

    def write(self, decide: Callable[[S], CoordinatorDecision[R]]) -> PendingResponse[R]:
        """Decides, appends, replays and performs the effects. The response completes when
        everything is committed."""
        if not self.is_active:
            return PendingResponse.failed(not_coordinator(self.topic, self.index))
        try:
            decision = decide(self.state)
        except Exception as error:
            return PendingResponse.failed(error)
        value = decision.response
        response: PendingResponse[R] = (
            value if isinstance(value, PendingResponse) else PendingResponse()
        )
        append_error = self._append(decision) if decision.records else None
        end_offset = self._end_offset  # effects may write more
        if append_error is None and decision.effects:
            self._perform(decision.effects)

        def on_committed(error: KafkaError | None) -> None:
            if error is not None:
                error = to_client_error(error)
            if decision.on_committed is not None:
                try:
                    decision.on_committed(error)
                except Exception:  # a bug, which must not leave the client waiting
                    log.exception("%s: the callback of a write failed", self)
            if response is value:
                return  # the state machine completes it
            if error is None:
                response.complete(value)  # type: ignore[arg-type]
            else:
                response.fail(error)

        if append_error is not None:
            on_committed(append_error)
        else:
            self._log.when_committed(end_offset, self._write_timeout_ms, on_committed)
        return response

    def read(self, view: Callable[[S], R]) -> PendingResponse[R]:
        """Returns what `view` returns, once everything it has seen is committed."""
        return self.write(lambda state: CoordinatorDecision((), view(state)))

    @property
    def is_committed(self) -> bool:
        """Whether everything written so far is committed."""
        return self._log.is_committed(self._end_offset)

    @property
    def commits_at_once(self) -> bool:
        """Whether everything is committed as soon as it is written. That is so without replicas."""
        return self._log.commits_at_once

    def write_at_once(self, records: PackedRecords) -> KafkaError | None:
        """Appends and replays records, which are committed by that if `commits_at_once` is True.
        Returns the error if that fails."""
        try:
            self._append_packed(records, self._clock())
        except Exception as error:
            return to_client_error(error)
        return None

    def when_committed(self, on_committed: Callable[[KafkaError | None], None]) -> None:
        """Calls back once everything written so far is committed, or is not in time."""
        self._log.when_committed(self._end_offset, self._write_timeout_ms, on_committed)

    def end_transaction(self, marker: TransactionMarker) -> PendingResponse[None]:
        """Appends a transaction's marker to this partition: its pending records are committed or
        aborted."""
        if not self.is_active:
            return PendingResponse.failed(not_coordinator(self.topic, self.index))
        response: PendingResponse[None] = PendingResponse()
        try:
            self._end_offset = self._log.append_marker(marker)
        except (KafkaError, LogDirFailure) as error:
            response.fail(error)
            return response
        self.state.replay_end(marker.producer_id, marker.committed)
        self.when_committed(
            lambda error: response.complete(None) if error is None else response.fail(error)
        )
        return response

    def load(self) -> Iterator[None]:
        """Replays the log, a slice at each step. The shard is active after the last step."""
        self.is_loading = True
        self._log = self._open_log(self.index)
        yield from load(self._log, self._types, self.state)
        self._end_offset = self._log.end_offset
        self.is_loading, self.is_active = False, True
        self._perform(self.state.on_loaded(self.context()))
        for delta, image in self._missed_updates:
            self.on_metadata_update(delta, image)
        self._missed_updates.clear()

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """A shard that is being loaded handles the update when it is loaded."""
        if self.is_active:
            self._perform(self.state.on_metadata_update(delta, image, self.context()))
        else:
            self._missed_updates.append((delta, image))

    def unload(self) -> None:
        """Another broker leads, or none."""
        self.is_active = False
        self.timers.cancel_all()
        self.state.on_unloaded()

    def _perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case StartTimer():
                    self.timers.start(effect)
                case CancelTimer():
                    self.timers.cancel(effect.key)
                case LogLine():
                    self.when_committed(effect.on_committed)
                case _:
                    try:
                        self.state.perform(effect, self.context())
                    except Exception:  # a bug, which must not leave the client waiting
                        log.exception("%s: %s failed", self, effect)

    def _append(self, decision: CoordinatorDecision[R]) -> KafkaError | None:
        """Appends and replays; returns the error if that fails."""
        try:
            self._append_all(decision)
        except Exception as error:  # a client's strings may not fit into a record
            return to_client_error(error)
        return None

    def _append_all(self, decision: CoordinatorDecision[R]) -> None:
        records, now_ms = decision.records, self._clock()
        if isinstance(records, PackedRecords):
            self._append_packed(records, now_ms)
            return
        if decision.is_atomic:
            encoded = [encode(record, now_ms) for record in records]
            self._append_batch(records, encoded, decision)
            return
        for batch_records, encoded in _batches(records, now_ms):
            self._append_batch(batch_records, encoded, decision)

    def _append_packed(self, records: PackedRecords, now_ms: int) -> None:
        batch = records.encode(HEADER_BYTES)
        complete_batch(batch, len(records), now_ms, self._base_sequence)
        self._end_offset = self._log.append(batch)
        records.replay(self.state)

    def _append_batch(
        self,
        records: Sequence[CoordinatorRecord],
        encoded: Sequence[Record],
        decision: CoordinatorDecision[R],
    ) -> None:
        producer_id, producer_epoch = decision.producer or _NO_PRODUCER
        batch = build_batch(
            encoded,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=self._base_sequence,
            transactional=decision.producer is not None,
        )
        self._end_offset = self._log.append(batch)
        if decision.is_replayed:
            replay = self.state.replay
            for record in records:
                replay(record, producer_id)


def _batches(
    records: Sequence[CoordinatorRecord], now_ms: int
) -> Iterator[tuple[Sequence[CoordinatorRecord], list[Record]]]:
    """Splits the records into batches of at most about BATCH_BYTES, with their encodings."""
    start, size_bytes, batch = 0, 0, []
    for position, record in enumerate(records):
        encoded = encode(record, now_ms)
        batch.append(encoded)
        size_bytes += len(encoded.key or b"") + len(encoded.value or b"")
        if size_bytes > BATCH_BYTES:
            yield records[start : position + 1], batch
            start, size_bytes, batch = position + 1, 0, []
    if batch:
        yield records[start:], batch


def not_coordinator(topic: str, index: int) -> KafkaError:
    return KafkaError(
        ErrorCode.NOT_COORDINATOR,
        f"{topic}-{index} is not led by this broker: find its coordinator again.",
    )


def to_client_error(error: Exception) -> KafkaError:
    """Returns the error that a client gets when the coordinator's own write fails."""
    if isinstance(error, LogDirFailure):
        return KafkaError(ErrorCode.NOT_COORDINATOR, str(error))
    if not isinstance(error, KafkaError):
        log.error("A coordinator's records cannot be written", exc_info=error)
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
