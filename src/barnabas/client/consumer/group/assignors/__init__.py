"""How the leader of a classic group divides partitions among its members; each in its file.

An assignor is pure: the same members and topics give the same assignment.
"""

from collections.abc import Mapping

from barnabas.client.consumer.group.assignors.cooperative_sticky import CooperativeSticky
from barnabas.client.consumer.group.assignors.model import Assignment, Assignor, Subscriber, Topics
from barnabas.client.consumer.group.assignors.range import Range
from barnabas.client.consumer.group.assignors.roundrobin import RoundRobin
from barnabas.client.consumer.group.assignors.sticky import Sticky

ASSIGNORS: Mapping[str, Assignor] = {
    each.name: each for each in (Range(), RoundRobin(), Sticky(), CooperativeSticky())
}
"""By the name that members tell each other."""

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "Subscriber", "Topics"]
