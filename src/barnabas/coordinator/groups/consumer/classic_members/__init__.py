"""Members of the classic protocol in a consumer group: how they join, sync, heartbeat and leave.

The coordinator assigns, so no member leads and no member waits for another. A member's epoch is
its generation: JoinGroup takes one step to the target assignment, SyncGroup returns the partitions
that the member may consume after it. A heartbeat gets REBALANCE_IN_PROGRESS when there is another
step to take: a new target, partitions to revoke, or partitions that others have released.
"""

from barnabas.coordinator.groups.consumer.classic_members.join import join
from barnabas.coordinator.groups.consumer.classic_members.requests import heartbeat, leave, sync

__all__ = ["heartbeat", "join", "leave", "sync"]
