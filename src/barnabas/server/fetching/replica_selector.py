"""Reading from the nearest replica (KIP-392): where a leader sends the consumers of a rack."""

from barnabas.metadata.states import endpoint_of
from barnabas.replication import Partition
from barnabas.server.request_context import Call

RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class Nearest:
    """The replicas in one rack, as the leaders of their partitions know them."""

    __slots__ = ("_brokers", "_listener", "_rack")

    def __init__(self, rack: str, call: Call) -> None:
        self._rack = rack
        self._brokers = call.broker.image.brokers
        self._listener = call.listener

    @classmethod
    def to(cls, rack: str, call: Call) -> "Nearest | None":
        """None where everybody reads from the leader: in its own rack, or by its settings."""
        broker = call.broker
        if not rack or broker.settings["replica.selector.class"] != RACK_AWARE_SELECTOR:
            return None
        here = broker.image.brokers.get(broker.node_id)
        return cls(rack, call) if here is None or here.rack != rack else None

    def replica(self, partition: Partition, offset: int) -> int | None:
        """The replica in sync that is furthest, of those in the rack that have the offset."""
        near = [
            follower
            for follower in partition.in_sync_followers()
            if follower.start_offset <= offset <= follower.end_offset
            and self._is_near(follower.broker_id)
        ]
        if not near:
            return None
        return max(near, key=lambda each: (each.end_offset, each.caught_up_ms)).broker_id

    def _is_near(self, broker_id: int) -> bool:
        broker = self._brokers.get(broker_id)
        return (
            broker is not None
            and broker.rack == self._rack
            and not broker.fenced
            and endpoint_of(broker, self._listener) is not None
        )
