"""What the transaction coordinator needs from the rest of the broker."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.ports import TransactionMarker
from barnabas.coordinator.transactions.metadata import TopicPartition
from barnabas.wire.errors import ErrorCode

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


class ProducerIdBlocks(Protocol):
    """Allocates ranges of producer ids that no other broker has."""

    def allocate(self) -> PendingResponse[range]:
        """Returns the next block. The response fails if none can be allocated now."""
