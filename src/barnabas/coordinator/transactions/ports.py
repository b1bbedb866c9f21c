"""What the transaction coordinator needs from the house around it."""

from collections.abc import Sequence
from typing import Protocol

from barnabas.coordinator.answer import Answer
from barnabas.coordinator.marker import Marker
from barnabas.coordinator.transactions.metadata import TopicPartition
from barnabas.wire.errors import ErrorCode

Outcomes = dict[TopicPartition, ErrorCode]
"""What came of something, by partition."""


class Participants(Protocol):
    """The partitions that take part in transactions, whoever leads them."""

    def end(self, marker: Marker, partitions: Sequence[TopicPartition]) -> Answer[Outcomes]:
        """Write the marker into each; what came of it by partition.

        One that is left out, and all if the answer fails, are told again: so an answer must come,
        and with it the promise that what did not arrive will not arrive later.
        """


class ProducerIdBlocks(Protocol):
    """Gives out ranges of producer ids that nobody else has."""

    def allocate(self) -> Answer[range]:
        """The next block; the answer fails if there is none to be had now."""
