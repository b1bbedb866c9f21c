"""Fetching from the closest replica (KIP-392): the replica that a leader prefers for a rack."""

from typing import TYPE_CHECKING

from barnabas.metadata.states import endpoint_of
from barnabas.replication import Partition
from barnabas.server.request_context import RequestContext

if TYPE_CHECKING:
    from barnabas.server.nodes import BrokerNode

RACK_AWARE_SELECTOR_CLASS = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class RackAwareReplicaSelector:
    """Selects replicas in the rack of a consumer."""

    __slots__ = ("_brokers", "_listener", "_rack")

    def __init__(self, rack: str, context: RequestContext) -> None:
        self._rack = rack
        self._brokers = context.broker.image.brokers
        self._listener = context.listener

    @classmethod
    def for_rack(cls, rack: str, context: RequestContext) -> "RackAwareReplicaSelector | None":
        """Returns None if consumers read from the leader: in its own rack, or by its settings."""
        return cls(rack, context) if cls.is_used(rack, context.broker) else None

    @classmethod
    def is_used(cls, rack: str, broker: "BrokerNode") -> bool:
        """Returns whether consumers of a rack may have a closer replica than that of a broker."""
        if not rack or broker.settings["replica.selector.class"] != RACK_AWARE_SELECTOR_CLASS:
            return False
        this_broker = broker.image.brokers.get(broker.node_id)
        return this_broker is None or this_broker.rack != rack

    def select(self, partition: Partition, offset: int) -> int | None:
        """Returns the in-sync follower of the rack that has `offset` and the highest end offset.

        Returns None if no follower of the rack has `offset`.
        """
        candidates = [
            follower
            for follower in partition.in_sync_followers()
            if follower.log_start_offset <= offset <= follower.log_end_offset
            and self._is_in_rack(follower.broker_id)
        ]
        if not candidates:
            return None
        best = max(candidates, key=lambda replica: (replica.log_end_offset, replica.caught_up_ms))
        return best.broker_id

    def _is_in_rack(self, broker_id: int) -> bool:
        broker = self._brokers.get(broker_id)
        return (
            broker is not None
            and broker.rack == self._rack
            and not broker.fenced
            and endpoint_of(broker, self._listener) is not None
        )
