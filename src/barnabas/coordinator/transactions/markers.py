"""The second half of a transaction: its markers are written into all its partitions.

The outcome is decided when its Prepare record is committed, never before. From then on markers are
sent to every partition, by this coordinator or by the next one, until each has been written. The
Complete record says that all of them have.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from barnabas.coordinator.decision import (
    CoordinatorDecision,
    Effect,
    LogLine,
    StartTimer,
    no_change,
)
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.ports import TransactionMarker
from barnabas.coordinator.transactions.metadata import (
    TopicPartition,
    TransactionContext,
    TransactionMetadata,
    TransactionState,
)
from barnabas.coordinator.transactions.records import to_record
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.coordinator.shard import CoordinatorShard
    from barnabas.coordinator.transactions.state import TransactionCoordinatorState

FIRST_BACKOFF_MS: Final = 20
MAX_BACKOFF_MS: Final = 1_000

RESUMED_AT_ONCE: Final = 100
"""How many transactions a new coordinator ends before other work has its turn."""

DONE: Final = frozenset(
    {
        ErrorCode.NONE,
        # The partition has seen a later epoch, so the marker has been written already.
        ErrorCode.INVALID_PRODUCER_EPOCH,
        # Nothing can have been written there in a transaction.
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)

R = TypeVar("R")

log = logging.getLogger(__name__)


MAX_LISTED = 10
"""The number of partitions that a log line lists."""

PartitionErrorCodes = dict[TopicPartition, ErrorCode]
"""The result of a request, by partition."""


class TransactionParticipants(Protocol):
    """The partitions that take part in transactions, on any broker."""

    def by_leader(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[int, Sequence[TopicPartition]]:
        """Returns the partitions by the broker that leads them, without those that have no
        leader now."""

    def write_markers(
        self,
        leader: int,
        marker: TransactionMarker,
        partitions: Sequence[TopicPartition],
        is_needed: Callable[[], bool],
    ) -> PendingResponse[PartitionErrorCodes]:
        """Has the leader append the marker to each partition.

        A partition that is missing in the response, and all if it fails, are tried again: so
        every request gets a response. `is_needed` is called right before the marker is sent; if
        it returns False nothing is sent, and there is no response.
        """


@dataclass(slots=True, frozen=True)
class SendMarkers(Effect):
    """Send the markers of a transaction as soon as its Prepare record is committed."""

    transactional_id: str


def prepare(
    prepared: TransactionMetadata, response: R, context: TransactionContext, *lines: LogLine
) -> CoordinatorDecision[R]:
    """Decides to write the outcome of a transaction and to send its markers."""
    return CoordinatorDecision(
        [to_record(prepared, context.transaction_version)],
        response,
        [*lines, SendMarkers(prepared.transactional_id)],
    )


def complete(
    transactional_id: str, state: "TransactionCoordinatorState", context: TransactionContext
) -> CoordinatorDecision[None]:
    """Decides that all markers are written: the next transaction may begin."""
    completed = state.by_id[transactional_id].completed(context.now_ms)
    return CoordinatorDecision([to_record(completed, context.transaction_version)], None)


def resume_markers(state: "TransactionCoordinatorState") -> Sequence[Effect]:
    """Sends the markers that the previous coordinator may not have sent."""
    unfinished = [each.transactional_id for each in state.by_id.values() if each.is_ending]
    if not unfinished:
        return ()
    log.info("Sending the markers of %d transactions of the last coordinator", len(unfinished))
    return [_resume_timer(unfinished)]


def _resume_timer(unfinished: list[str]) -> StartTimer:
    return StartTimer(("resume",), 0, partial(_resume, unfinished))


def _resume(
    unfinished: list[str], state: "TransactionCoordinatorState", context: TransactionContext
) -> CoordinatorDecision[None]:
    now, later = unfinished[:RESUMED_AT_ONCE], unfinished[RESUMED_AT_ONCE:]
    effects: list[Effect] = [SendMarkers(transactional_id) for transactional_id in now]
    if later:
        effects.append(_resume_timer(later))
    return no_change(*effects)


@dataclass(slots=True, eq=False)
class PendingMarkers:
    """The markers of one transaction, until all are written."""

    transactional_id: str
    marker: TransactionMarker
    remaining: set[TopicPartition]
    in_flight: set[TopicPartition] = field(default_factory=set)
    """The partitions that a marker is on its way to. Each leader responds in its own time."""
    backoff_ms: int = FIRST_BACKOFF_MS

    @property
    def timer_key(self) -> tuple[str, str]:
        return _timer_key(self.transactional_id)


class MarkerSender:
    """Sends markers to the leaders of partitions and retries until all are written.

    This is not a part of the replayed state: the next coordinator begins again from the Prepare
    records.
    """

    def __init__(
        self,
        shard: "CoordinatorShard[TransactionCoordinatorState]",
        participants: TransactionParticipants,
        image: Callable[[], MetadataImage],
    ) -> None:
        self.pending: dict[str, PendingMarkers] = {}
        """By transactional id."""
        self._shard = shard
        self._participants = participants
        self._image = image

    def send(self, transactional_id: str) -> None:
        """Sends the markers of a transaction once its Prepare record is committed."""

        def on_committed(error: KafkaError | None) -> None:
            if error is None:
                self._begin(transactional_id)
            elif self._shard.is_active:
                # The record is in the log and may still be committed: then markers must follow.
                self._shard.timers.call_after(
                    _timer_key(transactional_id),
                    MAX_BACKOFF_MS,
                    partial(self.send, transactional_id),
                )

        self._shard.when_committed(on_committed)

    def retry_now(self, changed: Collection[TopicPartition]) -> None:
        """The leaders of these partitions may have changed: send to them without a backoff."""
        for markers in list(self.pending.values()):
            if not markers.remaining.isdisjoint(changed):
                markers.backoff_ms = FIRST_BACKOFF_MS
                self._send(markers)

    def close(self) -> None:
        self.pending.clear()

    def _begin(self, transactional_id: str) -> None:
        current = self._shard.state.by_id.get(transactional_id)
        if not self._shard.is_active or current is None or not current.is_ending:
            return
        marker = TransactionMarker(
            producer_id=current.producer_id,
            producer_epoch=current.producer_epoch,
            coordinator_epoch=self._shard.epoch,
            committed=current.state is TransactionState.PREPARE_COMMIT,
            transaction_version=current.client_version,
        )
        markers = PendingMarkers(transactional_id, marker, set(current.partitions))
        self.pending[transactional_id] = markers
        self._send(markers)

    def _send(self, markers: PendingMarkers) -> None:
        if not self._is_current(markers):
            return
        # A deleted topic needs no markers.
        image = self._image()
        markers.remaining = {each for each in markers.remaining if _exists(image, each)}
        if not markers.remaining:
            self._complete(markers)
            return
        by_leader = self._participants.by_leader(sorted(markers.remaining - markers.in_flight))
        for partitions in by_leader.values():
            markers.in_flight.update(partitions)
        if not markers.remaining <= markers.in_flight:
            self._retry_later(markers)
        for leader, partitions in by_leader.items():
            self._send_to(leader, markers, partitions)

    def _send_to(
        self, leader: int, markers: PendingMarkers, partitions: Sequence[TopicPartition]
    ) -> None:
        response = self._participants.write_markers(
            leader, markers.marker, partitions, lambda: self._is_current(markers)
        )
        response.when_done(lambda response: self._on_response(markers, partitions, response))

    def _on_response(
        self,
        markers: PendingMarkers,
        partitions: Sequence[TopicPartition],
        response: PendingResponse[PartitionErrorCodes],
    ) -> None:
        if not self._is_current(markers):
            return
        codes = {} if response.error is not None else response.result()
        if ErrorCode.TRANSACTION_COORDINATOR_FENCED in codes.values():
            self._abandon(markers)
            return
        markers.in_flight.difference_update(partitions)
        markers.remaining.difference_update(each for each, code in codes.items() if code in DONE)
        if not markers.remaining:
            self._complete(markers)
        elif not markers.remaining.isdisjoint(partitions):
            last_backoff_ms = markers.backoff_ms
            self._retry_later(markers)
            if last_backoff_ms < markers.backoff_ms == MAX_BACKOFF_MS:
                errors = {code.name for code in codes.values() if code not in DONE}
                log.warning(
                    "%s: the transaction of %s waits for its markers in %s: %s",
                    self._shard,
                    markers.transactional_id,
                    _list(markers.remaining.intersection(partitions)),
                    response.error or ", ".join(sorted(errors)),
                )

    def _complete(self, markers: PendingMarkers) -> None:
        if not self._is_current(markers):
            return
        transactional_id = markers.transactional_id
        shard = self._shard
        shard.write(lambda state: complete(transactional_id, state, shard.context()))
        if shard.state.by_id[transactional_id].is_ending:  # the append failed
            markers.backoff_ms = MAX_BACKOFF_MS
            self._retry_later(markers)
        else:
            self._remove(markers)

    def _abandon(self, markers: PendingMarkers) -> None:
        """A later coordinator has sent markers: this one has been replaced."""
        log.warning(
            "%s: a coordinator after epoch %d has ended the transaction of %s",
            self._shard,
            markers.marker.coordinator_epoch,
            markers.transactional_id,
        )
        self._remove(markers)

    def _remove(self, markers: PendingMarkers) -> None:
        del self.pending[markers.transactional_id]
        self._shard.timers.cancel(markers.timer_key)

    def _retry_later(self, markers: PendingMarkers) -> None:
        """Sends the markers that are not in flight after a backoff that doubles each time."""
        timers = self._shard.timers
        if markers.timer_key in timers:
            return
        timers.call_after(markers.timer_key, markers.backoff_ms, partial(self._send, markers))
        markers.backoff_ms = min(markers.backoff_ms * 2, MAX_BACKOFF_MS)

    def _is_current(self, markers: PendingMarkers) -> bool:
        """Whether this coordinator still has to write them."""
        return self.pending.get(markers.transactional_id) is markers


def _timer_key(transactional_id: str) -> tuple[str, str]:
    return ("markers", transactional_id)


def _exists(image: MetadataImage, partition: TopicPartition) -> bool:
    topic = image.topics.by_name(partition[0])
    return topic is not None and partition[1] in topic.partitions


def _list(partitions: Collection[TopicPartition]) -> str:
    """Returns the names of a few partitions and the number of the others."""
    listed = ", ".join(f"{topic}-{index}" for topic, index in sorted(partitions)[:MAX_LISTED])
    others = len(partitions) - MAX_LISTED
    return listed if others <= 0 else f"{listed} and {others} more"
