"""The record that a classic group leaves in the log, whole, at each generation."""

from collections.abc import Mapping

from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)

VERSION = 3
"""As Kafka writes it."""


def group_record(
    group: ClassicGroup, assignments: Mapping[str, bytes] | None = None
) -> CoordinatorRecord:
    """The group as it is; with `assignments` by member id, as it will be once they hold."""
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
