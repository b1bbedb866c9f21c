"""What the transaction coordinator needs from the house around it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.ports import TransactionMarker
from barnabas.coordinator.transactions.metadata import TopicPartition
from barnabas.wire.errors import ErrorCode

PartitionErrorCodes = dict[TopicPartition, ErrorCode]
"""What came of something, by partition."""


class TransactionParticipants(Protocol):
    """The partitions that take part in transactions, whoever leads them."""

    def by_leader(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[int, Sequence[TopicPartition]]:
        """Which broker is to be told of which of them; who has no leader now is left out."""

    def write_markers(
        self,
        leader: int,
        marker: TransactionMarker,
        partitions: Sequence[TopicPartition],
        is_wanted: Callable[[], bool],
    ) -> PendingResponse[PartitionErrorCodes]:
        """Have the leader write the marker into each; what came of it by partition.

        One that is left out, and all if the answer fails, are told again: so an answer must come.
        `is_wanted` is asked right before the marker leaves; where it is not, nobody answers.
        """


class ProducerIdBlocks(Protocol):
    """Gives out ranges of producer ids that nobody else has."""

    def allocate(self) -> PendingResponse[range]:
        """The next block; the answer fails if there is none to be had now."""
