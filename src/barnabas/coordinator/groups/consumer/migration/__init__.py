"""Groups that move from the classic to the consumer protocol and back while members are in.

A classic group becomes a consumer group when the first member of that protocol joins it, and a
consumer group becomes classic again when the last one leaves. In both cases the old group's
tombstones and the new group's records are one batch, and the new group comes to be by replaying
it, as it would after a failover. `group.consumer.migration.policy` says which way is open.
"""

from barnabas.coordinator.groups.consumer.migration.downgrade import (
    downgrade,
    downgrade_by_replacing,
)
from barnabas.coordinator.groups.consumer.migration.upgrade import classic_metadata, upgrade

__all__ = ["classic_metadata", "downgrade", "downgrade_by_replacing", "upgrade"]
