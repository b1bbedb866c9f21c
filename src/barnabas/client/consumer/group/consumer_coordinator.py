"""The client side of a group: subscription, membership and committed offsets."""

from collections.abc import Collection, Mapping, Sequence

from barnabas.client.cluster import ClusterClient, Deadline
from barnabas.client.consumer.group.classic_member import ClassicGroupMembership
from barnabas.client.consumer.group.consumer_member import ConsumerGroupMembership
from barnabas.client.consumer.group.group_offsets import NOT_A_MEMBER, GroupOffsets
from barnabas.client.consumer.group.membership import RebalanceListener
from barnabas.client.consumer.group.membership_manager import MembershipManager
from barnabas.client.consumer.group.subscription import Subscription
from barnabas.client.errors import KafkaError
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import ConsumerGroupMetadata, PartitionKey, TopicPartition

_MEMBERS = {"classic": ClassicGroupMembership, "consumer": ConsumerGroupMembership}


class ConsumerCoordinator:
    """One consumer's part in the group of `settings.group_id`."""

    def __init__(
        self, cluster: ClusterClient, settings: ConsumerSettings, listener: RebalanceListener
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._listener = listener
        self._manager: MembershipManager | None = None  # from the first subscription on
        self._offsets = GroupOffsets(cluster, settings, lambda: self.metadata)

    def subscribe(self, topics: Sequence[str]) -> None:
        """Joins for these topics instead of the last ones; `^...` is a regular expression."""
        subscription = Subscription.parse(topics)
        if self._manager is None:
            member = _MEMBERS[self._settings.group_protocol](self._settings)
            self._manager = MembershipManager(self._cluster, self._settings, self._listener, member)
        self._manager.subscribe(subscription)

    async def unsubscribe(self) -> None:
        """Revokes all partitions, then leaves."""
        if self._manager is not None:
            await self._manager.leave()

    def on_poll(self) -> None:
        """The user has polled: max.poll.interval.ms starts again."""
        if self._manager is not None:
            self._manager.on_poll()

    @property
    def metadata(self) -> ConsumerGroupMetadata:
        """The member id and epoch of this consumer, for commits in its name."""
        group_id, instance_id = self._settings.group_id or "", self._settings.group_instance_id
        if self._manager is None:
            return ConsumerGroupMetadata(group_id, NOT_A_MEMBER, "", instance_id)
        member = self._manager.member
        return ConsumerGroupMetadata(group_id, member.epoch, member.member_id, instance_id)

    @property
    def member_id(self) -> str:
        return self.metadata.member_id

    async def commit(
        self, offsets: Mapping[PartitionKey, TopicPartition], *, deadline: Deadline
    ) -> dict[PartitionKey, KafkaError | None]:
        """Commits offsets, as a member or (without a subscription) for the group alone."""
        return await self._offsets.commit(offsets, deadline)

    async def committed(
        self, partitions: Collection[PartitionKey], *, deadline: Deadline
    ) -> dict[PartitionKey, TopicPartition]:
        """Returns the committed offsets of the group; OFFSET_INVALID if there is none."""
        return await self._offsets.committed(partitions, deadline)

    async def close(self) -> None:
        """Revokes all partitions and leaves, unless it is a static member, which stays."""
        if self._manager is not None:
            await self._manager.leave()
            self._manager.stop()
