"""A consumer's group: subscribes, joins, takes and gives up partitions, commits, leaves."""

from collections.abc import Collection, Mapping, Sequence

from barnabas.client.cluster import Cluster, Deadline
from barnabas.client.consumer.group.classic import ClassicMember
from barnabas.client.consumer.group.consumer import ConsumerMember
from barnabas.client.consumer.group.group_offsets import NOT_A_MEMBER, GroupOffsets
from barnabas.client.consumer.group.member import RebalanceListener
from barnabas.client.consumer.group.membership_manager import MembershipManager
from barnabas.client.consumer.group.subscription import Subscription
from barnabas.client.errors import KafkaError, fail
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import ConsumerGroupMetadata, TopicPartition, TopicPartitionTuple

_MEMBERS = {"classic": ClassicMember, "consumer": ConsumerMember}


class ConsumerCoordinator:
    """The group of `settings.group_id`, as one consumer that may be a member of it sees it."""

    def __init__(
        self, cluster: Cluster, settings: ConsumerSettings, assignee: RebalanceListener
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._assignee = assignee
        self._membership: MembershipManager | None = None  # from the first subscription on
        self._offsets = GroupOffsets(cluster, settings, lambda: self.metadata)

    def subscribe(self, topics: Sequence[str]) -> None:
        """Join for these topics instead of the last ones; `^...` is a pattern of names."""
        subscription = Subscription.parse(topics)
        if self._membership is None:
            if not self._settings.group_id:
                fail(KafkaError._UNKNOWN_GROUP, "to subscribe is to join a group: set group.id")
            member = _MEMBERS[self._settings.group_protocol](self._settings)
            self._membership = MembershipManager(
                self._cluster, self._settings, self._assignee, member
            )
        self._membership.subscribe(subscription)

    async def unsubscribe(self) -> None:
        """Give back what is assigned, then leave."""
        if self._membership is not None:
            await self._membership.leave()

    def on_poll(self) -> None:
        """The user polls: max.poll.interval.ms counts from here."""
        if self._membership is not None:
            self._membership.on_poll()

    @property
    def metadata(self) -> ConsumerGroupMetadata:
        """Who this consumer is in its group, for those who commit in its name."""
        group_id, instance_id = self._settings.group_id or "", self._settings.group_instance_id
        if self._membership is None:
            return ConsumerGroupMetadata(group_id, NOT_A_MEMBER, "", instance_id)
        member = self._membership.member
        return ConsumerGroupMetadata(group_id, member.epoch, member.member_id, instance_id)

    @property
    def member_id(self) -> str:
        return self.metadata.member_id

    async def commit(
        self, offsets: Mapping[TopicPartitionTuple, TopicPartition], *, deadline: Deadline
    ) -> dict[TopicPartitionTuple, KafkaError | None]:
        """Commit these, as a member or (without a subscription) as nobody in particular."""
        return await self._offsets.commit(offsets, deadline)

    async def committed(
        self, partitions: Collection[TopicPartitionTuple], *, deadline: Deadline
    ) -> dict[TopicPartitionTuple, TopicPartition]:
        """What the group has committed; OFFSET_INVALID where that is nothing."""
        return await self._offsets.committed(partitions, deadline)

    async def close(self) -> None:
        """Give back what is assigned and leave, unless it is a static member, which stays."""
        if self._membership is not None:
            await self._membership.leave()
            self._membership.stop()
