"""The server-side assignors of consumer groups (KIP-848)."""

from barnabas.coordinator.groups.assignors import range as range_assignor
from barnabas.coordinator.groups.assignors import uniform
from barnabas.coordinator.groups.assignors.model import Assignor

ASSIGNORS: dict[str, Assignor] = {"uniform": uniform.assign, "range": range_assignor.assign}
"""By their names in `group.consumer.assignors` and in a member's `ServerAssignor`."""
