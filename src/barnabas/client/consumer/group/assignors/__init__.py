"""The assignors of classic groups, by which the leader assigns partitions to members.

An assignor is deterministic: the same members and topics give the same assignment.
"""

from collections.abc import Mapping

from barnabas.client.consumer.group.assignors.model import (
    ClusterTopics,
    GroupAssignment,
    PartitionAssignor,
    SubscribedMember,
)
from barnabas.client.consumer.group.assignors.range import RangeAssignor
from barnabas.client.consumer.group.assignors.roundrobin import RoundRobinAssignor
from barnabas.client.consumer.group.assignors.sticky import (
    CooperativeStickyAssignor,
    StickyAssignor,
)

ASSIGNORS: Mapping[str, PartitionAssignor] = {
    each.name: each
    for each in (
        RangeAssignor(),
        RoundRobinAssignor(),
        StickyAssignor(),
        CooperativeStickyAssignor(),
    )
}
"""Assignors by their names in the protocol."""

__all__ = ["ASSIGNORS", "ClusterTopics", "GroupAssignment", "PartitionAssignor", "SubscribedMember"]
