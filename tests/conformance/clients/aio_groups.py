"""aiokafka in groups."""

from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, OffsetAndMetadata, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from tests.conformance.clients.aio import AiokafkaClient, refuse
from tests.conformance.clients.group_client import (
    POLL_S,
    Committed,
    GroupClient,
    GroupDescription,
    Joining,
    Listed,
    Member,
    MemberDescription,
    Place,
    Protocol,
    Taken,
    isolation,
)

ASSIGNORS = {
    Protocol.RANGE: RangePartitionAssignor,
    Protocol.ROUND_ROBIN: RoundRobinPartitionAssignor,
    Protocol.STICKY: StickyPartitionAssignor,
}


class AiokafkaMember(Member, ConsumerRebalanceListener):
    """It goes on rebalancing by itself on the client's loop; only records wait for a poll."""

    def __init__(self, client: "AiokafkaGroups", group: str, settings: Mapping[str, Any]) -> None:
        self._run = client._run
        self.changes = 0
        self._group = group
        self.consumer: AIOKafkaConsumer = self._run(self._make(client.bootstrap, settings))

    def start(self, topics: Sequence[str] = (), places: Sequence[Place] = ()) -> None:
        async def start() -> None:
            if places:
                self.consumer.assign([TopicPartition(*place) for place in places])
            elif topics[0].startswith("^"):
                self.consumer.subscribe(pattern=topics[0], listener=self)
            else:
                self.consumer.subscribe(list(topics), listener=self)
            await self.consumer.start()

        self._run(start())

    def poll(self) -> list[Taken]:
        polled = self._run(self.consumer.getmany(timeout_ms=int(POLL_S * 1000)))
        return [
            Taken(Place(*place), record.offset, record.value)
            for place, records in polled.items()
            for record in records
        ]

    def assignment(self) -> set[Place]:
        return {Place(*place) for place in self.consumer.assignment()}

    def commit(self, offsets: Mapping[Place, Committed] | None = None) -> None:
        self._run(self.consumer.commit(offsets and with_offsets(offsets)))

    def committed(self, place: Place) -> Committed | None:
        """aiokafka gives the offset without its metadata."""
        offset = self._run(self.consumer.committed(TopicPartition(*place)))
        return None if offset is None else Committed(offset)

    def position(self, place: Place) -> int:
        return self._run(self.consumer.position(TopicPartition(*place)))

    def seek(self, place: Place, offset: int) -> None:
        async def seek() -> None:
            self.consumer.seek(TopicPartition(*place), offset)

        self._run(seek())

    def identity(self) -> str:
        """aiokafka sends the group's name only."""
        return self._group

    def leave(self) -> None:
        self._run(self.consumer.stop())

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.changes += 1

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.changes += 1

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

    def join(self, group: str, topics: Sequence[str], joining: Joining) -> Member:
        settings: dict[str, Any] = {
            "partition_assignment_strategy": [ASSIGNORS[joining.protocol]],
            "group_instance_id": joining.instance_id,
            "enable_auto_commit": joining.commits_by_itself,
            "auto_commit_interval_ms": 100,
            "isolation_level": isolation(joining.reads_committed),
        }
        member = AiokafkaMember(self, group, settings)
        member.start(topics)
        return member

    def consumer_of(
        self, group: str, places: Sequence[Place], *, reads_committed: bool = False
    ) -> Member:
        settings = {
            "enable_auto_commit": False,
            "isolation_level": isolation(reads_committed),
        }
        member = AiokafkaMember(self, group, settings)
        member.start(places=places)
        return member

    def groups(self) -> dict[str, Listed]:
        listed = self._run(self._admin.list_consumer_groups())
        return {group: Listed(None, protocol_type) for group, protocol_type, *_ in listed}

    def describe_group(self, group: str) -> GroupDescription:
        (answer,) = self._run(self._admin.describe_consumer_groups([group]))
        code, _, state, _, assignor, members, *_ = answer.groups[0]
        refuse(code)
        return GroupDescription(state, assignor, [describe(member) for member in members])

    def group_offsets(self, group: str) -> dict[Place, Committed]:
        found = self._run(self._admin.list_consumer_group_offsets(group))
        return {Place(*place): Committed(at.offset, at.metadata) for place, at in found.items()}


def describe(member: Any) -> MemberDescription:
    member_id, client_id, _, _, assigned, *_ = member
    places: list[Place] = []
    if assigned:
        decoded = ConsumerProtocolMemberAssignment.decode(assigned)
        places = [Place(*place) for place in decoded.partitions()]
    return MemberDescription(member_id, client_id, None, frozenset(places))


def with_offsets(offsets: Mapping[Place, Committed]) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        TopicPartition(*place): OffsetAndMetadata(committed.offset, committed.metadata)
        for place, committed in offsets.items()
    }
