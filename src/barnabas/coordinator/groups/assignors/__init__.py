"""How partitions are divided among the members of a consumer group, on the server (KIP-848)."""

from barnabas.coordinator.groups.assignors import range as range_assignor
from barnabas.coordinator.groups.assignors import uniform
from barnabas.coordinator.groups.assignors.model import Assignor

ASSIGNORS: dict[str, Assignor] = {"uniform": uniform.assign, "range": range_assignor.assign}
"""By the names that `group.consumer.assignors` and a member's `ServerAssignor` use."""
