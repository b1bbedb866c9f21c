"""Groups of the consumer protocol (KIP-848): the coordinator assigns, the members reconcile.

Members heartbeat with what they have. Whatever changes what the group subscribes to moves the
group epoch on; a group epoch ahead of the target assignment has the coordinator assign anew
(`target`), and each member is led there step by step (`reconcile`). All of it is in the log
(`records`, `replay`); only the members' time limits are not (`sessions`).
"""

from barnabas.coordinator.groups.consumer.describe import describe
from barnabas.coordinator.groups.consumer.heartbeat import heartbeat
from barnabas.coordinator.groups.consumer.replay import replay
from barnabas.coordinator.groups.consumer.sessions import loaded
from barnabas.coordinator.groups.consumer.topics import follow

__all__ = ["describe", "follow", "heartbeat", "loaded", "replay"]
