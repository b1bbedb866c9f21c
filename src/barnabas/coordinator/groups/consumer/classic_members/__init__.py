"""Members of the classic protocol in a consumer group: how they join, sync, heartbeat and leave.

The coordinator assigns, so nobody leads and nobody waits for anybody. A member's epoch is its
generation: JoinGroup takes one step towards the target assignment, SyncGroup tells what the member
may consume after it. A heartbeat is answered REBALANCE_IN_PROGRESS when there is another step to
take: a new target, something that was revoked and is to be given back, or something that others
have given back since.
"""

from barnabas.coordinator.groups.consumer.classic_members.heartbeat import heartbeat
from barnabas.coordinator.groups.consumer.classic_members.join import join
from barnabas.coordinator.groups.consumer.classic_members.leave import leave
from barnabas.coordinator.groups.consumer.classic_members.sync import sync

__all__ = ["heartbeat", "join", "leave", "sync"]
