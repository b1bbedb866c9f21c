"""The brokers of the cluster as this one reaches them."""

from collections.abc import Callable

from barnabas.metadata.image import Image
from barnabas.metadata.states import NO_LEADER, endpoint_of
from barnabas.wire.peer import Peer, Peers


class Brokers:
    """Finds who leads what, and where they listen for other brokers."""

    __slots__ = ("_image", "_listener", "_peers", "node_id")

    def __init__(
        self, node_id: int, image: Callable[[], Image], peers: Peers, listener: str
    ) -> None:
        self.node_id = node_id
        self._image = image
        self._peers = peers
        self._listener = listener

    def leader_of(self, topic: str, index: int) -> int | None:
        """The broker that leads a partition; None if it has no leader now, or is not there."""
        state = self._image().topics.by_name(topic)
        partition = state.partitions.get(index) if state is not None else None
        if partition is None or partition.leader == NO_LEADER:
            return None
        return partition.leader

    def peer(self, broker_id: int, purpose: str) -> Peer | None:
        """The connection to a broker for one purpose; None if it cannot be reached now."""
        broker = self._image().brokers.get(broker_id)
        if broker is None or broker.fenced:
            return None
        endpoint = endpoint_of(broker, self._listener)
        if endpoint is None:
            return None
        return self._peers.at(endpoint.host, endpoint.port, purpose)
