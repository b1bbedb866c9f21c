"""Groups that move between the classic and the consumer protocol while they have members.

A classic group becomes a consumer group when the first member of that protocol joins it. A
consumer group becomes classic again when the last member of the consumer protocol leaves. In both
cases the tombstones of the old group and the records of the new group are one batch, and the new
group is created by replaying it, as after a failover. `group.consumer.migration.policy` says which
direction is allowed.
"""

from barnabas.coordinator.groups.consumer.migration.downgrade import (
    StartClassicGroup,
    downgrade,
    downgrade_by_replacement,
    start_classic_group,
)
from barnabas.coordinator.groups.consumer.migration.upgrade import classic_metadata, upgrade

__all__ = [
    "StartClassicGroup",
    "classic_metadata",
    "downgrade",
    "downgrade_by_replacement",
    "start_classic_group",
    "upgrade",
]
