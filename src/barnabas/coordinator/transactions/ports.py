"""What the transaction coordinator needs from the house around it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from barnabas.coordinator.answer import Answer
from barnabas.coordinator.marker import Marker
from barnabas.coordinator.transactions.metadata import TopicPartition
from barnabas.wire.errors import ErrorCode

Outcomes = dict[TopicPartition, ErrorCode]
"""What came of something, by partition."""


class Participants(Protocol):
    """The partitions that take part in transactions, whoever leads them."""

    def by_leader(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[int, Sequence[TopicPartition]]:
        """Which broker is to be told of which of them; who has no leader now is left out."""

    def end(
        self,
        leader: int,
        marker: Marker,
        partitions: Sequence[TopicPartition],
        is_wanted: Callable[[], bool],
    ) -> Answer[Outcomes]:
        """Have the leader write the marker into each; what came of it by partition.

        One that is left out, and all if the answer fails, are told again: so an answer must come.
        `is_wanted` is asked right before the marker leaves; where it is not, nobody answers.
        """


class ProducerIdBlocks(Protocol):
    """Gives out ranges of producer ids that nobody else has."""

    def allocate(self) -> Answer[range]:
        """The next block; the answer fails if there is none to be had now."""
