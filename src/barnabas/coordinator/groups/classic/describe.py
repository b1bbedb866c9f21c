"""DescribeGroups (key 15): state and members of a classic group."""

from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember


def describe(group: ClassicGroup) -> DescribedGroup:
    """What the members tell each other, and by which protocol, holds in a stable group only."""
    protocol = group.protocol if group.state is ClassicState.STABLE else None
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=protocol or "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(protocol),
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
