"""The classic group protocol: members agree through a leader among them.

JoinGroup gathers the members of the next generation, SyncGroup carries the leader's assignment to
all of them, Heartbeat keeps them in. A group lives in memory; its record in the log is written
for whoever loads it later.
"""

from barnabas.coordinator.groups.classic.describe import describe
from barnabas.coordinator.groups.classic.heartbeat import heartbeat
from barnabas.coordinator.groups.classic.join import join
from barnabas.coordinator.groups.classic.leave import leave
from barnabas.coordinator.groups.classic.replay import loaded, replay, unloaded
from barnabas.coordinator.groups.classic.sync import sync

__all__ = ["describe", "heartbeat", "join", "leave", "loaded", "replay", "sync", "unloaded"]
