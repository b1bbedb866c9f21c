"""Adapter for groups of aiokafka."""

from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, OffsetAndMetadata, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from tests.conformance.clients.aio import AiokafkaClient, raise_for_code
from tests.conformance.clients.group_client import (
    POLL_S,
    Committed,
    ConsumedRecord,
    ConsumerOptions,
    GroupClient,
    GroupDescription,
    GroupListing,
    Member,
    MemberDescription,
    PartitionKey,
    Protocol,
    isolation_level_name,
)

ASSIGNORS = {
    Protocol.RANGE: RangePartitionAssignor,
    Protocol.ROUND_ROBIN: RoundRobinPartitionAssignor,
    Protocol.STICKY: StickyPartitionAssignor,
}


class AiokafkaMember(Member, ConsumerRebalanceListener):
    """A member that rebalances on the client's event loop; only records need a poll."""

    def __init__(self, client: "AiokafkaGroups", group: str, settings: Mapping[str, Any]) -> None:
        self._run = client._run
        self.assignment_changes = 0
        self._group = group
        self.consumer: AIOKafkaConsumer = self._run(self._make(client.bootstrap, settings))

    def start(
        self, topics: Sequence[str] = (), topic_partitions: Sequence[PartitionKey] = ()
    ) -> None:
        async def start() -> None:
            if topic_partitions:
                self.consumer.assign(
                    [TopicPartition(*topic_partition) for topic_partition in topic_partitions]
                )
            elif topics[0].startswith("^"):
                self.consumer.subscribe(pattern=topics[0], listener=self)
            else:
                self.consumer.subscribe(list(topics), listener=self)
            await self.consumer.start()

        self._run(start())

    def poll(self) -> list[ConsumedRecord]:
        polled = self._run(self.consumer.getmany(timeout_ms=int(POLL_S * 1000)))
        return [
            ConsumedRecord(PartitionKey(*topic_partition), record.offset, record.value)
            for topic_partition, records in polled.items()
            for record in records
        ]

    def assignment(self) -> set[PartitionKey]:
        return {PartitionKey(*topic_partition) for topic_partition in self.consumer.assignment()}

    def commit(self, offsets: Mapping[PartitionKey, Committed] | None = None) -> None:
        self._run(self.consumer.commit(offsets and with_offsets(offsets)))

    def committed(self, topic_partition: PartitionKey) -> Committed | None:
        """Returns the offset without metadata, which aiokafka does not return."""
        offset = self._run(self.consumer.committed(TopicPartition(*topic_partition)))
        return None if offset is None else Committed(offset)

    def position(self, topic_partition: PartitionKey) -> int:
        return self._run(self.consumer.position(TopicPartition(*topic_partition)))

    def seek(self, topic_partition: PartitionKey, offset: int) -> None:
        async def seek() -> None:
            self.consumer.seek(TopicPartition(*topic_partition), offset)

        self._run(seek())

    def group_metadata(self) -> str:
        """Returns the group id, the only group metadata that aiokafka sends."""
        return self._group

    def leave(self) -> None:
        self._run(self.consumer.stop())

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.assignment_changes += 1

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.assignment_changes += 1

    async def _make(self, bootstrap: str, settings: Mapping[str, Any]) -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=self._group,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
            metadata_max_age_ms=200,
            heartbeat_interval_ms=100,
            session_timeout_ms=6_000,
            **settings,
        )


class AiokafkaGroups(AiokafkaClient, GroupClient):
    assignors = tuple(ASSIGNORS)
    protocols = (Protocol.ROUND_ROBIN,)

    def join(self, group: str, topics: Sequence[str], options: ConsumerOptions) -> Member:
        settings: dict[str, Any] = {
            "partition_assignment_strategy": [ASSIGNORS[options.protocol]],
            "group_instance_id": options.instance_id,
            "enable_auto_commit": options.auto_commit,
            "auto_commit_interval_ms": 100,
            "isolation_level": isolation_level_name(options.reads_committed),
        }
        member = AiokafkaMember(self, group, settings)
        member.start(topics)
        return member

    def assigned_consumer(
        self,
        group: str,
        topic_partitions: Sequence[PartitionKey],
        *,
        reads_committed: bool = False,
    ) -> Member:
        settings = {
            "enable_auto_commit": False,
            "isolation_level": isolation_level_name(reads_committed),
        }
        member = AiokafkaMember(self, group, settings)
        member.start(topic_partitions=topic_partitions)
        return member

    def groups(self) -> dict[str, GroupListing]:
        listed = self._run(self._admin.list_consumer_groups())
        return {group: GroupListing(None, protocol_type) for group, protocol_type, *_ in listed}

    def describe_group(self, group: str) -> GroupDescription:
        (response,) = self._run(self._admin.describe_consumer_groups([group]))
        code, _, state, _, assignor, members, *_ = response.groups[0]
        raise_for_code(code)
        return GroupDescription(state, assignor, [describe(member) for member in members])

    def group_offsets(self, group: str) -> dict[PartitionKey, Committed]:
        offsets = self._run(self._admin.list_consumer_group_offsets(group))
        return {
            PartitionKey(*topic_partition): Committed(at.offset, at.metadata)
            for topic_partition, at in offsets.items()
        }


def describe(member: Any) -> MemberDescription:
    member_id, client_id, _, _, assigned, *_ = member
    topic_partitions: list[PartitionKey] = []
    if assigned:
        decoded = ConsumerProtocolMemberAssignment.decode(assigned)
        topic_partitions = [
            PartitionKey(*topic_partition) for topic_partition in decoded.partitions()
        ]
    return MemberDescription(member_id, client_id, None, frozenset(topic_partitions))


def with_offsets(
    offsets: Mapping[PartitionKey, Committed],
) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        TopicPartition(*topic_partition): OffsetAndMetadata(committed.offset, committed.metadata)
        for topic_partition, committed in offsets.items()
    }
