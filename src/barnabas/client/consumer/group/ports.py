"""What membership in a group needs of the consumer that is the member."""

from collections.abc import Collection
from typing import Protocol

from barnabas.client.errors import KafkaError
from barnabas.client.values import TopicPartitionTuple


class Assignee(Protocol):
    """Who partitions are given to and taken from.

    One call at a time: the next comes when the last has returned, and that is when the user's
    callback has run and the partitions are fetched, or are no longer.
    """

    async def assigned(self, partitions: Collection[TopicPartitionTuple], *, incremental: bool) -> None:
        """These are its own now: besides what it has, or (not incremental) instead of that."""

    async def revoked(self, partitions: Collection[TopicPartitionTuple], *, incremental: bool) -> None:
        """These have to be given back; until this returns nobody else has them."""

    async def lost(self, partitions: Collection[TopicPartitionTuple]) -> None:
        """These are somebody else's by now: what was consumed of them cannot be committed."""

    def told(self, error: KafkaError) -> None:
        """Something the user should hear of."""
