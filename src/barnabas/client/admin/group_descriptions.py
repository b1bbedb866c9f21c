"""Listings and descriptions of consumer groups, and their conversion from both describe APIs."""

from dataclasses import dataclass, field
from enum import Enum
from struct import Struct

from barnabas.client.admin.model import (
    AclOperation,
    ConsumerGroupState,
    ConsumerGroupType,
    Node,
    as_enum,
    as_operations,
    operations_from_bits,
)
from barnabas.client.errors import KafkaError, KafkaException, broker_error
from barnabas.client.values import TopicPartition
from barnabas.wire.errors import ErrorCode, ProtocolViolation
from barnabas.wire.messages import consumer_groups, groups
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolAssignment

WIRE_NAMES: dict[Enum, str] = {
    ConsumerGroupState.UNKNOWN: "Unknown",
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.DEAD: "Dead",
    ConsumerGroupState.EMPTY: "Empty",
    ConsumerGroupState.ASSIGNING: "Assigning",
    ConsumerGroupState.RECONCILING: "Reconciling",
    ConsumerGroupType.UNKNOWN: "Unknown",
    ConsumerGroupType.CONSUMER: "consumer",
    ConsumerGroupType.CLASSIC: "classic",
}
"""States and types as the protocol spells them."""

_STATES = {WIRE_NAMES[state]: state for state in ConsumerGroupState}
_TYPES = {WIRE_NAMES[kind]: kind for kind in ConsumerGroupType}
_VERSION = Struct(">h")


@dataclass(slots=True, eq=False)
class ConsumerGroupListing:
    """A group in a listing; a simple group only commits offsets, and has no members."""

    group_id: str
    is_simple_consumer_group: bool
    state: ConsumerGroupState | None = None
    type: ConsumerGroupType | None = None

    def __post_init__(self) -> None:
        if self.state is not None:
            self.state = as_enum(self.state, ConsumerGroupState)
        if self.type is not None:
            self.type = as_enum(self.type, ConsumerGroupType)


@dataclass(slots=True, eq=False)
class ListConsumerGroupsResult:
    """The groups that brokers listed, and the errors of brokers that did not list theirs."""

    valid: list[ConsumerGroupListing] = field(default_factory=list)
    errors: list[KafkaException] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class MemberAssignment:
    """The partitions of one member."""

    topic_partitions: list[TopicPartition]

    def __post_init__(self) -> None:
        self.topic_partitions = self.topic_partitions or []


@dataclass(slots=True, eq=False)
class MemberDescription:
    """A member with its assignment, and in the consumer protocol its target assignment.

    In that protocol it has an epoch, and `upgraded` says whether the member uses it itself.
    """

    member_id: str
    client_id: str
    host: str
    assignment: MemberAssignment
    group_instance_id: str | None = None
    target_assignment: MemberAssignment | None = None
    member_epoch: int | None = None
    upgraded: bool | None = None


@dataclass(slots=True, eq=False)
class ConsumerGroupDescription:
    """A group and its members; epochs are None in the classic protocol."""

    group_id: str
    is_simple_consumer_group: bool
    members: list[MemberDescription]
    partition_assignor: str
    state: ConsumerGroupState | None
    coordinator: Node
    authorized_operations: list[AclOperation] | None = None
    type: ConsumerGroupType = ConsumerGroupType.UNKNOWN
    group_epoch: int | None = None
    target_assignment_epoch: int | None = None

    def __post_init__(self) -> None:
        self.authorized_operations = as_operations(self.authorized_operations)
        if self.state is not None:
            self.state = as_enum(self.state, ConsumerGroupState)
        self.type = as_enum(self.type, ConsumerGroupType)


def parse_state(name: str) -> ConsumerGroupState:
    return _STATES.get(name, ConsumerGroupState.UNKNOWN)


def parse_type(name: str) -> ConsumerGroupType:
    return _TYPES.get(name.lower(), ConsumerGroupType.UNKNOWN)


def describe_consumer_group(
    group: consumer_groups.DescribedGroup, coordinator: Node
) -> ConsumerGroupDescription | KafkaError:
    """Returns the description of a group of the consumer protocol (KIP-848)."""
    if group.error_code:
        return broker_error(group.error_code, group.error_message)
    members = [
        MemberDescription(
            member.member_id,
            member.client_id,
            member.client_host,
            _assignment(member.assignment),
            member.instance_id,
            _assignment(member.target_assignment),
            member.member_epoch,
            None if member.member_type < 0 else member.member_type == 1,
        )
        for member in group.members
    ]
    return ConsumerGroupDescription(
        group.group_id,
        False,
        members,
        group.assignor_name,
        parse_state(group.group_state),
        coordinator,
        operations_from_bits(group.authorized_operations),
        ConsumerGroupType.CONSUMER,
        group.group_epoch,
        group.assignment_epoch,
    )


def describe_classic_group(
    group: groups.DescribedGroup, coordinator: Node
) -> ConsumerGroupDescription | KafkaError:
    """Returns the description of a group of the classic protocol, or of a simple group."""
    state = parse_state(group.group_state)
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        state = ConsumerGroupState.DEAD
    elif group.error_code:
        return broker_error(group.error_code, group.error_message)
    members = [
        MemberDescription(
            member.member_id,
            member.client_id,
            member.client_host,
            _classic_assignment(member.member_assignment),
            member.group_instance_id,
        )
        for member in group.members
    ]
    return ConsumerGroupDescription(
        group.group_id,
        not group.protocol_type,
        members,
        group.protocol_data,
        state,
        coordinator,
        operations_from_bits(group.authorized_operations),
        ConsumerGroupType.CLASSIC,
    )


def _assignment(assignment: consumer_groups.DescribedAssignment) -> MemberAssignment:
    return MemberAssignment(
        [
            TopicPartition(topic.topic_name, index)
            for topic in assignment.topic_partitions
            for index in topic.partitions
        ]
    )


def _classic_assignment(data: bytes) -> MemberAssignment:
    """Returns the assignment that the group's leader wrote; an empty one if it is unreadable."""
    if len(data) < _VERSION.size:
        return MemberAssignment([])
    (version,) = _VERSION.unpack_from(data)
    version = min(version, ConsumerProtocolAssignment.VERSIONS.max)
    try:
        assignment, _ = ConsumerProtocolAssignment.read(data, version, _VERSION.size)
    except (ProtocolViolation, IndexError):
        return MemberAssignment([])
    return MemberAssignment(
        [
            TopicPartition(topic.topic, index)
            for topic in assignment.assigned_partitions
            for index in topic.partitions
        ]
    )
