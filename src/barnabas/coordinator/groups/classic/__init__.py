"""The classic group protocol: a leader among the members assigns the partitions.

JoinGroup gathers the members of the next generation, SyncGroup distributes the leader's assignment
to all of them, Heartbeat keeps them in the group.

Classic groups are the exception to "decide, then apply". A group lives in memory: members join,
wait and time out without records. Deciding therefore changes the group and its timers at once; the
record that a generation writes is not replayed, it is for the next coordinator. When its append
fails, or is not committed in time, the change has happened all the same, and `on_committed` of the
decision repairs it:

- a group whose first record cannot be written is removed again, and its members get the error;
- a leader's assignment that cannot be written is discarded, and the group rebalances;
- a static member whose new id cannot be written keeps its former id;
- the record of a group that became empty may be lost: the coordinator that loads the record before
  it removes the silent members again.
"""

from barnabas.coordinator.groups.classic.join import join
from barnabas.coordinator.groups.classic.leave import leave
from barnabas.coordinator.groups.classic.replay import on_loaded, on_unloaded, replay
from barnabas.coordinator.groups.classic.responses import describe
from barnabas.coordinator.groups.classic.sync import heartbeat, refresh_session, sync

__all__ = [
    "describe",
    "heartbeat",
    "join",
    "leave",
    "on_loaded",
    "on_unloaded",
    "refresh_session",
    "replay",
    "sync",
]
