"""The record of a classic group: the whole group, written once per generation."""

from collections.abc import Mapping

from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)

VERSION = 3
"""The version that Kafka writes."""


def group_record(
    group: ClassicGroup, assignments: Mapping[str, bytes] | None = None
) -> CoordinatorRecord:
    """Returns the record of the group, with `assignments` by member id if they are given."""
    return CoordinatorRecord(
        GroupMetadataKey(group=group.group_id),
        GroupMetadataValue(
            protocol_type=group.protocol_type,
            generation=group.generation,
            protocol=group.protocol,
            leader=group.leader,
            current_state_timestamp=-1 if group.state_since_ms is None else group.state_since_ms,
            members=[
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(group.protocol),
                    assignment=(
                        member.assignment
                        if assignments is None
                        else assignments.get(member.member_id, b"")
                    ),
                )
                for member in group.members.values()
            ],
        ),
        VERSION,
    )
