"""A coordinator of all types of groups, and requests of consumers of both protocols."""

import struct
from collections.abc import Iterable, Mapping
from typing import Any

from tests.coordinator.environment import CoordinatorEnvironment, Settings, code_of

from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.context import GroupClient
from barnabas.coordinator.groups.group import Group
from barnabas.coordinator.groups.state import GROUP_RECORDS, GroupCoordinatorState
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import consumer_groups as wire
from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from barnabas.wire.schema import Message

GROUP = "g"
SESSION_MS = 10_000
REBALANCE_MS = 20_000

Partitions = Mapping[str, Iterable[int]]


class MigrationHarness:
    """One shard, called as the server calls it: the coordinator finds out which protocol a group
    uses."""

    def __init__(self, topics: Mapping[str, int] | None = None, **settings: Any) -> None:
        defaults = {
            "group_initial_rebalance_delay_ms": 0,
            "group_consumer_assignment_interval_ms": 0,
        }
        self.environment = CoordinatorEnvironment(Settings(**defaults | settings))
        for name, partitions in ({"t": 4} if topics is None else topics).items():
            self.environment.create_topic(name, partitions)
        self.groups: GroupCoordinatorState = self.environment.lead_groups()

    def lead_again(self) -> None:
        """Fail over: everything is loaded from the log."""
        self.groups = self.environment.lead_groups()

    def advance(self, delay_ms: int) -> None:
        self.environment.advance(delay_ms)

    @property
    def group(self) -> Group:
        return self.groups.by_id[GROUP]

    @property
    def consumer_group(self) -> ConsumerGroup:
        assert isinstance(self.group, ConsumerGroup)
        return self.group

    @property
    def classic_group(self) -> ClassicGroup:
        assert isinstance(self.group, ClassicGroup)
        return self.group

    @property
    def written(self) -> list[CoordinatorRecord]:
        return self.environment.log.records(GROUP_RECORDS)

    def send(self, request: Message, version: int | None = None) -> PendingResponse[Any]:
        newest = type(request).STABLE_VERSIONS.max
        client = GroupClient("client", "/10.0.0.1", newest if version is None else version)
        coordinator = self.environment.coordinator
        match request:
            case JoinGroupRequest():
                return coordinator.join(request, client)
            case SyncGroupRequest():
                return coordinator.sync(request, client)
            case HeartbeatRequest():
                return coordinator.heartbeat(request, client)
            case LeaveGroupRequest():
                return coordinator.leave(request, client)
            case ConsumerGroupHeartbeatRequest():
                return coordinator.consumer_heartbeat(request, client)
        raise AssertionError(request)

    # Short methods for requests

    def join(
        self,
        member_id: str = "",
        *,
        topics: Iterable[str] = ("t",),
        owned: Partitions | None = None,
        generation: int = -1,
        protocols: Iterable[str] = ("range",),
        metadata: bytes | None = None,
        instance: str | None = None,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        version: int = 9,
    ) -> PendingResponse[Any]:
        response = subscription(topics, owned or {}, generation) if metadata is None else metadata
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=response) for name in protocols
            ],
        )
        return self.send(request, version)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance: str | None = None,
        protocol: str | None = "range",
        protocol_type: str | None = "consumer",
        version: int = 5,
    ) -> PendingResponse[Any]:
        assigned = (assignments or {}).items()
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=m, assignment=a) for m, a in assigned
            ],
        )
        return self.send(request, version)

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
        )
        return code_of(self.send(request))

    def leave(self, *members: tuple[str, str | None]) -> list[ErrorCode]:
        named = [MemberIdentity(member_id=m, group_instance_id=i) for m, i in members]
        response = self.send(LeaveGroupRequest(group_id=GROUP, members=named)).result()
        return [ErrorCode(each.error_code) for each in response.members]

    def consumer_heartbeat(
        self,
        member_id: str,
        epoch: int = 0,
        *,
        topics: Iterable[str] | None = ("t",),
        owned: Mapping[bytes, Iterable[int]] | None = None,
        instance: str | None = None,
        regex: str | None = None,
    ) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat of the consumer protocol, all of it said."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=instance,
            rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=None if topics is None else list(topics),
            subscribed_topic_regex=regex,
            topic_partitions=[
                wire.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in (owned or {}).items()
            ],
        )
        return self.send(request).result()

    @staticmethod
    def leaving(member_id: str) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=-1)

    def stable_classic(self, *assignments: Partitions, **terms: Any) -> list[str]:
        """A stable classic group whose members got these partitions; their ids."""
        ids = [self.join(**terms).result().member_id for _ in assignments]
        joins = [self.join(member_id, **terms) for member_id in ids]
        self.advance(0)
        generation = self.classic_group.generation
        if not all(response.is_done and not response.result().error_code for response in joins):
            joins = [self.join(member_id, **terms) for member_id in ids]
            generation = joins[0].result().generation_id
        assigned = dict(zip(ids, map(assignment, assignments), strict=True))
        leader = self.classic_group.leader
        protocol = self.classic_group.protocol
        for member_id in sorted(ids, key=lambda each: each != leader):
            handed_in = assigned if member_id == leader else None
            self.sync(
                member_id,
                generation,
                handed_in,
                protocol=protocol,
                protocol_type=self.classic_group.protocol_type,
            ).result()
        return ids

    def topic_id(self, name: str) -> bytes:
        topic = self.environment.image.topics.by_name(name)
        assert topic is not None
        return topic.topic_id


def subscription(
    topics: Iterable[str], owned: Partitions | None = None, generation: int = -1, version: int = 3
) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=list(topics), owned_partitions=_named(owned or {}), generation_id=generation
    )
    return struct.pack(">h", version) + message.write(version)


def assignment(partitions: Partitions, version: int = 3, user_data: bytes | None = None) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=_named(partitions), user_data=user_data
    )
    return struct.pack(">h", version) + message.write(version)


def read_assignment(embedded: bytes) -> dict[str, set[int]]:
    (version,) = struct.unpack_from(">h", embedded)
    message, _ = ConsumerProtocolAssignment.reader(version)(embedded, 2)
    return {each.topic: set(each.partitions) for each in message.assigned_partitions}


def _named(partitions: Partitions) -> list[TopicPartition]:
    return [
        TopicPartition(topic=topic, partitions=sorted(each)) for topic, each in partitions.items()
    ]
