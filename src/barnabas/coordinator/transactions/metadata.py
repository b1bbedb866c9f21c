"""The metadata of a transactional id: its producer, and the state of its transaction.

It is a value: each step of a transaction makes the next one, and the log keeps them. Besides, the
context of decisions about transactions, and their errors.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final

from barnabas.log import EPOCH_BUMP_TRANSACTION_VERSION
from barnabas.metadata.features import TRANSACTION_VERSION
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

TopicPartition = tuple[str, int]

MAX_EPOCH: Final = 32_767
LAST_ASSIGNED_EPOCH: Final = MAX_EPOCH - 1
"""The highest epoch that a producer gets. One more is reserved for fencing it."""

NOT_STARTED: Final = -1


class TransactionState(IntEnum):
    """The states, by their numbers in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """The name that administrators see: PrepareCommit."""
        return self.name.title().replace("_", "")


_S = TransactionState

TRANSITIONS: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    _S.ONGOING: frozenset(
        {_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT, _S.PREPARE_EPOCH_FENCE}
    ),
    _S.PREPARE_COMMIT: frozenset({_S.COMPLETE_COMMIT}),
    _S.PREPARE_ABORT: frozenset({_S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    _S.COMPLETE_ABORT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    # The last two are names that administrators can filter by, and are never in the log: a fenced
    # transaction becomes PrepareAbort in the same step, a dead one is a tombstone.
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: frozenset(),
}
"""The states that may follow each state. Version 2 may abort without a transaction: it must bump
the epoch of a producer that does not know whether its records arrived."""


@dataclass(slots=True, frozen=True)
class TransactionMetadata:
    """A transactional id after one step of its transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    updated_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NOT_STARTED
    client_version: int = 0
    """The transaction version of the client that made the latest step of a transaction."""
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the latest step."""
    next_producer_id: int = NO_PRODUCER_ID
    """While a transaction ends whose epoch is the last: the id that follows it."""
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch before the current one, if its owner may retry with it (KIP-360). Not in the
    log."""

    @property
    def is_ending(self) -> bool:
        """Whether the outcome is decided, and markers are still to be written."""
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no epoch left to assign."""
        return self.producer_epoch >= LAST_ASSIGNED_EPOCH

    @property
    def deadline_ms(self) -> int:
        """When an ongoing transaction times out."""
        return self.started_ms + self.timeout_ms

    def may_become(self, state: TransactionState) -> bool:
        return state in TRANSITIONS[self.state]

    def renewed(
        self, producer_id: int, epoch: int, *, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> "TransactionMetadata":
        """Returns the metadata for the next incarnation of the producer."""
        return self._transitioned(
            TransactionState.EMPTY,
            now_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            started_ms=NOT_STARTED,
        )

    def with_partitions(
        self, partitions: Iterable[TopicPartition], *, client_version: int, now_ms: int
    ) -> "TransactionMetadata":
        """Returns the metadata with more partitions. A transaction begins if there is none."""
        is_ongoing = self.state is TransactionState.ONGOING
        return self._transitioned(
            TransactionState.ONGOING,
            now_ms,
            partitions=self.partitions.union(partitions),
            started_ms=self.started_ms if is_ongoing else now_ms,
            client_version=client_version,
        )

    def ended(
        self, *, committed: bool, client_version: int, next_producer_id: int, now_ms: int
    ) -> "TransactionMetadata":
        """Returns the metadata with the outcome decided: PrepareCommit or PrepareAbort."""
        bump: dict[str, Any] = {}
        if client_version >= EPOCH_BUMP_TRANSACTION_VERSION:
            bump["producer_epoch"] = min(self.producer_epoch + 1, MAX_EPOCH)
            bump["last_producer_epoch"] = self.producer_epoch
            bump["next_producer_id"] = next_producer_id
        return self._transitioned(
            TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT,
            now_ms,
            started_ms=self.started_ms if self.state is TransactionState.ONGOING else now_ms,
            client_version=client_version,
            **bump,
        )

    def fenced(
        self, *, transaction_version: int, next_producer_id: int, now_ms: int
    ) -> "TransactionMetadata":
        """Returns the metadata of an abort that fences the producer by a higher epoch."""
        if transaction_version >= EPOCH_BUMP_TRANSACTION_VERSION:
            return self.ended(
                committed=False,
                client_version=transaction_version,
                next_producer_id=next_producer_id,
                now_ms=now_ms,
            )
        return self._transitioned(
            TransactionState.PREPARE_ABORT,
            now_ms,
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH),
            last_producer_epoch=NO_PRODUCER_EPOCH,
            client_version=0,
        )

    def completed(self, now_ms: int) -> "TransactionMetadata":
        """Returns the metadata after all markers are written."""
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        rotation: dict[str, Any] = {}
        if self.next_producer_id != NO_PRODUCER_ID:
            rotation = {"producer_id": self.next_producer_id, "producer_epoch": 0}
        return self._transitioned(
            TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
            now_ms,
            partitions=frozenset(),
            next_producer_id=NO_PRODUCER_ID,
            **rotation,
        )

    def _transitioned(
        self, state: TransactionState, now_ms: int, **changes: Any
    ) -> "TransactionMetadata":
        assert self.may_become(state), f"{self.transactional_id}: {self.state} to {state}"
        return replace(
            self, state=state, updated_ms=now_ms, previous_producer_id=self.producer_id, **changes
        )


def unknown_transactional_id(transactional_id: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"Transactional id {transactional_id} is not known, or has expired: initialize it again.",
    )


def other_producer_id(current: TransactionMetadata, producer_id: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"The producer of {current.transactional_id} is {current.producer_id}, not {producer_id}.",
    )


def fenced(current: TransactionMetadata, producer_id: int, producer_epoch: int) -> KafkaError:
    return KafkaError(
        ErrorCode.PRODUCER_FENCED,
        f"Producer {producer_id} at epoch {producer_epoch} of {current.transactional_id} was "
        f"replaced: now it is {current.producer_id} at epoch {current.producer_epoch}.",
    )


def concurrent_transactions(current: TransactionMetadata) -> KafkaError:
    return KafkaError(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"The transaction of {current.transactional_id} is still being ended: try again.",
    )


def invalid_state(current: TransactionMetadata, *, committed: bool) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"{current.transactional_id} has no transaction to {'commit' if committed else 'abort'}: "
        f"it is {current.state.title}.",
    )


@dataclass(slots=True, frozen=True)
class TransactionContext:
    """What deciding about transactions needs besides the request and the state."""

    now_ms: int
    image: MetadataImage
    api_version: int = 0
    """Of the request; 0 where there is none."""
    new_producer_id: int = NO_PRODUCER_ID
    """A producer id that nobody has, if the decision may need one."""

    @property
    def transaction_version(self) -> int:
        """The level of `transaction.version` that the cluster has finalized."""
        return self.image.features.get(TRANSACTION_VERSION, 0)
