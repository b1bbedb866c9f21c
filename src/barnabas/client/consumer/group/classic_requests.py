"""The requests of a member of a classic group, and the messages inside of them.

Subscriptions and assignments in JoinGroup and SyncGroup (protocol type "consumer") have their
version as an int16 before them. A newer version begins with the same fields as ours. Assignments
are written as version 0: later versions are the same.
"""

from collections.abc import Iterable, Sequence
from struct import Struct

from barnabas.client.consumer.group.assignors import PartitionAssignor, SubscribedMember
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import PartitionKey, group_by_topic
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)

PROTOCOL_TYPE = "consumer"

_VERSION_PREFIX = Struct(">h")
_MAX_VERSION = ConsumerProtocolSubscription.VERSIONS.max
_ASSIGNMENT_VERSION = 0


class ClassicRequestBuilder:
    """Builds requests with the settings of the member."""

    def __init__(self, settings: ConsumerSettings, assignors: Sequence[PartitionAssignor]) -> None:
        assert settings.group_id is not None
        self._settings = settings
        self._group_id = settings.group_id
        self._assignors = assignors

    def join(
        self,
        member: SubscribedMember,
        last_assignment: tuple[frozenset[PartitionKey], int],
        reason: str | None,
    ) -> JoinGroupRequest:
        """Returns a request that offers every assignor, with the assignor's user data."""
        protocols = [
            JoinGroupRequestProtocol(
                name=assignor.name,
                metadata=write_subscription(member, assignor.user_data(*last_assignment)),
            )
            for assignor in self._assignors
        ]
        return JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._settings.session_timeout_ms,
            rebalance_timeout_ms=self._settings.max_poll_interval_ms,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
            reason=reason,
        )

    def sync(
        self,
        member_id: str,
        generation: int,
        protocol_name: str | None,
        assignments: list[SyncGroupRequestAssignment],
    ) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self._group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=self._settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=protocol_name,
            assignments=assignments,
        )

    def heartbeat(self, member_id: str, generation: int) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self._group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=self._settings.group_instance_id,
        )

    def leave(self, member_id: str, reason: str) -> LeaveGroupRequest:
        return LeaveGroupRequest(
            group_id=self._group_id, members=[MemberIdentity(member_id=member_id, reason=reason)]
        )


def write_subscription(member: SubscribedMember, user_data: bytes | None) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=sorted(member.topics),
        user_data=user_data,
        owned_partitions=_group_partitions(member.owned),
        generation_id=member.generation,
        rack_id=member.rack,
    )
    return _VERSION_PREFIX.pack(_MAX_VERSION) + message.write(_MAX_VERSION)


def read_subscription(member: JoinGroupResponseMember) -> SubscribedMember:
    """Returns a member of the group. Raises ProtocolViolation if its metadata is unreadable."""
    version = _version(member.metadata)
    message, _ = ConsumerProtocolSubscription.reader(version)(member.metadata, _VERSION_PREFIX.size)
    return SubscribedMember(
        member.member_id,
        frozenset(message.topics),
        member.group_instance_id,
        frozenset(_flatten(message.owned_partitions)),
        message.generation_id,
        message.rack_id,
        None if message.user_data is None else bytes(message.user_data),
    )


def write_assignment(partitions: Iterable[PartitionKey]) -> bytes:
    message = ConsumerProtocolAssignment(assigned_partitions=_group_partitions(partitions))
    return _VERSION_PREFIX.pack(_ASSIGNMENT_VERSION) + message.write(_ASSIGNMENT_VERSION)


def read_assignment(data: bytes) -> frozenset[PartitionKey]:
    """Returns the assigned partitions; none if the assignment is empty."""
    if not data:
        return frozenset()
    version = _version(data)
    message, _ = ConsumerProtocolAssignment.reader(version)(data, _VERSION_PREFIX.size)
    return frozenset(_flatten(message.assigned_partitions))


def _version(data: bytes) -> int:
    if len(data) < _VERSION_PREFIX.size or (version := _VERSION_PREFIX.unpack_from(data)[0]) < 0:
        raise ProtocolViolation("a message of the consumer protocol begins with its version")
    return int(min(version, _MAX_VERSION))


def _group_partitions(partitions: Iterable[PartitionKey]) -> list[TopicPartition]:
    return [
        TopicPartition(topic=topic, partitions=indexes)
        for topic, indexes in group_by_topic(sorted(partitions)).items()
    ]


def _flatten(topics: Iterable[TopicPartition]) -> Iterable[PartitionKey]:
    return ((entry.topic, index) for entry in topics for index in entry.partitions)
