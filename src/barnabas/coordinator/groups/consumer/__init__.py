"""Groups of the consumer protocol (KIP-848): the coordinator assigns, the members reconcile.

Members report their partitions by heartbeats. A change of what the group subscribes to bumps the
group epoch. When the group epoch is ahead of the target assignment, the coordinator computes a new
one (`target_assignment`), and each member gets there step by step (`reconciliation`). All of it is
in the log (`records`, `replay`), except for the members' timers (`sessions`).
"""

from barnabas.coordinator.groups.consumer.describe import describe
from barnabas.coordinator.groups.consumer.heartbeat import heartbeat, refresh_session
from barnabas.coordinator.groups.consumer.replay import replay
from barnabas.coordinator.groups.consumer.sessions import on_loaded
from barnabas.coordinator.groups.consumer.topics import on_metadata_update

__all__ = [
    "describe",
    "heartbeat",
    "on_loaded",
    "on_metadata_update",
    "refresh_session",
    "replay",
]
