"""What a state machine decides on a request: the records to write, and what to answer."""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import KafkaError

R = TypeVar("R")


class ProducerStamp(NamedTuple):
    """The transactional producer in whose name records are written."""

    producer_id: int
    producer_epoch: int


class Decision(NamedTuple, Generic[R]):
    """The outcome of deciding. Nothing of it holds before its records are in the log.

    A plain `response` is answered once the records, and all that was written before them, are
    committed. A response that waits for more than that is an Answer, which the state machine
    completes itself; `committed` and `refused` tell it how the write went.
    """

    response: R | PendingResponse[R]
    records: Sequence[CoordinatorRecord] = ()
    committed: Callable[[], None] | None = None
    """Called when the records are committed."""
    refused: Callable[[KafkaError], None] | None = None
    """Called if they cannot be appended or are not committed in time."""
    is_replayed: bool = True
    """Whether the records change the state by being replayed. Where the state has changed
    already (a classic group lives in memory), they are for who loads the log later."""
    is_atomic: bool = True
    """Whether all records must be in one batch. Tombstones by the thousand need not."""
    producer: ProducerStamp | None = None
    """Set if the records belong to a transaction, pending until its end."""
