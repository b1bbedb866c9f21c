"""The second half of a transaction: its partitions are told the outcome, until all know it.

The outcome is decided when its Prepare record is committed, never before: from then on it is told
to every partition, by this coordinator or by the next one. The Complete record says that nothing
is left to tell.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.decision import Decision
from barnabas.coordinator.ports import TransactionMarker
from barnabas.coordinator.transactions.metadata import (
    TopicPartition,
    TransactionMetadata,
    TransactionState,
)
from barnabas.coordinator.transactions.ports import PartitionErrorCodes
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.coordinator.transactions.state import TransactionCoordinatorState

FIRST_BACKOFF_MS: Final = 20
MAX_BACKOFF_MS: Final = 1_000

RESUMED_AT_ONCE: Final = 100
"""How many transactions a new coordinator ends before others have their turn."""

DONE: Final = frozenset(
    {
        ErrorCode.NONE,
        # The partition has gone on to a later epoch, so it has been told already.
        ErrorCode.INVALID_PRODUCER_EPOCH,
        # Nothing can have been written there in a transaction.
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)

R = TypeVar("R")

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class PendingMarkers:
    """A transaction whose outcome is not yet known everywhere."""

    transactional_id: str
    marker: TransactionMarker
    remaining: set[TopicPartition]
    under_way: set[TopicPartition] = field(default_factory=set)
    """Those that are being told: each leader answers for itself, and in its own time."""
    backoff_ms: int = FIRST_BACKOFF_MS

    @property
    def timer(self) -> tuple[str, str]:
        return ("markers", self.transactional_id)


def prepare(
    transactions: "TransactionCoordinatorState", prepared: TransactionMetadata, response: R
) -> Decision[R]:
    """Write the outcome down; as soon as that is committed, tell the partitions."""
    transactional_id = prepared.transactional_id

    def refused(_: KafkaError) -> None:
        if transactions.shard.is_active and transactions.by_id[transactional_id].is_ending:
            # It is in the log all the same: if it is committed yet, the partitions must hear.
            _tell_later(transactions, transactional_id)

    return Decision(
        response,
        [transactions.record(prepared)],
        committed=lambda: tell(transactions, transactional_id),
        refused=refused,
    )


def tell(transactions: "TransactionCoordinatorState", transactional_id: str) -> None:
    """Tell the partitions of a transaction its outcome, which is committed."""
    current = transactions.by_id.get(transactional_id)
    if not transactions.shard.is_active or current is None or not current.is_ending:
        return
    marker = TransactionMarker(
        producer_id=current.producer_id,
        producer_epoch=current.producer_epoch,
        coordinator_epoch=transactions.shard.epoch,
        committed=current.state is TransactionState.PREPARE_COMMIT,
        transaction_version=current.client_version,
    )
    ending = PendingMarkers(transactional_id, marker, set(current.partitions))
    transactions.endings[transactional_id] = ending
    _send(transactions, ending)


def resume(transactions: "TransactionCoordinatorState") -> None:
    """Tell what the coordinator before this one may not have told."""
    undone = [each.transactional_id for each in transactions.by_id.values() if each.is_ending]
    if undone:
        log.info(
            "%s: ends %d transactions that the coordinator before it decided",
            transactions.shard,
            len(undone),
        )
        _resume(transactions, undone)


def _resume(transactions: "TransactionCoordinatorState", undone: list[str]) -> None:
    now, later = undone[:RESUMED_AT_ONCE], undone[RESUMED_AT_ONCE:]

    def tell_some() -> None:
        for transactional_id in now:
            tell(transactions, transactional_id)
        if later:
            _resume(transactions, later)

    transactions.timers.set(("resume",), 0, lambda: Decision(None, committed=tell_some))


def tell_again(transactions: "TransactionCoordinatorState", changed: Collection[TopicPartition]) -> None:
    """These partitions changed hands, maybe: who waits for them need not wait any longer."""
    for ending in list(transactions.endings.values()):
        if not ending.remaining.isdisjoint(changed):
            ending.backoff_ms = FIRST_BACKOFF_MS
            _send(transactions, ending)


def _send(transactions: "TransactionCoordinatorState", ending: PendingMarkers) -> None:
    if not _is_current(transactions, ending):
        return
    # A topic that was deleted has nobody to tell, and takes its share of the outcome with it.
    ending.remaining = {each for each in ending.remaining if _exists(transactions.image, each)}
    if not ending.remaining:
        _complete(transactions, ending)
        return
    by_leader = transactions.participants.by_leader(sorted(ending.remaining - ending.under_way))
    for partitions in by_leader.values():
        ending.under_way.update(partitions)
    if not ending.remaining <= ending.under_way:
        _send_later(transactions, ending)
    for leader, partitions in by_leader.items():
        _send_to(transactions, ending, leader, partitions)


def _send_to(
    transactions: "TransactionCoordinatorState", ending: PendingMarkers, leader: int, partitions: Sequence[TopicPartition]
) -> None:
    answer = transactions.participants.write_markers(
        leader, ending.marker, partitions, lambda: _is_current(transactions, ending)
    )
    answer.when_done(lambda told: _heard(transactions, ending, partitions, told))


def _heard(
    transactions: "TransactionCoordinatorState",
    ending: PendingMarkers,
    partitions: Sequence[TopicPartition],
    told: PendingResponse[PartitionErrorCodes],
) -> None:
    if not _is_current(transactions, ending):
        return
    codes = {} if told.error is not None else told.result()
    if ErrorCode.TRANSACTION_COORDINATOR_FENCED in codes.values():
        _give_up(transactions, ending)
        return
    ending.under_way.difference_update(partitions)
    ending.remaining.difference_update(each for each, code in codes.items() if code in DONE)
    if not ending.remaining:
        _complete(transactions, ending)
    elif not ending.remaining.isdisjoint(partitions):
        waited_ms = ending.backoff_ms
        _send_later(transactions, ending)
        if waited_ms < ending.backoff_ms == MAX_BACKOFF_MS:
            log.warning(
                "%s: the transaction of %s waits for %s: %s",
                transactions.shard,
                ending.transactional_id,
                sorted(ending.remaining.intersection(partitions)),
                told.error or {code.name for code in codes.values() if code not in DONE},
            )


def _complete(transactions: "TransactionCoordinatorState", ending: PendingMarkers) -> None:
    """Write down that all know; the next transaction may begin."""
    if not _is_current(transactions, ending):
        return
    transactional_id = ending.transactional_id

    def decide(state: "TransactionCoordinatorState") -> Decision[None]:
        completed = state.by_id[transactional_id].completed(state.now_ms())
        return Decision(None, [state.record(completed)])

    transactions.shard.write(decide)
    if transactions.by_id[transactional_id].is_ending:  # the log refused it
        ending.backoff_ms = MAX_BACKOFF_MS
        _send_later(transactions, ending)
    else:
        del transactions.endings[transactional_id]
        transactions.timers.cancel(ending.timer)


def _give_up(transactions: "TransactionCoordinatorState", ending: PendingMarkers) -> None:
    """A later coordinator has spoken: this one has only not heard of its resignation yet."""
    log.warning(
        "%s: a later coordinator than epoch %d ends the transaction of %s",
        transactions.shard,
        ending.marker.coordinator_epoch,
        ending.transactional_id,
    )
    del transactions.endings[ending.transactional_id]
    transactions.timers.cancel(ending.timer)


def _send_later(transactions: "TransactionCoordinatorState", ending: PendingMarkers) -> None:
    """Tell who is not being told, in a while that grows from one time to the next."""
    if ending.timer in transactions.timers:
        return
    transactions.timers.set(
        ending.timer,
        ending.backoff_ms,
        lambda: Decision(None, committed=lambda: _send(transactions, ending)),
    )
    ending.backoff_ms = min(ending.backoff_ms * 2, MAX_BACKOFF_MS)


def _tell_later(transactions: "TransactionCoordinatorState", transactional_id: str) -> None:
    transactions.timers.set(
        ("markers", transactional_id),
        MAX_BACKOFF_MS,
        lambda: Decision(None, committed=lambda: tell(transactions, transactional_id)),
    )


def _is_current(transactions: "TransactionCoordinatorState", ending: PendingMarkers) -> bool:
    """Whether it is still this coordinator's, and not told in full already."""
    return transactions.endings.get(ending.transactional_id) is ending


def _exists(image: MetadataImage, partition: TopicPartition) -> bool:
    topic = image.topics.by_name(partition[0])
    return topic is not None and partition[1] in topic.partitions
