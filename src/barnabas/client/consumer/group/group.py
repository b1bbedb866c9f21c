"""A consumer's group: subscribes, joins, takes and gives up partitions, commits, leaves."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.client.consumer.group.ports import Assignee
from barnabas.client.errors import KafkaError
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import ConsumerGroupMetadata, Partition, TopicPartition

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster, Deadline


class Group:
    """The group of `settings.group_id`, as one consumer that may be a member of it sees it."""

    def __init__(self, cluster: "Cluster", settings: ConsumerSettings, assignee: Assignee) -> None:
        self._cluster = cluster
        self._settings = settings
        self._assignee = assignee

    def subscribe(self, topics: Sequence[str]) -> None:
        """Join for these topics instead of the last ones; `^...` is a pattern of names."""
        raise NotImplementedError

    async def unsubscribe(self) -> None:
        """Give back what is assigned, then leave."""
        raise NotImplementedError

    def polled(self) -> None:
        """The user polls: max.poll.interval.ms counts from here."""
        raise NotImplementedError

    @property
    def metadata(self) -> ConsumerGroupMetadata:
        raise NotImplementedError

    @property
    def member_id(self) -> str:
        raise NotImplementedError

    async def commit(
        self, offsets: Mapping[Partition, TopicPartition], *, deadline: "Deadline"
    ) -> dict[Partition, KafkaError | None]:
        """Commit these, as a member or (without a subscription) as nobody in particular."""
        raise NotImplementedError

    async def committed(
        self, partitions: Collection[Partition], *, deadline: "Deadline"
    ) -> dict[Partition, TopicPartition]:
        """What the group has committed; OFFSET_INVALID where that is nothing."""
        raise NotImplementedError

    async def close(self) -> None:
        """Give back what is assigned and leave, unless it is a static member, which stays."""
        raise NotImplementedError
